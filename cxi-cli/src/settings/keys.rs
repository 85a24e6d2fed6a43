//! The settings.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use cxi::TrafficClasses;
use cxi_job::IdSet;
use cxi_job::collectives::Certificate;
use cxi_job::fabric::{ClusterName, ClusterNameError};
use cxi_job::settings::{AnyKey, Key, NODE_LOCK, path};

use crate::args::{duration, number};
use crate::collectives::cli::{Auth, certificate};
use crate::job::cli::{ModeArg, Policy};

/// How long a command waits for others, and a prolog for the controller's decision.
pub(crate) static WAIT: Key<Duration> = Key {
    name: "wait",
    variable: "CXI_WAIT",
    default: || "1m".to_owned(),
    parse: duration,
};

/// Where a node records its jobs.
pub(crate) static NODE_RECORDS: Key<PathBuf> = Key {
    name: "node.records",
    variable: "CXI_RECORDS",
    default: || "/run/cxi/jobs".to_owned(),
    parse: path,
};

/// How long an epilog tries to destroy busy services.
pub(crate) static RETRY_BUSY: Key<Duration> = Key {
    name: "node.retry-busy",
    variable: "CXI_RETRY_BUSY",
    default: || "0s".to_owned(),
    parse: duration,
};

/// The pool's file.
pub(crate) static POOL_FILE: Key<PathBuf> = Key {
    name: "pool.file",
    variable: "CXI_VNI_POOL",
    default: || "/var/lib/cxi/vni-pool.json".to_owned(),
    parse: path,
};

/// The log of the pool's changes.
pub(crate) static POOL_LOG: Key<Option<PathBuf>> = Key {
    name: "pool.log",
    variable: "CXI_VNI_LOG",
    default: String::new,
    parse: optional_path,
};

/// The VNIs that the scheduler assigns.
pub(crate) static POOL_VNIS: Key<IdSet> = Key {
    name: "pool.vnis",
    variable: "CXI_VNIS",
    default: || "1024-65535".to_owned(),
    parse: |text| text.parse().map_err(|error| format!("'{text}': {error}")),
};

/// Where the controller records its decision for each job, for the nodes to read.
pub(crate) static CONTROLLER_RECORDS: Key<Option<PathBuf>> = Key {
    name: "controller.records",
    variable: "CXI_CONTROLLER_RECORDS",
    default: String::new,
    parse: optional_path,
};

/// How long a job waits for VNIs.
pub(crate) static CONTROLLER_WAIT: Key<Duration> = Key {
    name: "controller.wait",
    variable: "CXI_CONTROLLER_WAIT",
    default: || "1m".to_owned(),
    parse: duration,
};

/// Which jobs of a single node get VNIs.
pub(crate) static SINGLE_NODE_VNI: Key<Allowed> = Key {
    name: "controller.single-node-vni",
    variable: "CXI_SINGLE_NODE_VNI",
    default: || "all".to_owned(),
    parse: word,
};

/// Which jobs get an additional VNI, shared by all their steps.
pub(crate) static JOB_VNI: Key<Allowed> = Key {
    name: "controller.job-vni",
    variable: "CXI_JOB_VNI",
    default: || "user".to_owned(),
    parse: word,
};

/// How much of each resource for each unit of size.
pub(crate) static POLICY: Key<Policy> = Key {
    name: "job.policy",
    variable: "CXI_POLICY",
    default: || "hpe".to_owned(),
    parse: word,
};

/// What to do if not enough is available.
pub(crate) static MODE: Key<ModeArg> = Key {
    name: "job.mode",
    variable: "CXI_MODE",
    default: || "strict".to_owned(),
    parse: word,
};

/// The smallest size that a job is scaled back to.
pub(crate) static FLOOR: Key<u32> = Key {
    name: "job.floor",
    variable: "CXI_FLOOR",
    default: || "1".to_owned(),
    parse: number,
};

/// Whether jobs get TLEs unless they say otherwise.
pub(crate) static TLES: Key<bool> = Key {
    name: "job.tles",
    variable: "CXI_TLES",
    default: || "true".to_owned(),
    parse: yes_or_no,
};

/// The traffic classes of a job that does not name any.
pub(crate) static TRAFFIC_CLASSES: Key<TrafficClasses> = Key {
    name: "job.traffic-classes",
    variable: "CXI_TRAFFIC_CLASSES",
    default: || "low-latency,best-effort".to_owned(),
    parse: |text| {
        text.parse()
            .map_err(|error: cxi::InvalidTrafficClass| error.to_string())
    },
};

/// How many NICs the processes of a job are spread over evenly; empty for all that it gets.
pub(crate) static NIC_DISTRIBUTION_COUNT: Key<Option<u32>> = Key {
    name: "job.nic-distribution-count",
    variable: "CXI_NIC_DISTRIBUTION_COUNT",
    default: String::new,
    parse: |text| {
        let count = (!text.is_empty()).then(|| text.parse()).transpose();
        count
            .ok()
            .filter(|count| *count != Some(0))
            .ok_or_else(|| format!("invalid value '{text}': expected 1 or more, or nothing"))
    },
};

/// Multicast trees that a job may have at a time; none for 0.
pub(crate) static COLLECTIVES_TREES: Key<u32> = Key {
    name: "collectives.trees",
    variable: "CXI_COLLECTIVES_TREES",
    default: || "0".to_owned(),
    parse: number,
};

/// The nodes of the smallest job that gets them.
pub(crate) static COLLECTIVES_MIN_NODES: Key<u32> = Key {
    name: "collectives.min-nodes",
    variable: "CXI_COLLECTIVES_MIN_NODES",
    default: || "2".to_owned(),
    parse: number,
};

/// Whether a job fails that cannot have them.
pub(crate) static COLLECTIVES_REQUIRED: Key<bool> = Key {
    name: "collectives.required",
    variable: "CXI_COLLECTIVES_REQUIRED",
    default: || "false".to_owned(),
    parse: yes_or_no,
};

/// The address of the fabric manager.
pub(crate) static FABRIC_URL: Key<Option<String>> = Key {
    name: "fabric-manager.url",
    variable: "CXI_FABRIC_MANAGER",
    default: String::new,
    parse: |text| Ok((!text.is_empty()).then(|| text.to_owned())),
};

/// What stands in front of this cluster's reservations.
pub(crate) static FABRIC_CLUSTER: Key<Option<ClusterName>> = Key {
    name: "fabric-manager.cluster",
    variable: "CXI_CLUSTER",
    default: String::new,
    parse: |text| {
        let cluster = (!text.is_empty()).then(|| text.parse());
        cluster
            .transpose()
            .map_err(|error: ClusterNameError| error.to_string())
    },
};

/// How the fabric manager knows this workload manager.
pub(crate) static FABRIC_AUTH: Key<Auth> = Key {
    name: "fabric-manager.auth",
    variable: "CXI_FABRIC_MANAGER_AUTH",
    default: || "oauth".to_owned(),
    parse: word,
};

/// Where the secrets for that are.
pub(crate) static FABRIC_AUTH_DIR: Key<Option<PathBuf>> = Key {
    name: "fabric-manager.auth-dir",
    variable: "CXI_FABRIC_CREDENTIALS",
    default: String::new,
    parse: optional_path,
};

/// Who vouches for the fabric manager.
pub(crate) static FABRIC_CERTIFICATE: Key<Certificate> = Key {
    name: "fabric-manager.certificate",
    variable: "CXI_FABRIC_MANAGER_CERTIFICATE",
    default: || "system".to_owned(),
    parse: certificate,
};

/// What it is shown, if it wants to know who asks.
pub(crate) static FABRIC_IDENTITY: Key<Option<PathBuf>> = Key {
    name: "fabric-manager.client-certificate",
    variable: "CXI_FABRIC_MANAGER_CLIENT_CERTIFICATE",
    default: String::new,
    parse: optional_path,
};

/// The key of that.
pub(crate) static FABRIC_KEY: Key<Option<PathBuf>> = Key {
    name: "fabric-manager.client-key",
    variable: "CXI_FABRIC_MANAGER_CLIENT_KEY",
    default: String::new,
    parse: optional_path,
};

/// How long a request to it is tried.
pub(crate) static FABRIC_DEADLINE: Key<Duration> = Key {
    name: "fabric-manager.deadline",
    variable: "CXI_FABRIC_MANAGER_DEADLINE",
    default: || "20s".to_owned(),
    parse: duration,
};

/// Which jobs get something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Allowed {
    All,
    /// Those that ask for it.
    User,
    None,
}

/// All of them, with their places in the file.
pub(super) static KEYS: [&dyn AnyKey; 28] = [
    &WAIT,
    &NODE_LOCK,
    &NODE_RECORDS,
    &RETRY_BUSY,
    &POOL_FILE,
    &POOL_LOG,
    &POOL_VNIS,
    &CONTROLLER_RECORDS,
    &CONTROLLER_WAIT,
    &SINGLE_NODE_VNI,
    &JOB_VNI,
    &POLICY,
    &MODE,
    &FLOOR,
    &TLES,
    &TRAFFIC_CLASSES,
    &NIC_DISTRIBUTION_COUNT,
    &COLLECTIVES_TREES,
    &COLLECTIVES_MIN_NODES,
    &COLLECTIVES_REQUIRED,
    &FABRIC_URL,
    &FABRIC_CLUSTER,
    &FABRIC_AUTH,
    &FABRIC_AUTH_DIR,
    &FABRIC_CERTIFICATE,
    &FABRIC_IDENTITY,
    &FABRIC_KEY,
    &FABRIC_DEADLINE,
];

#[allow(clippy::unnecessary_wraps, reason = "one of the parsers")]
fn optional_path(text: &str) -> Result<Option<PathBuf>, String> {
    Ok((!text.is_empty()).then(|| text.into()))
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    text.parse()
        .map_err(|_| format!("invalid value '{text}': expected true or false"))
}

fn word<T: ValueEnum>(text: &str) -> Result<T, String> {
    T::from_str(text, false).map_err(|_| {
        let words: Vec<String> = T::value_variants()
            .iter()
            .filter_map(|value| Some(value.to_possible_value()?.get_name().to_owned()))
            .collect();
        format!("invalid value '{text}': expected {}", words.join(" or "))
    })
}
