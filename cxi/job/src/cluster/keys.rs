//! The settings of a site: key in the file, variable that overrides it, default.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use cxi::TrafficClasses;

use crate::limits::LimitPolicy;
use cxi_site::collectives::Certificate;
use cxi_site::fabric::ClusterName;
use cxi_site::settings::{AnyKey, Key, NODE_LOCK, Settings, SettingsError, Value};
use cxi_site::{FileLock, IdSet};

macro_rules! keys {
    (@former) => { None };
    (@former $former:literal) => { Some($former) };
    ($($(#[doc = $doc:literal])+ $key:ident: $type:ty = $name:literal, $variable:literal$( or $former:literal)?, $default:literal;)*) => {
        $($(#[doc = $doc])+ pub static $key: Key<$type> = Key {
            name: $name,
            variable: $variable,
            former_variable: keys!(@former $($former)?),
            about: concat!($($doc),+),
            default: |directories| directories.expand($default),
            parse: Value::parse,
        };)*

        /// All settings of a site, in the order in which they are listed.
        pub static ALL: &[&dyn AnyKey] = &[&NODE_LOCK, $(&$key),*];
    };
}

keys! {
    /// Time to wait for other commands on the node, for the pool, and for the command of `job sweep`;
    /// `job reserve` waits for `controller.wait` instead.
    WAIT: Duration = "wait", "CXI_WAIT", "1m";
    /// Directory in which a node records its jobs, readable for root; a job's user can read a copy of
    /// its record.
    NODE_RECORDS: PathBuf = "node.records", "CXI_RECORDS", "{node}/jobs";
    /// Directory of records of the makers of services that are not of jobs: those of `service create`
    /// and of `cxi-cni`.
    NODE_SERVICES: PathBuf = "node.services", "CXI_SERVICES", "{node}/services";
    /// Number of usable NICs that the node has when it is whole. With fewer, `audit`, `metrics` and
    /// `audit --preflight` say so, and no prolog starts a job. Empty for those that it has.
    NODE_NICS: Option<NonZeroU32> = "node.nics", "CXI_NICS", "";
    /// State that the NICs' default services, which are open to everyone, should have: `disabled`,
    /// `enabled` or `any`. `audit` and `metrics` report a NIC where it is another one.
    NODE_DEFAULT_SERVICE: DefaultService = "node.default-service", "CXI_DEFAULT_SERVICE", "disabled";
    /// Time since the last `job clean` after which `audit --preflight` says that the node is not fit
    /// for a job; empty for any.
    NODE_CLEANED_WITHIN: Option<Duration> = "node.cleaned-within", "CXI_CLEANED_WITHIN", "";
    /// Time for which an epilog tries to destroy busy services.
    RETRY_BUSY: Duration = "node.retry-busy", "CXI_RETRY_BUSY", "0s";
    /// Store of the pool: `file`, or `etcd` for controllers that fail over.
    POOL_STORE: StoreName = "pool.store", "CXI_VNI_STORE", "file";
    /// The pool's file. The variable was called `CXI_VNI_POOL`, which is still read.
    POOL_FILE: PathBuf = "pool.file", "CXI_POOL_FILE" or "CXI_VNI_POOL", "{lib}/vni-pool.json";
    /// File in which a controller records under which epoch it leads a pool in etcd.
    POOL_EPOCH: PathBuf = "pool.epoch", "CXI_VNI_EPOCH", "{lib}/vni-epoch";
    /// The VNIs that the scheduler assigns. Services that no record names, and that have one of them,
    /// are reported.
    POOL_VNIS: IdSet = "pool.vnis", "CXI_VNIS", "1024-65535";
    /// Directory in which the controller records its decision for each job, for the nodes to read.
    CONTROLLER_RECORDS: Option<PathBuf> = "controller.records", "CXI_CONTROLLER_RECORDS", "";
    /// Time that `job reserve`, the start of a job, may take in all: waiting for VNIs, locks, the
    /// pool in etcd and the fabric manager. With less than a second, the pool still has one.
    CONTROLLER_WAIT: Duration = "controller.wait", "CXI_CONTROLLER_WAIT", "1m";
    /// Single-node jobs that get VNIs: `all`, `user` (those that ask for it) or `none`.
    SINGLE_NODE_VNI: Allowed = "controller.single-node-vni", "CXI_SINGLE_NODE_VNI", "all";
    /// Jobs that get an additional VNI, shared by all their steps: `all`, `user` (those that ask for
    /// it) or `none`.
    JOB_VNI: Allowed = "controller.job-vni", "CXI_JOB_VNI", "user";
    /// Policy for the number of each resource that a job gets for each unit of its size, as with `job
    /// prolog --policy`.
    POLICY: PolicyName = "job.policy", "CXI_POLICY", "hpe";
    /// Reaction if not enough is available, as with `job prolog --mode`.
    MODE: ModeName = "job.mode", "CXI_MODE", "scale-back";
    /// The smallest size that a job is scaled back to.
    FLOOR: u32 = "job.floor", "CXI_FLOOR", "1";
    /// `true` if jobs get TLEs unless they say otherwise; `false` is the same as `--no-tles`.
    TLES: bool = "job.tles", "CXI_TLES", "true";
    /// The traffic classes of a job that does not name any, as with `--tc`.
    TRAFFIC_CLASSES: TrafficClasses = "job.traffic-classes", "CXI_TRAFFIC_CLASSES", "low-latency,best-effort";
    /// `true` if a job may have VNIs 1 and 10, which are the default service's: where that is
    /// enabled, every user of a node can use them.
    ALLOW_DEFAULT_VNIS: bool = "job.allow-default-vnis", "CXI_ALLOW_DEFAULT_VNIS", "false";
    /// With `job.policy = "slurm"`: number of NICs among which the processes of a job are divided
    /// evenly, for computing how many LNIs share an RGID; empty for all that it gets.
    NIC_DISTRIBUTION_COUNT: Option<NonZeroU32> = "job.nic-distribution-count", "CXI_NIC_DISTRIBUTION_COUNT", "";
    /// Number of multicast trees that `job reserve` reserves for a job; 0 for none.
    COLLECTIVES_TREES: u32 = "collectives.trees", "CXI_COLLECTIVES_TREES", "0";
    /// The number of nodes of the smallest job that gets multicast trees without asking for them; empty
    /// if only jobs get them that ask.
    COLLECTIVES_MIN_NODES: Option<NonZeroU32> = "collectives.min-nodes", "CXI_COLLECTIVES_MIN_NODES", "2";
    /// `true` if `job reserve` fails for a job that cannot have multicast trees.
    COLLECTIVES_REQUIRED: bool = "collectives.required", "CXI_COLLECTIVES_REQUIRED", "false";
    /// Time that `job reserve` waits for each answer of the fabric manager, if that is less than
    /// `fabric-manager.deadline`.
    COLLECTIVES_WAIT: Duration = "collectives.wait", "CXI_COLLECTIVES_WAIT", "5s";
    /// The address of the fabric manager.
    FABRIC_URL: Option<String> = "fabric-manager.url", "CXI_FABRIC_MANAGER", "";
    /// The fabric manager's name for this cluster, the prefix of its reservations.
    FABRIC_CLUSTER: Option<ClusterName> = "fabric-manager.cluster", "CXI_CLUSTER", "";
    /// Way in which this workload manager authenticates itself: `oauth` or `basic`.
    FABRIC_AUTH: Auth = "fabric-manager.auth", "CXI_FABRIC_MANAGER_AUTH", "oauth";
    /// The directory with `endpoint`, `client-id` and `client-secret`, or with `passwd`: usually
    /// `/etc/wlm-client-auth` or `/etc/fmsim`. Secrets have mode 600, as `etcd.password-file` says.
    FABRIC_AUTH_DIR: Option<PathBuf> = "fabric-manager.auth-dir", "CXI_FABRIC_CREDENTIALS", "{secrets}";
    /// `true` if the password, the client secret and the token may go to an `http://` address of
    /// another machine, where they can be read on the network.
    FABRIC_ALLOW_CLEAR: bool = "fabric-manager.allow-clear-secrets", "CXI_FABRIC_MANAGER_ALLOW_CLEAR_SECRETS", "false";
    /// Way in which the fabric manager's certificate is verified: `system`, an absolute path of
    /// authorities, or `no`; also for libfabric.
    FABRIC_CERTIFICATE: Certificate = "fabric-manager.certificate", "CXI_FABRIC_MANAGER_CERTIFICATE", "system";
    /// The certificate that is presented to the fabric manager, as PEM.
    FABRIC_IDENTITY: Option<PathBuf> = "fabric-manager.client-certificate", "CXI_FABRIC_MANAGER_CLIENT_CERTIFICATE", "";
    /// The key of that certificate.
    FABRIC_KEY: Option<PathBuf> = "fabric-manager.client-key", "CXI_FABRIC_MANAGER_CLIENT_KEY", "";
    /// Time for which a request to the fabric manager is tried.
    FABRIC_DEADLINE: Duration = "fabric-manager.deadline", "CXI_FABRIC_MANAGER_DEADLINE", "20s";
    /// The URLs of etcd's members, which are asked in turn until one answers.
    ETCD_ENDPOINTS: Vec<String> = "etcd.endpoints", "CXI_ETCD_ENDPOINTS", "";
    /// Beginning of the names of the pool's keys.
    ETCD_PREFIX: String = "etcd.prefix", "CXI_ETCD_PREFIX", "cxi/vni";
    /// The user of etcd, where it has authentication enabled.
    ETCD_USER: Option<String> = "etcd.user", "CXI_ETCD_USER", "";
    /// The file with the password of that user. It belongs to the user that runs `cxi`, or to root,
    /// and has mode 600. root also reads one of another user, such as SlurmUser, by a path without
    /// links in directories that nobody else can write to.
    ETCD_PASSWORD: Option<PathBuf> = "etcd.password-file", "CXI_ETCD_PASSWORD_FILE", "";
    /// `true` if that password may go to an `http://` endpoint on another machine, where it can be
    /// read on the network.
    ETCD_ALLOW_CLEAR: bool = "etcd.allow-clear-password", "CXI_ETCD_ALLOW_CLEAR_PASSWORD", "false";
    /// Way in which the certificates of etcd's members are verified: `system`, an absolute path of
    /// authorities, or `no`.
    ETCD_CERTIFICATE: Certificate = "etcd.certificate", "CXI_ETCD_CERTIFICATE", "system";
    /// The certificate that is presented to them.
    ETCD_IDENTITY: Option<PathBuf> = "etcd.client-certificate", "CXI_ETCD_CLIENT_CERTIFICATE", "";
    /// The key of that certificate.
    ETCD_KEY: Option<PathBuf> = "etcd.client-key", "CXI_ETCD_CLIENT_KEY", "";
    /// Time that a member may take to answer before the next one is asked.
    ETCD_TIMEOUT: Duration = "etcd.timeout", "CXI_ETCD_TIMEOUT", "2s";
}

/// The lock that commands which change services of this node share.
///
/// # Errors
/// A setting is invalid.
pub fn node_lock(settings: &Settings) -> Result<FileLock, SettingsError> {
    Ok(settings.file_lock(settings.get(&NODE_LOCK)?).wait(settings.get(&WAIT)?))
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
        #[allow(clippy::exhaustive_enums, reason = "the permitted values of a setting")]
        pub enum $name {
            $($(#[$about])* #[serde(rename = $word)] $variant),*
        }

        impl $name {
            /// The permitted values.
            pub const WORDS: &'static [&'static str] = &[$($word),*];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $word,)*
                })
            }
        }

        impl Value for $name {
            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(format!(
                        "invalid value '{text}': expected {}",
                        Self::WORDS.join(" or ")
                    )),
                }
            }
        }
    };
}

words! {
    /// Store of the pool.
    StoreName {
        /// In a file, of one controller.
        File = "file",
        /// In etcd, for controllers that fail over.
        Etcd = "etcd",
    }
}

words! {
    /// Jobs that get something.
    Allowed {
        /// All jobs.
        All = "all",
        /// The jobs that ask for it.
        User = "user",
        /// No job.
        None = "none",
    }
}

words! {
    /// State that the default service, which is open to everyone, should have.
    DefaultService {
        /// Disabled: only the scheduler's jobs use the NICs.
        Disabled = "disabled",
        /// Enabled, for programs that no scheduler starts.
        Enabled = "enabled",
        /// Either.
        Any = "any",
    }
}

impl DefaultService {
    /// Returns whether it should be enabled; `None` if that does not matter.
    #[must_use]
    pub const fn should_be_enabled(self) -> Option<bool> {
        match self {
            Self::Disabled => Some(false),
            Self::Enabled => Some(true),
            Self::Any => None,
        }
    }
}

words! {
    /// Policy for the number of each resource that a job gets for each unit of its size.
    PolicyName {
        /// HPE's recommendation, which Flux uses.
        Hpe = "hpe",
        /// Slurm's shares.
        Slurm = "slurm",
    }
}

impl PolicyName {
    /// The policy of this name.
    #[must_use]
    pub fn policy(self) -> LimitPolicy {
        match self {
            Self::Hpe => LimitPolicy::hpe_recommended(),
            Self::Slurm => LimitPolicy::slurm(),
        }
    }
}

words! {
    /// Reaction if not enough is available.
    ModeName {
        /// Refuse the job.
        Strict = "strict",
        /// Reserve what is available, and warn.
        ScaleBack = "scale-back",
        /// Reserve nothing, and share everything.
        BestEffort = "best-effort",
    }
}

words! {
    /// Way in which a workload manager authenticates itself to the fabric manager.
    Auth {
        /// A token for a client ID and secret.
        Oauth = "oauth",
        /// The password of the user `cxi`.
        Basic = "basic",
    }
}
