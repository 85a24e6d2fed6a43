//! The settings.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use cxi::TrafficClasses;
use cxi_job::IdSet;
use cxi_job::collectives::Certificate;
use cxi_job::fabric::ClusterName;
use cxi_job::settings::{AnyKey, Key, NODE_LOCK, path};

use crate::args::{duration, number};
use crate::collectives::cli::{Auth, certificate};
use crate::job::cli::{ModeArg, Policy};

macro_rules! keys {
    ($($(#[$doc:meta])* $key:ident: $type:ty = $name:literal, $variable:literal, $default:literal, $parse:expr;)*) => {
        $($(#[$doc])* pub(crate) static $key: Key<$type> = Key {
            name: $name,
            variable: $variable,
            default: || $default.to_owned(),
            parse: $parse,
        };)*

        /// All of them, with their places in the file.
        pub(super) static KEYS: &[&dyn AnyKey] = &[&WAIT, &NODE_LOCK, $(&$key),*];
    };
}

/// How long a command waits for others, and a prolog for the controller's decision.
pub(crate) static WAIT: Key<Duration> = Key {
    name: "wait",
    variable: "CXI_WAIT",
    default: || "1m".to_owned(),
    parse: duration,
};

// Name in the file, variable, default, parser.
keys! {
    /// Where a node records its jobs.
    NODE_RECORDS: PathBuf = "node.records", "CXI_RECORDS", "/run/cxi/jobs", path;
    /// How long an epilog tries to destroy busy services.
    RETRY_BUSY: Duration = "node.retry-busy", "CXI_RETRY_BUSY", "0s", duration;
    /// The pool's file.
    POOL_FILE: PathBuf = "pool.file", "CXI_VNI_POOL", "/var/lib/cxi/vni-pool.json", path;
    /// The log of the pool's changes.
    POOL_LOG: Option<PathBuf> = "pool.log", "CXI_VNI_LOG", "", optional;
    /// The VNIs that the scheduler assigns.
    POOL_VNIS: IdSet = "pool.vnis", "CXI_VNIS", "1024-65535", vnis;
    /// Where the controller records its decision for each job, for the nodes to read.
    CONTROLLER_RECORDS: Option<PathBuf> = "controller.records", "CXI_CONTROLLER_RECORDS", "", optional;
    /// How long a job waits for VNIs.
    CONTROLLER_WAIT: Duration = "controller.wait", "CXI_CONTROLLER_WAIT", "1m", duration;
    /// Which jobs of a single node get VNIs.
    SINGLE_NODE_VNI: Allowed = "controller.single-node-vni", "CXI_SINGLE_NODE_VNI", "all", word;
    /// Which jobs get an additional VNI, shared by all their steps.
    JOB_VNI: Allowed = "controller.job-vni", "CXI_JOB_VNI", "user", word;
    /// How much of each resource for each unit of size.
    POLICY: Policy = "job.policy", "CXI_POLICY", "hpe", word;
    /// What to do if not enough is available.
    MODE: ModeArg = "job.mode", "CXI_MODE", "strict", word;
    /// The smallest size that a job is scaled back to.
    FLOOR: u32 = "job.floor", "CXI_FLOOR", "1", number;
    /// Whether jobs get TLEs unless they say otherwise.
    TLES: bool = "job.tles", "CXI_TLES", "true", yes_or_no;
    /// The traffic classes of a job that does not name any.
    TRAFFIC_CLASSES: TrafficClasses = "job.traffic-classes", "CXI_TRAFFIC_CLASSES", "low-latency,best-effort", parsed;
    /// How many NICs the processes of a job are spread over evenly; empty for all that it gets.
    NIC_DISTRIBUTION_COUNT: Option<u32> = "job.nic-distribution-count", "CXI_NIC_DISTRIBUTION_COUNT", "", distribution;
    /// Multicast trees that a job may have at a time; none for 0.
    COLLECTIVES_TREES: u32 = "collectives.trees", "CXI_COLLECTIVES_TREES", "0", number;
    /// The nodes of the smallest job that gets them.
    COLLECTIVES_MIN_NODES: u32 = "collectives.min-nodes", "CXI_COLLECTIVES_MIN_NODES", "2", number;
    /// Whether a job fails that cannot have them.
    COLLECTIVES_REQUIRED: bool = "collectives.required", "CXI_COLLECTIVES_REQUIRED", "false", yes_or_no;
    /// The address of the fabric manager.
    FABRIC_URL: Option<String> = "fabric-manager.url", "CXI_FABRIC_MANAGER", "", optional;
    /// What stands in front of this cluster's reservations.
    FABRIC_CLUSTER: Option<ClusterName> = "fabric-manager.cluster", "CXI_CLUSTER", "", optional;
    /// How the fabric manager knows this workload manager.
    FABRIC_AUTH: Auth = "fabric-manager.auth", "CXI_FABRIC_MANAGER_AUTH", "oauth", word;
    /// Where the secrets for that are.
    FABRIC_AUTH_DIR: Option<PathBuf> = "fabric-manager.auth-dir", "CXI_FABRIC_CREDENTIALS", "", optional;
    /// How the fabric manager's certificate is verified.
    FABRIC_CERTIFICATE: Certificate = "fabric-manager.certificate", "CXI_FABRIC_MANAGER_CERTIFICATE", "system", certificate;
    /// What it is shown, if it wants to know who asks.
    FABRIC_IDENTITY: Option<PathBuf> = "fabric-manager.client-certificate", "CXI_FABRIC_MANAGER_CLIENT_CERTIFICATE", "", optional;
    /// The key of that.
    FABRIC_KEY: Option<PathBuf> = "fabric-manager.client-key", "CXI_FABRIC_MANAGER_CLIENT_KEY", "", optional;
    /// How long a request to it is tried.
    FABRIC_DEADLINE: Duration = "fabric-manager.deadline", "CXI_FABRIC_MANAGER_DEADLINE", "20s", duration;
}

/// Which jobs get something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Allowed {
    All,
    /// Those that ask for it.
    User,
    None,
}

fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// An empty text is `None`.
fn optional<T: FromStr<Err: Display>>(text: &str) -> Result<Option<T>, String> {
    (!text.is_empty()).then(|| parsed(text)).transpose()
}

fn vnis(text: &str) -> Result<IdSet, String> {
    parsed(text).map_err(|error| format!("'{text}': {error}"))
}

fn distribution(text: &str) -> Result<Option<u32>, String> {
    let count = optional(text).ok().filter(|count| *count != Some(0));
    count.ok_or_else(|| format!("invalid value '{text}': expected 1 or more, or nothing"))
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
