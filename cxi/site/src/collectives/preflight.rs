//! Faults of a job's variables, found before libfabric finds them by hanging.

use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use super::{CACERT, JOB_ID, STEP_ID, TCS, TOKEN, URL};

const TIMEOUT: &str = "FI_CXI_COLL_TIMEOUT_USEC";
const RETRY: &str = "FI_CXI_COLL_RETRY_USEC";
// libfabric cuts larger values of both variables down to these.
const LONGEST_TIMEOUT: u64 = 20_000_000;
const LONGEST_RETRY: u64 = 32_000;
/// Below this, libfabric's root rearms the switches for practically every operation: it halves the
/// whole seconds and the remaining microseconds separately, and takes the latter for nanoseconds.
const SHORT_TIMEOUT: u64 = 2_000_000;
/// LOW_LATENCY, the traffic class of reductions.
const LOW_LATENCY: u32 = 2;

/// Severity of a [`PreflightFinding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PreflightSeverity {
    /// It works, but not as well or as safely as it could.
    Weak,
    /// Joining a collective group fails: the job runs without hardware collectives.
    Fails,
    /// Joining never returns.
    Hangs,
}

/// Something that is wrong with a variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PreflightFinding {
    /// The variable.
    pub variable: &'static str,
    /// Severity of the finding.
    pub severity: PreflightSeverity,
    /// The fault, and its correction.
    pub message: String,
}

impl fmt::Display for PreflightFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.variable, self.message)
    }
}

/// Checks the variables of a job on the node where it runs, read through `get`, and returns the worst
/// problems first. `exists` says whether a path exists. `None` if the job has no reservation.
///
/// ```
/// use cxi_site::collectives::{preflight, PreflightSeverity};
///
/// let get = |name: &'static str| match name {
///     "FI_CXI_COLL_JOB_ID" => Some("alpha-17".into()),
///     "FI_CXI_COLL_JOB_STEP_ID" => Some("0".into()),
///     "FI_CXI_COLL_MCAST_TOKEN" => Some("secret".into()),
///     "FI_CXI_COLL_FABRIC_MGR_URL" => Some("https://fm/fabric/collectives/multicasts".into()),
///     "FI_CXI_COLL_FABRIC_MGR_CACERT" => Some("/etc/fm/ca.pem".into()),
///     _ => None,
/// };
/// let findings = preflight(get, |path| path.exists()).unwrap();
/// assert_eq!(findings[0].severity, PreflightSeverity::Hangs);
/// assert_eq!(
///     findings[0].to_string(),
///     "FI_CXI_COLL_FABRIC_MGR_CACERT: there is no /etc/fm/ca.pem on this node: libfabric would wait forever"
/// );
/// ```
#[must_use]
pub fn preflight(
    get: impl Fn(&'static str) -> Option<OsString>,
    exists: impl Fn(&Path) -> bool,
) -> Option<Vec<PreflightFinding>> {
    let values = [JOB_ID, STEP_ID, TOKEN, URL, CACERT, TIMEOUT, RETRY, TCS].map(|name| {
        let value = get(name).filter(|value| !value.is_empty());
        value.map(|value| (name, value.to_string_lossy().into_owned()))
    });
    let mut checks =
        Checks { values: values.into_iter().flatten().collect(), findings: Vec::new() };
    if [JOB_ID, TOKEN, URL].iter().all(|name| checks.get(name).is_none()) {
        return None;
    }
    checks.names();
    checks.server(exists);
    checks.times();
    checks.classes();
    checks.findings.sort_by_key(|finding| Reverse(finding.severity));
    Some(checks.findings)
}

/// The variables that are set, and what was found so far.
struct Checks {
    values: BTreeMap<&'static str, String>,
    findings: Vec<PreflightFinding>,
}

impl Checks {
    fn get(&self, name: &str) -> Option<String> {
        self.values.get(name).cloned()
    }

    fn find(
        &mut self,
        variable: &'static str,
        severity: PreflightSeverity,
        message: impl Into<String>,
    ) {
        self.findings.push(PreflightFinding { variable, severity, message: message.into() });
    }

    fn names(&mut self) {
        for name in [JOB_ID, TOKEN, URL] {
            if self.get(name).is_none() {
                self.find(name, PreflightSeverity::Fails, "it is not set");
            }
        }
        if self.get(STEP_ID).is_none() {
            let message = "it is not set: libfabric does not check that, and names the step (null)";
            self.find(STEP_ID, PreflightSeverity::Fails, message);
        }
        for name in [JOB_ID, STEP_ID] {
            if self.get(name).is_some_and(|id| id.contains(['\'', '"', '\\'])) {
                let message = "it has a quote or backslash, which libfabric sends without escaping";
                self.find(name, PreflightSeverity::Fails, message);
            }
        }
    }

    fn server(&mut self, exists: impl Fn(&Path) -> bool) {
        let url = self.get(URL);
        let scheme = url.as_deref().and_then(|url| url.split_once("://"));
        let scheme = scheme.map(|(scheme, _)| scheme.to_ascii_lowercase());
        let encrypted = scheme.as_deref() == Some("https");
        if let Some(url) = url {
            if scheme.as_deref() == Some("http") {
                let message = "the session token travels unencrypted: use https://";
                self.find(URL, PreflightSeverity::Weak, message);
            } else if !encrypted {
                let message = format!("libfabric ignores {url:?}: expected http:// or https://");
                self.find(URL, PreflightSeverity::Fails, message);
            }
            if url.ends_with('/') {
                let message = "libfabric adds '/' and an id: expected no '/' at its end";
                self.find(URL, PreflightSeverity::Weak, message);
            }
        }
        match self.get(CACERT).as_deref() {
            None | Some("no") if encrypted => {
                let message = "libfabric does not verify the server: expected yes or a path";
                self.find(CACERT, PreflightSeverity::Weak, message);
            }
            None | Some("yes" | "no") => {}
            Some(path) if exists(Path::new(path)) => {}
            Some(path) => {
                let message =
                    format!("there is no {path} on this node: libfabric would wait forever");
                self.find(CACERT, PreflightSeverity::Hangs, message);
            }
        }
    }

    fn times(&mut self) {
        for (name, most) in [(TIMEOUT, LONGEST_TIMEOUT), (RETRY, LONGEST_RETRY)] {
            let Some(value) = self.get(name) else { continue };
            let message = match value.parse::<u64>() {
                Err(_) => format!("invalid value {value:?}: expected a number of microseconds"),
                Ok(number) if !(1..=most).contains(&number) => {
                    format!("{number} is out of range: libfabric takes the nearest of 1 to {most}")
                }
                Ok(number) if name == TIMEOUT && number < SHORT_TIMEOUT => {
                    format!(
                        "below {SHORT_TIMEOUT}, switches are armed again for nearly every operation"
                    )
                }
                Ok(_) => continue,
            };
            self.find(name, PreflightSeverity::Weak, message);
        }
    }

    fn classes(&mut self) {
        let classes = self.get(TCS).and_then(|classes| {
            let digits = classes.strip_prefix("0x").or(classes.strip_prefix("0X"));
            digits.map_or(classes.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok())
        });
        if classes.is_some_and(|classes| classes & LOW_LATENCY == 0) {
            let message =
                "LOW_LATENCY (2) is not among the job's traffic classes: reductions travel by it";
            self.find(TCS, PreflightSeverity::Fails, message);
        }
    }
}
