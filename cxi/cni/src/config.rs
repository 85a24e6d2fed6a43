//! The configuration of a network.

use std::path::PathBuf;
use std::time::Duration;

use cxi::{DeviceId, TrafficClasses};
use cxi_job::limits::{LimitPolicy, Mode};
use cxi_job::{JobLimits, NicPolicy};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{Code, Error};
use crate::record::Attachment;
use crate::version::Version;
use crate::vni_source::{VniList, VniSource};

/// The configuration of a network, as the runtime passes it.
#[derive(Debug)]
pub struct Config {
    pub(crate) version: Version,
    pub(crate) network: String,
    pub(crate) settings: Settings,
    /// The result of the plugins before this one, which is passed on unchanged.
    pub(crate) previous: Option<Box<RawValue>>,
    /// The VNIs that the runtime or a caller requests, for the source `args`.
    pub(crate) asked: Vec<VniList>,
    /// The attachments that GC keeps.
    pub(crate) valid: Option<Vec<Valid>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    cni_version: String,
    #[serde(default)]
    name: String,
    cxi: Option<Settings>,
    prev_result: Option<Box<RawValue>>,
    #[serde(default)]
    runtime_config: Asked,
    #[serde(default)]
    args: Arguments,
    #[serde(rename = "cni.dev/valid-attachments")]
    valid: Option<Vec<Valid>>,
}

#[derive(Default, Deserialize)]
struct Arguments {
    #[serde(default)]
    cni: Asked,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    cxi_vnis: Option<VniList>,
}

/// An attachment that exists, as the runtime lists it.
#[derive(Debug, Deserialize)]
pub(crate) struct Valid {
    #[serde(rename = "containerID")]
    container: String,
    #[serde(rename = "ifname")]
    interface: String,
}

impl Valid {
    pub(crate) fn is(&self, attachment: &Attachment) -> bool {
        self.container == attachment.container && self.interface == attachment.interface
    }
}

/// The settings of this plugin: the object `cxi` of the configuration.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) vnis: VniSource,
    nics: Option<Vec<DeviceId>>,
    pub(crate) traffic_classes: Option<TrafficClasses>,
    cores: Option<u32>,
    #[serde(default)]
    tles: bool,
    #[serde(default)]
    pub(crate) allow_default_vnis: bool,
    #[serde(default = "state_directory")]
    pub(crate) state_dir: PathBuf,
    #[serde(default = "retry_busy")]
    retry_busy_seconds: u32,
}

fn state_directory() -> PathBuf {
    cxi_site::settings::node_directory().join("cni")
}

const fn retry_busy() -> u32 {
    10
}

impl Config {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let raw: Raw = serde_json::from_str(text).map_err(|error| {
            Error::new(Code::Decoding, format!("network configuration: {error}"))
        })?;
        let version = Version::parse(&raw.cni_version).ok_or_else(|| {
            let (found, all) = (&raw.cni_version, serde_json::json!(Version::ALL));
            let text = format!("unsupported cniVersion {found:?}: expected one of {all}");
            Error::new(Code::Version, text)
        })?;
        let settings = raw.cxi.ok_or_else(|| {
            Error::new(
                Code::Configuration,
                "network configuration: no object cxi: expected at least \
                 \"cxi\": {\"vnis\": {\"source\": …}}",
            )
        })?;
        settings.vnis.check()?;
        let asked = [raw.runtime_config, raw.args.cni];
        Ok(Self {
            version,
            network: raw.name,
            settings,
            previous: raw.prev_result,
            asked: asked.into_iter().filter_map(|asked| asked.cxi_vnis).collect(),
            valid: raw.valid,
        })
    }
}

impl Settings {
    pub(crate) fn nics(&self) -> NicPolicy {
        match &self.nics {
            None => NicPolicy::All,
            Some(nics) => NicPolicy::Listed(nics.iter().copied().collect()),
        }
    }

    pub(crate) fn limits(&self) -> JobLimits {
        let Some(cores) = self.cores else { return JobLimits::Unlimited };
        let policy = LimitPolicy::hpe_recommended().tles(self.tles);
        JobLimits::planned(policy, cores, Mode::Strict)
    }

    pub(crate) fn retry_busy(&self) -> Duration {
        Duration::from_secs(self.retry_busy_seconds.into())
    }
}
