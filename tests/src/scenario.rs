//! A recorded scenario, in the form of its JSON file.

use std::collections::BTreeMap;

use cxi_ioctl::DriverRelease;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Operations on a freshly loaded device, with what the driver of one release answered.
#[derive(Clone, Debug, Deserialize)]
pub struct Scenario {
    /// Its name, which is also the name of the file.
    pub name: String,
    /// The release that it was recorded with.
    pub driver: DriverRelease,
    /// One sentence about what it shows.
    #[serde(default)]
    pub about: String,
    /// Setup of the device.
    #[serde(default)]
    pub device: Setup,
    /// The driver refuses to load, with this errno.
    pub boot_errno: Option<String>,
    /// In order.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// From here on, the driver accesses memory that is not its own.
    pub undefined_after: Option<Undefined>,
}

/// Setup of the device.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// Module parameters that differ from their defaults.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// There is a virtual function in addition to the physical one.
    #[serde(default)]
    pub vf: bool,
}

/// Point at which the driver's behavior stops being defined.
#[derive(Clone, Debug, Deserialize)]
pub struct Undefined {
    /// Index of the last recorded step.
    pub after_step: usize,
    /// The next operation, whose outcome is unknown.
    pub step: Option<Step>,
}

/// One operation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The caller.
    #[serde(rename = "as")]
    pub caller: Option<Caller>,
    /// Name of the open file.
    pub fd: Option<String>,
    /// Opcode name without prefix, or one of the runner's own operations.
    pub op: String,
    /// Fields of the request by their UAPI names.
    #[serde(default)]
    pub cmd: Map<String, Value>,
    /// Values of the response to keep: name to path.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    /// Behavior of the driver.
    pub expect: Option<Expect>,
    /// Response fields left out on purpose.
    #[serde(default)]
    pub unchecked: Vec<String>,
    /// Differed in later passes of a REPEAT.
    #[serde(default)]
    pub varies: bool,
    /// REPEAT: number of passes.
    pub times: Option<u64>,
    /// REPEAT: the steps of a pass.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// FILL, DRAIN: the step to repeat.
    pub step: Option<Box<Step>>,
    /// FILL: most repetitions.
    pub limit: Option<u64>,
    /// FILL: list to fill, and the response field that goes there.
    pub collect: Option<(String, String)>,
    /// DRAIN: list to use up.
    pub list: Option<String>,
    /// DRAIN: command field that takes the value.
    pub field: Option<String>,
    /// Log of the driver; a mock has no such log.
    #[serde(default, rename = "kernel_log")]
    pub _kernel_log: Value,
    /// Free text.
    #[serde(default, rename = "note")]
    pub _note: Value,
}

/// The caller of an operation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caller {
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
    /// CAP_SYS_ADMIN.
    pub admin: bool,
    /// Inode number of the network namespace.
    pub netns: u32,
    /// CAP_NET_RAW; the same as `admin` if not given.
    pub net_raw: Option<bool>,
    /// Supplementary groups.
    #[serde(default)]
    pub groups: Vec<u32>,
}

/// Behavior of the driver.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// `OK` or the errno's name.
    pub errno: String,
    /// The response as written; absent if nothing was.
    pub resp: Option<Value>,
    /// FILL, DRAIN: how often it succeeded.
    pub successes: Option<u64>,
    /// FILL: first collected value.
    pub first: Option<Value>,
    /// FILL: last collected value.
    pub last: Option<Value>,
    /// DRAIN: the errors that occurred.
    pub errors: Option<Vec<String>>,
    /// Log of the driver; a mock has no such log.
    #[serde(default, rename = "kernel_log")]
    pub _kernel_log: Value,
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    ///
    /// Parses a scenario, or says what is wrong, with line and column.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(json).map_err(|error| error.to_string())
    }

    /// The operations used, those inside REPEAT, FILL and DRAIN included.
    pub fn operations(&self) -> Vec<&str> {
        fn walk<'a>(steps: &'a [Step], found: &mut Vec<&'a str>) {
            for step in steps {
                found.push(&step.op);
                walk(&step.steps, found);
                if let Some(inner) = &step.step {
                    walk(std::slice::from_ref(inner), found);
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.steps, &mut found);
        found
    }
}
