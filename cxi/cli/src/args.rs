//! Values of options that need their own parser.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use cxi::{DeviceId, Limit, LnisPerRgid, Member, Resource, Vni, VniRange};
use cxi_ioctl::DriverRelease;
use cxi_job::cluster::Access;
use cxi_site::settings::Value;
use cxi_site::{IdSet, TenantName};
use nix::unistd::{Group, User};

use crate::exit::Failure;

/// The most NICs that a range may name, far more than a node has.
const MOST_NICS: u32 = 256;

/// NICs to work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NicChoice {
    All,
    /// Sorted, without duplicates, at least one.
    These(Vec<DeviceId>),
}

impl FromStr for NicChoice {
    type Err = String;

    /// Parses `all`, `cxi0`, `cxi0-3` and comma-separated lists of those.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        let mut chosen = BTreeSet::new();
        for part in text.split(',') {
            match part.split_once('-') {
                None => {
                    chosen.insert(device(part)?);
                }
                Some((first, last)) => {
                    let first = device(first)?.number();
                    let last = device(&format!("cxi{}", last.trim_start_matches("cxi")))?.number();
                    if last < first || last - first >= MOST_NICS {
                        return Err(format!(
                            "invalid range of NICs '{part}': expected the lower number first, \
                             such as cxi0-3, and at most {MOST_NICS} NICs"
                        ));
                    }
                    chosen.extend((first..=last).map(DeviceId::new));
                }
            }
        }
        Ok(Self::These(chosen.into_iter().collect()))
    }
}

fn device(name: &str) -> Result<DeviceId, String> {
    name.parse::<DeviceId>()
        .map_err(|_| format!("invalid NIC '{name}': expected all, cxi0, cxi0-3 or a list of them"))
}

/// A limit of one resource, as `txqs=16:256`.
pub(crate) fn limit(text: &str) -> Result<(Resource, Limit), String> {
    let malformed =
        || format!("invalid limit '{text}': expected RESOURCE=RESERVED:MAX, such as txqs=16:256");
    let (resource, amounts) = text.split_once('=').ok_or_else(malformed)?;
    let (reserved, max) = amounts.split_once(':').ok_or_else(malformed)?;
    let resource: Resource = resource.parse().map_err(|error| format!("{error}"))?;
    let number = |text: &str| {
        text.parse::<u16>()
            .map_err(|_| format!("invalid number of {resource} '{text}': expected 0 to 65535"))
    };
    let limit = Limit::new(number(reserved)?, number(max)?)
        .map_err(|error| format!("{resource}: {error}"))?;
    Ok((resource, limit))
}

/// The limits of a list that names each resource at most once.
pub(crate) fn once_each(
    limits: &[(Resource, Limit)],
) -> Result<BTreeMap<Resource, Limit>, Failure> {
    let mut all = BTreeMap::new();
    for (resource, limit) in limits {
        if all.insert(*resource, *limit).is_some() {
            return Err(Failure::bad_input(format!(
                "--limit names {resource} twice: expected each resource once"
            )));
        }
    }
    Ok(all)
}

/// Members and VNIs of services.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Members and VNIs")]
pub(crate) struct AccessArgs {
    /// User who may use the services, by name or number
    #[arg(long, value_name = "USER", value_parser = user)]
    uid: Vec<u32>,
    /// Group that may use them, by name or number
    #[arg(long, value_name = "GROUP", value_parser = group)]
    gid: Vec<u32>,
    /// Network namespace that may use them: inode number or a file such as /proc/1/ns/net
    #[arg(long, value_name = "NETNS", value_parser = netns, conflicts_with_all = ["uid", "gid"])]
    netns: Option<u32>,
    /// VNIs, at most 4; the application's first
    #[arg(long, visible_alias = "vnis", value_name = "VNI", value_delimiter = ',', value_parser = vni)]
    vni: Vec<Vni>,
    /// Block of VNIs: its size is a power of two, and it starts at a multiple of that
    #[arg(long, value_name = "MIN-MAX", conflicts_with = "vni")]
    vni_range: Option<VniRange>,
}

impl AccessArgs {
    pub(crate) fn access(&self) -> Access {
        let users = self.uid.iter().copied().map(Member::Uid);
        let groups = self.gid.iter().copied().map(Member::Gid);
        let netns = self.netns.map(Member::NetNs);
        let members = users.chain(groups).chain(netns);
        let mut access = Access::new(members, self.vni.iter().copied());
        access.vni_range = self.vni_range;
        access
    }

    /// Returns the access that the command line names; `None` if that is for the controller to
    /// decide.
    pub(crate) fn undecided(&self) -> Option<Access> {
        (!self.vni.is_empty() || self.vni_range.is_some()).then(|| self.access())
    }
}

/// The inode number of a network namespace, given as such or as a file such as `/proc/self/ns/net`.
pub(crate) fn netns(text: &str) -> Result<u32, String> {
    if let Ok(inode) = text.parse() {
        return Ok(inode);
    }
    if !text.contains('/') {
        return Err(format!(
            "invalid network namespace '{text}': expected an inode number or a file such as \
             /proc/1/ns/net"
        ));
    }
    match Member::netns_at(text).map_err(|error| error.to_string())? {
        Member::NetNs(inode) => Ok(inode),
        member => Err(format!("{text} is a {member}")),
    }
}

/// A tenant's share of a pool, as `blue=1024-2047`.
pub(crate) fn tenant(text: &str) -> Result<(TenantName, IdSet), String> {
    let (name, share) = text.split_once('=').ok_or_else(|| {
        format!("invalid tenant '{text}': expected NAME=VNIS, such as blue=1024-2047")
    })?;
    let name = TenantName::new(name).map_err(|error| error.to_string())?;
    Ok((name, vnis(share)?))
}

/// The VNIs of an owner, as `gid:500=2048-4095`.
pub(crate) fn range(text: &str) -> Result<(Member, IdSet), String> {
    let parts = text.split_once('=').and_then(|(owner, range)| {
        let (kind, name) = owner.split_once(':')?;
        Some((kind, name, range))
    });
    let (owner, range) = match parts {
        Some(("uid", name, range)) => (Member::Uid(user(name)?), range),
        Some(("gid", name, range)) => (Member::Gid(group(name)?), range),
        _ => {
            return Err(format!(
                "invalid range '{text}': expected uid:USER=VNIS or gid:GROUP=VNIS, such as \
                 gid:500=2048-4095"
            ));
        }
    };
    Ok((owner, vnis(range)?))
}

fn vnis(text: &str) -> Result<IdSet, String> {
    text.parse().map_err(|error| format!("'{text}': {error}"))
}

/// A duration such as `5m`, `30s` or `1h 30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    Value::parse(text)
}

/// Interval at which something is repeated.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    let least = Duration::from_millis(10);
    let time = duration(text)?;
    if time < least {
        return Err(format!("invalid interval '{text}': expected at least 10ms"));
    }
    Ok(time)
}

/// One VNI of a list.
pub(crate) fn vni(text: &str) -> Result<Vni, String> {
    if text.contains('-') {
        return Err(format!(
            "invalid VNI '{text}': expected single VNIs, such as 1024,1025, or a block, as in \
             --vni-range {text}"
        ));
    }
    text.parse().map_err(|error: cxi::InvalidValue| error.to_string())
}

/// A user by name or number.
pub(crate) fn user(text: &str) -> Result<u32, String> {
    let find = || Ok(User::from_name(text)?.map(|user| user.uid.as_raw()));
    id_of("user", text, find)
}

/// A group by name or number.
pub(crate) fn group(text: &str) -> Result<u32, String> {
    let find = || Ok(Group::from_name(text)?.map(|group| group.gid.as_raw()));
    id_of("group", text, find)
}

fn id_of(
    kind: &str,
    text: &str,
    find: impl FnOnce() -> nix::Result<Option<u32>>,
) -> Result<u32, String> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    match find() {
        Ok(Some(id)) => Ok(id),
        Ok(None) => {
            Err(format!("this machine has no {kind} '{text}': expected a name or a number"))
        }
        Err(errno) => Err(format!("{kind} '{text}' cannot be looked up: {}", errno.desc())),
    }
}

/// An unsigned number.
pub(crate) fn number(text: &str) -> Result<u32, String> {
    Value::parse(text)
}

/// One of the words of a setting.
pub(crate) fn word<T: Value + Clone + Send + Sync + 'static>(
    words: &'static [&'static str],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words).try_map(|word| T::parse(&word))
}

/// A release of the driver, by either of its names.
pub(crate) fn release() -> impl TypedValueParser<Value = DriverRelease> {
    let names = DriverRelease::ALL
        .map(|release| PossibleValue::new(release.name()).alias(release.short_name()));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<DriverRelease>())
}

/// A number of LNIs.
pub(crate) fn lnis_per_rgid(text: &str) -> Result<LnisPerRgid, String> {
    let count: u32 =
        text.parse().map_err(|_| format!("invalid number of LNIs '{text}': expected 0 to 8"))?;
    LnisPerRgid::new(count).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nics(text: &str) -> Result<Vec<u32>, String> {
        text.parse().map(|choice| match choice {
            NicChoice::All => vec![],
            NicChoice::These(ids) => ids.into_iter().map(DeviceId::number).collect(),
        })
    }

    #[test]
    fn nics_are_names_ranges_or_all() {
        assert_eq!(nics("all"), Ok(vec![]));
        assert_eq!(nics("cxi3"), Ok(vec![3]));
        assert_eq!(nics("cxi2-3,cxi0,cxi3"), Ok(vec![0, 2, 3]));
        assert_eq!(nics("cxi0-cxi1"), Ok(vec![0, 1]));
        for bad in ["", "eth0", "cxi", "cxi0,", "cxi-1", "cxi0-x"] {
            let error = nics(bad).unwrap_err();
            assert!(error.ends_with("': expected all, cxi0, cxi0-3 or a list of them"), "{error}");
        }
        for bad in ["cxi3-1", "cxi0-4294967295"] {
            assert!(nics(bad).unwrap_err().contains("invalid range of NICs"), "{bad}");
        }
    }

    #[test]
    fn limits_are_reserved_and_maximum() {
        let txqs = Limit::new(16, 256).unwrap();
        assert_eq!(limit("txqs=16:256"), Ok((Resource::Txqs, txqs)));
        for (bad, message) in [
            (
                "txqs=16",
                "invalid limit 'txqs=16': expected RESOURCE=RESERVED:MAX, such as txqs=16:256",
            ),
            (
                "queues=1:2",
                "invalid resource 'queues': expected one of PTEs, TXQs, TGQs, EQs, CTs, LEs, TLEs, ACs",
            ),
            ("txqs=1:70000", "invalid number of TXQs '70000': expected 0 to 65535"),
            (
                "acs=9:8",
                "ACs: 9 reserved but at most 8: expected a maximum no lower than the reservation",
            ),
        ] {
            assert_eq!(limit(bad).unwrap_err(), message);
        }
    }

    #[test]
    fn users_and_groups_have_names_and_numbers() {
        assert_eq!((user("root"), group("root")), (Ok(0), Ok(0)));
        assert_eq!((user("1000"), group("0")), (Ok(1000), Ok(0)));
        assert_eq!(
            group("no such").unwrap_err(),
            "this machine has no group 'no such': expected a name or a number"
        );
        assert_eq!(range("uid:root=64-127").unwrap().0, Member::Uid(0));
        for bad in ["gid:=1", "uid:4294967296=1"] {
            let error = range(bad).unwrap_err();
            assert!(error.starts_with("this machine has no "), "{error}");
        }
    }

    #[test]
    fn a_namespace_is_a_number_or_a_file() {
        assert_eq!(netns("4026531840"), Ok(4_026_531_840));
        assert!(netns("/proc/self/ns/net").unwrap() > 0);
        let bad = netns("lo").unwrap_err();
        assert!(bad.contains("invalid network namespace 'lo'"), "{bad}");
        let missing = netns("/nowhere").unwrap_err();
        assert!(missing.starts_with("/nowhere: No such file"), "{missing}");
        for other in ["/proc/self/ns/mnt", "/proc/self/stat", "/"] {
            assert_eq!(
                netns(other),
                Err(format!(
                    "invalid network namespace {other}: expected a file such as /proc/1/ns/net"
                ))
            );
        }
    }
}
