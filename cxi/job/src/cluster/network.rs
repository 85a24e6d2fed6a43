//! Options of Slurm's `--network=`, in the words of `srun`'s manual page for
//! `switch/hpe_slingshot`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::{LimitPolicy, ResourcePolicy};
use cxi::{Resource, TrafficClass, TrafficClasses};

/// The options of a job.
///
/// ```
/// use cxi_job::cluster::NetworkOptions;
///
/// let options: NetworkOptions = "depth=4,job_vni,max_txqs=64".parse()?;
/// assert!(options.job_vni && options.depth == Some(4));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "options of one word")]
#[non_exhaustive]
pub struct NetworkOptions {
    text: String,
    /// A size in place of the CPUs.
    pub depth: Option<u32>,
    /// The traffic classes.
    pub traffic_classes: Option<TrafficClasses>,
    limits: BTreeMap<Resource, Limit>,
    /// One more VNI, which all steps share.
    pub job_vni: bool,
    /// A VNI although the job has one node.
    pub single_node_vni: bool,
    /// No VNI, and so no service.
    pub no_vni: bool,
    /// `true` if what system services have is subtracted from the limits first.
    pub adjust_limits: Option<bool>,
    /// `true` if rendezvous gets are off while the job runs.
    pub disable_rdzv_get: bool,
    /// Multicast trees, however few nodes the job has.
    pub hwcoll: bool,
    /// The NICs that processes are spread over, for the RGIDs.
    pub nic_distribution_count: Option<u32>,
}

/// The limits of one resource: how much for each CPU, how much reserved, and the maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Limit {
    def: Option<u32>,
    res: Option<u32>,
    max: Option<u32>,
}

impl NetworkOptions {
    /// The policy with the job's own limits.
    pub(super) fn apply(&self, policy: LimitPolicy) -> LimitPolicy {
        self.limits.iter().fold(policy, |policy, (resource, limit)| {
            let usual = policy.get(*resource);
            let changed = ResourcePolicy {
                def: limit.def.unwrap_or(usual.def),
                // Slurm's plugin treats 0 as not given.
                res: limit.res.filter(|res| *res > 0).or(usual.res),
                max: limit.max.unwrap_or(usual.max),
            };
            policy.with(*resource, changed)
        })
    }

    /// Returns whether the job wants its own TLEs.
    pub(super) fn asks_for_tles(&self) -> bool {
        self.limits.contains_key(&Resource::Tles)
    }

    fn option(&mut self, option: &str) -> Result<(), String> {
        match option.split_once('=') {
            None => self.flag(option),
            Some(("depth", value)) => {
                self.depth = Some(in_range(option, value, 1, 1024)?);
                Ok(())
            }
            Some(("nic_distribution_count", value)) => {
                self.nic_distribution_count = Some(in_range(option, value, 1, 65535)?);
                Ok(())
            }
            Some(("tcs", value)) => {
                let classes = value.split(':').map(str::parse::<TrafficClass>);
                let classes: Result<TrafficClasses, _> = classes.collect();
                self.traffic_classes = Some(classes.map_err(|error| error.to_string())?);
                Ok(())
            }
            Some((name, value)) => self.limit(option, name, value),
        }
    }

    fn flag(&mut self, option: &str) -> Result<(), String> {
        match option {
            "job_vni" => self.job_vni = true,
            "single_node_vni" => self.single_node_vni = true,
            "no_vni" => self.no_vni = true,
            "adjust_limits" => self.adjust_limits = Some(true),
            "no_adjust_limits" => self.adjust_limits = Some(false),
            "disable_rdzv_get" => self.disable_rdzv_get = true,
            // Accepted by Slurm's plugin, which does nothing for it.
            "hwcoll" => self.hwcoll = true,
            _ => return Err(unknown(option)),
        }
        Ok(())
    }

    fn limit(&mut self, option: &str, name: &str, value: &str) -> Result<(), String> {
        let (kind, resource) = name.split_once('_').ok_or_else(|| unknown(option))?;
        let resource: Resource = resource.parse().map_err(|_| unknown(option))?;
        let limit = self.limits.entry(resource).or_default();
        let place = match kind {
            "def" => &mut limit.def,
            "res" => &mut limit.res,
            "max" => &mut limit.max,
            _ => return Err(unknown(option)),
        };
        *place = Some(in_range(option, value, 0, 65535)?);
        Ok(())
    }
}

fn unknown(option: &str) -> String {
    format!(
        "invalid network option '{option}': expected depth=N, tcs=CLASS:CLASS, job_vni, \
         single_node_vni, no_vni, adjust_limits, no_adjust_limits, disable_rdzv_get, hwcoll, \
         nic_distribution_count=N, or def_, res_ or max_ and a resource, such as max_txqs=64"
    )
}

fn in_range(option: &str, value: &str, first: u32, last: u32) -> Result<u32, String> {
    let number = value.parse().ok();
    number
        .filter(|number| (first..=last).contains(number))
        .ok_or_else(|| format!("invalid network option '{option}': expected {first} to {last}"))
}

impl FromStr for NetworkOptions {
    type Err = String;

    /// Parses options separated by commas. An empty text and Slurm's `(null)` are no options.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut network = Self { text: text.to_owned(), ..Self::default() };
        let none = text.is_empty() || text == "(null)";
        for option in text.split(',').filter(|_| !none) {
            network.option(&option.to_ascii_lowercase())?;
        }
        Ok(network)
    }
}

impl Serialize for NetworkOptions {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NetworkOptions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl fmt::Display for NetworkOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_manual_page() {
        let network: NetworkOptions =
            "depth=4,tcs=DEDICATED_ACCESS:TC_BULK_DATA,job_vni,max_txqs=64,\
                                def_tles=2,res_ACs=8,no_adjust_limits,disable_rdzv_get,hwcoll,\
                                nic_distribution_count=2"
                .parse()
                .unwrap();
        assert_eq!((network.depth, network.nic_distribution_count), (Some(4), Some(2)));
        assert!(network.job_vni && network.disable_rdzv_get && network.asks_for_tles());
        assert!(!network.no_vni && !network.single_node_vni);
        assert_eq!(network.adjust_limits, Some(false));
        let classes =
            TrafficClasses::from_iter([TrafficClass::DedicatedAccess, TrafficClass::BulkData]);
        assert_eq!(network.traffic_classes, Some(classes));
        let policy = network.apply(LimitPolicy::slurm());
        // Two for each CPU, up to the job's limit.
        assert_eq!(policy.get(Resource::Txqs), ResourcePolicy::scaled(2, 64));
        assert_eq!(policy.get(Resource::Acs).asked(3), 8);
        assert_eq!(policy.get(Resource::Tles).asked(3), 6);
        assert_eq!(policy.get(Resource::Ptes), LimitPolicy::slurm().get(Resource::Ptes));
        for none in ["", "(null)"] {
            assert_eq!(none.parse::<NetworkOptions>().unwrap().depth, None);
        }
    }

    #[test]
    fn an_unknown_option_is_refused() {
        for (text, end) in [
            ("depth=0", "expected 1 to 1024"),
            ("job_vni,depth=1025", "expected 1 to 1024"),
            ("max_txqs=65536", "expected 0 to 65535"),
            ("max_txqs", "such as max_txqs=64"),
            ("min_txqs=3", "such as max_txqs=64"),
            ("max_hats=3", "such as max_txqs=64"),
            ("depth=2,", "such as max_txqs=64"),
        ] {
            let error = text.parse::<NetworkOptions>().unwrap_err();
            assert!(error.ends_with(end), "{error}");
        }
        assert!("tcs=FAST".parse::<NetworkOptions>().unwrap_err().contains("'fast'"));
    }
}
