//! Hardware collectives: the variables through which libfabric finds the fabric manager.
//!
//! | variable | value |
//! |---|---|
//! | `FI_CXI_HWCOLL_MIN_NODES` | smallest job that gets addresses |
//! | `FI_CXI_HWCOLL_ADDRS_PER_JOB` | addresses reserved for the job |
//! | `FI_CXI_COLL_JOB_ID` | name of the reservation at the fabric manager |
//! | `FI_CXI_COLL_JOB_STEP_ID` | name of the job within the reservation |
//! | `FI_CXI_COLL_MCAST_TOKEN` | the reservation's session token: any process that has it may make and destroy trees |
//! | `FI_CXI_COLL_FABRIC_MGR_URL` | where trees are made |
//! | `FI_CXI_COLL_FABRIC_MGR_CACERT` | how the fabric manager's certificate is verified |
//!
//! libfabric verifies the certificate only if the last one is `yes` or a path, so a [`Certificate`]
//! must be chosen here; there is no default. libfabric puts the two ids into JSON without escaping,
//! so a quote in one would corrupt the request: the alphabet of [`JobId`] and [`StepId`] has none.
//! libfabric only logs the first two variables; the fabric manager enforces the number of
//! addresses, and the MPI library the job size.
//!
//! ```
//! use cxi_site::collectives::{Certificate, CollectivesEnv, Reservation};
//!
//! let reservation = Reservation::new(
//!     "cluster-4711".parse()?,
//!     "secret",
//!     "https://fm.example/fabric/collectives/multicasts",
//!     Certificate::System,
//! )?;
//! let env =
//!     CollectivesEnv::new(reservation, "ƒab/ƒcd".parse()?).min_nodes(64).addresses_per_job(23);
//! assert!(env.vars().contains(&("FI_CXI_COLL_FABRIC_MGR_CACERT", "yes".to_owned())));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

use std::ffi::OsString;
use std::fmt;

use crate::{JobId, NameError, StepId};

mod preflight;

pub use preflight::{PreflightFinding, PreflightSeverity, preflight};

const MIN_NODES: &str = "FI_CXI_HWCOLL_MIN_NODES";
const ADDRS_PER_JOB: &str = "FI_CXI_HWCOLL_ADDRS_PER_JOB";
const JOB_ID: &str = "FI_CXI_COLL_JOB_ID";
const STEP_ID: &str = "FI_CXI_COLL_JOB_STEP_ID";
const TOKEN: &str = "FI_CXI_COLL_MCAST_TOKEN";
const URL: &str = "FI_CXI_COLL_FABRIC_MGR_URL";
const CACERT: &str = "FI_CXI_COLL_FABRIC_MGR_CACERT";

/// The variable of a job's traffic classes, one of which its multicast trees use.
pub const TCS: &str = "SLINGSHOT_TCS";

/// The variables to remove before a job's own are set, or if it gets none.
pub const CLEAR: [&str; 7] = [MIN_NODES, ADDRS_PER_JOB, JOB_ID, STEP_ID, TOKEN, URL, CACERT];

/// Way in which libfabric verifies the fabric manager's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Certificate {
    /// With the system's certificate authorities.
    System,
    /// With the authorities in this file or directory, an absolute path.
    Path(String),
    /// Not at all: anyone on the network path can read the token and impersonate the fabric
    /// manager.
    Unverified,
}

/// A job's reservation at the fabric manager. Its `Debug` form does not show the token.
#[derive(Clone, PartialEq, Eq)]
pub struct Reservation {
    id: JobId,
    token: String,
    url: String,
    certificate: Certificate,
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("id", &self.id)
            .field("url", &self.url)
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

impl Reservation {
    /// A reservation as the fabric manager returned it: the id under which it was requested
    /// (prefixed with the cluster's name, so that two schedulers do not clean up each other's), its
    /// session token, and the URL at which trees are made; and how libfabric verifies the fabric
    /// manager.
    ///
    /// # Errors
    /// [`CollectivesError`]: an id that would change the path of requests, a token or URL that
    /// libfabric cannot send, or a path that is not absolute.
    pub fn new(
        id: JobId,
        token: &str,
        url: &str,
        certificate: Certificate,
    ) -> Result<Self, CollectivesError> {
        if id.as_str().contains(['/', '#']) {
            return Err(CollectivesError::Id { id });
        }
        if token.is_empty() {
            return Err(CollectivesError::Token("empty"));
        }
        if !sendable(token) {
            return Err(CollectivesError::Token("not fit for a header"));
        }
        let url = url.to_owned();
        if !has_host(&url) || !sendable(&url) {
            return Err(CollectivesError::Url { url });
        }
        match certificate {
            Certificate::Path(path) if !path.starts_with('/') || path.contains('\0') => {
                Err(CollectivesError::CertificatePath { path })
            }
            certificate => Ok(Self { id, token: token.to_owned(), url, certificate }),
        }
    }

    /// The id of the reservation.
    #[must_use]
    pub const fn id(&self) -> &JobId {
        &self.id
    }

    /// The session token.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The URL at which trees are made.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the way in which the fabric manager is verified.
    #[must_use]
    pub const fn certificate(&self) -> &Certificate {
        &self.certificate
    }
}

/// Returns whether it is the address of a server: a scheme of HTTP, and a host.
pub(crate) fn has_host(url: &str) -> bool {
    let mut schemes = ["http://", "https://"].iter();
    let host = schemes.find_map(|scheme| url.strip_prefix(scheme));
    host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
}

fn sendable(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    text.bytes().all(fits)
}

/// The variables of one job that may use hardware collectives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectivesEnv {
    reservation: Reservation,
    step: StepId,
    min_nodes: Option<u32>,
    addresses: Option<u32>,
}

impl CollectivesEnv {
    /// The variables of the job `step` within a reservation. The name is unique there, such as the
    /// path of job ids in a tree of Flux instances.
    #[must_use]
    pub const fn new(reservation: Reservation, step: StepId) -> Self {
        Self { reservation, step, min_nodes: None, addresses: None }
    }

    /// Sets the smallest job that gets addresses.
    #[must_use]
    pub const fn min_nodes(mut self, nodes: u32) -> Self {
        self.min_nodes = Some(nodes);
        self
    }

    /// Sets how many addresses the reservation has.
    ///
    /// HPE recommends one job's share of a system that is full of the smallest jobs, divided among
    /// the jobs of a node: `total * smallest / system / jobs`, rounded down. A NIC can be the root
    /// of only one tree, so more addresses than the job has NICs are useless.
    #[must_use]
    pub const fn addresses_per_job(mut self, addresses: u32) -> Self {
        self.addresses = Some(addresses);
        self
    }

    /// The reservation.
    #[must_use]
    pub const fn reservation(&self) -> &Reservation {
        &self.reservation
    }

    /// The name of the job within the reservation, under which its trees are cleaned up.
    #[must_use]
    pub const fn step(&self) -> &StepId {
        &self.step
    }

    /// The names and values to set. Remove all of [`CLEAR`] first.
    #[must_use]
    pub fn vars(&self) -> Vec<(&'static str, String)> {
        let Reservation { id, token, url, certificate } = &self.reservation;
        let certificate = match certificate {
            Certificate::System => "yes",
            Certificate::Path(path) => path,
            Certificate::Unverified => "no",
        };
        let number = |name, value: Option<u32>| value.map(|value| (name, value.to_string()));
        let numbers = [number(MIN_NODES, self.min_nodes), number(ADDRS_PER_JOB, self.addresses)];
        let texts = [
            (JOB_ID, id.to_string()),
            (STEP_ID, self.step.to_string()),
            (TOKEN, token.clone()),
            (URL, url.clone()),
            (CACERT, certificate.to_owned()),
        ];
        numbers.into_iter().flatten().chain(texts).collect()
    }

    /// Returns what a job inside another one (a sub-instance) gets: the outer job's reservation,
    /// read through `get`, with its own name within it. `None` if the outer job has no
    /// reservation.
    ///
    /// If the outer job does not mention a certificate, it is not verified; libfabric does the
    /// same.
    ///
    /// # Errors
    /// [`CollectivesError`] says which variable is wrong and why.
    pub fn inherit(
        get: impl Fn(&'static str) -> Option<OsString>,
        step: StepId,
    ) -> Result<Option<Self>, CollectivesError> {
        let text = |name| {
            let value = get(name).filter(|value| !value.is_empty());
            let text = value.map(OsString::into_string).transpose();
            text.map_err(|_| CollectivesError::NotText { name })
        };
        let number = |name| match text(name)? {
            None => Ok(None),
            Some(value) => match value.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(CollectivesError::Number { name, value }),
            },
        };
        let (id, token, url) = (text(JOB_ID)?, text(TOKEN)?, text(URL)?);
        let set = [(JOB_ID, &id), (TOKEN, &token), (URL, &url)];
        let Some(present) = set.iter().find(|(_, value)| value.is_some()) else { return Ok(None) };
        let missing = |name| CollectivesError::Missing { name, present: present.0 };
        let id = id.ok_or_else(|| missing(JOB_ID))?;
        let id =
            JobId::new(&id).map_err(|reason| CollectivesError::Name { name: JOB_ID, reason })?;
        let token = token.ok_or_else(|| missing(TOKEN))?;
        let url = url.ok_or_else(|| missing(URL))?;
        let certificate = match text(CACERT)?.as_deref() {
            None | Some("no") => Certificate::Unverified,
            Some("yes") => Certificate::System,
            Some(path) => Certificate::Path(path.to_owned()),
        };
        let reservation = Reservation::new(id, &token, &url, certificate)?;
        Ok(Some(Self {
            reservation,
            step,
            min_nodes: number(MIN_NODES)?,
            addresses: number(ADDRS_PER_JOB)?,
        }))
    }
}

/// Reason for which libfabric could not use a reservation or variables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CollectivesError {
    /// The reservation's id would change the path of a request to the fabric manager.
    #[error(
        "{id} cannot name a reservation: '/' and '#' would change the path of requests to the fabric manager"
    )]
    Id {
        /// The id.
        id: JobId,
    },
    /// The token contains a character that no HTTP header may have. The token itself is not shown.
    #[error(
        "the session token is {0}: expected printable ASCII without blanks, quotes and backslashes"
    )]
    Token(&'static str),
    /// The address is not an HTTP URL.
    #[error(
        "fabric manager address {url:?}: expected http:// or https:// and a host, without blanks, quotes and backslashes"
    )]
    Url {
        /// The address.
        url: String,
    },
    /// The certificate path is not absolute.
    #[error("certificate path {path:?}: expected an absolute path")]
    CertificatePath {
        /// The path.
        path: String,
    },
    /// A variable is not set, but others are.
    #[error("{name} is not set, but {present} is")]
    Missing {
        /// The variable that is not set.
        name: &'static str,
        /// The variable that is set.
        present: &'static str,
    },
    /// A variable is not UTF-8 text.
    #[error("{name} is not UTF-8 text")]
    NotText {
        /// The variable.
        name: &'static str,
    },
    /// A variable is not a number.
    #[error("{name} is {value:?}: expected a number")]
    Number {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// A variable is not a valid id.
    #[error("{name}: {reason}")]
    Name {
        /// The variable.
        name: &'static str,
        /// The fault of the name.
        reason: NameError,
    },
}
