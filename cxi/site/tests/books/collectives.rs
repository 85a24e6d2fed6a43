//! Hardware collectives: the variables, and what libfabric cannot be given.

use std::ffi::OsStr;

use cxi_site::collectives::{
    CLEAR, Certificate, CollectivesEnv, CollectivesError, PreflightSeverity, Reservation, preflight,
};
use cxi_site::{JobId, StepId};

use crate::says;

const URL: &str = "https://fm.example:8443/fabric/collectives/multicasts";

fn named(
    job: &str,
    token: &str,
    url: &str,
    certificate: Certificate,
) -> Result<Reservation, CollectivesError> {
    Reservation::new(JobId::new(job).unwrap(), token, url, certificate)
}

fn reservation(certificate: Certificate) -> Reservation {
    named("cluster-4711", "s3cret.t0ken", URL, certificate).unwrap()
}

fn step(name: &str) -> StepId {
    StepId::new(name).unwrap()
}

fn inherit<V: AsRef<OsStr>>(
    vars: &[(&str, V)],
) -> Result<Option<CollectivesEnv>, CollectivesError> {
    let get = |name: &'static str| {
        let var = vars.iter().find(|(key, _)| *key == name);
        var.map(|(_, value)| value.as_ref().to_owned())
    };
    CollectivesEnv::inherit(get, step("inner"))
}

#[test]
fn all_seven_variables_are_set() {
    let env = CollectivesEnv::new(
        reservation(Certificate::Path("/etc/fm/ca.pem".into())),
        step("ƒab/ƒcd"),
    )
    .min_nodes(64)
    .addresses_per_job(23);
    let expected = [
        ("FI_CXI_HWCOLL_MIN_NODES", "64"),
        ("FI_CXI_HWCOLL_ADDRS_PER_JOB", "23"),
        ("FI_CXI_COLL_JOB_ID", "cluster-4711"),
        ("FI_CXI_COLL_JOB_STEP_ID", "ƒab/ƒcd"),
        ("FI_CXI_COLL_MCAST_TOKEN", "s3cret.t0ken"),
        ("FI_CXI_COLL_FABRIC_MGR_URL", URL),
        ("FI_CXI_COLL_FABRIC_MGR_CACERT", "/etc/fm/ca.pem"),
    ];
    let expected = expected.map(|(name, value)| (name, value.to_owned()));
    assert_eq!(env.vars(), expected);
    assert_eq!(CLEAR, expected.map(|(name, _)| name));
    for (certificate, value) in [(Certificate::System, "yes"), (Certificate::Unverified, "no")] {
        let env = CollectivesEnv::new(reservation(certificate), step("0"));
        assert_eq!(env.vars().last().unwrap().1, value);
    }
}

#[test]
fn the_token_is_not_shown() {
    let env = CollectivesEnv::new(reservation(Certificate::System), step("0"));
    let shown = format!("{env:?}");
    assert!(shown.contains("cluster-4711") && !shown.contains("s3cret"), "{shown}");
    says(
        named("a", "s3cret\"", URL, Certificate::System),
        "the session token is not fit for a header: expected printable ASCII without blanks, quotes and backslashes",
    );
}

#[test]
fn what_would_corrupt_a_request_is_refused() {
    for bad in ["4711'", "4711\"", "47\\11", "47 11", "4711\n", "{4711}"] {
        assert!(JobId::new(bad).is_err() && StepId::new(bad).is_err(), "{bad}");
    }
    says(
        named("ƒab/ƒcd", "t", URL, Certificate::System),
        "ƒab/ƒcd cannot name a reservation: '/' and '#' would change the path of requests to the fabric manager",
    );
    for token in ["", "a b", "a\nb", "a\\b", "é"] {
        let refused = named("a", token, URL, Certificate::System);
        let of_token = matches!(refused, Err(CollectivesError::Token(_)));
        assert!(of_token, "{token:?}");
    }
    for url in [
        "",
        "fm.example",
        "ftp://fm.example",
        "https://",
        "http:///path",
        "https://a b",
        "https://a\"b",
    ] {
        let refused = named("a", "t", url, Certificate::System);
        let of_url = matches!(refused, Err(CollectivesError::Url { .. }));
        assert!(of_url, "{url:?}");
    }
    says(
        named("a", "t", URL, Certificate::Path("ca.pem".into())),
        "certificate path \"ca.pem\": expected an absolute path",
    );
}

#[test]
fn a_sub_instance_inherits_all_but_the_step() {
    let outer = CollectivesEnv::new(reservation(Certificate::System), step("outer"))
        .min_nodes(64)
        .addresses_per_job(23);
    let inner = inherit(&outer.vars()).unwrap().unwrap();
    assert_eq!(inner.reservation(), outer.reservation());
    assert_eq!(inner.step().as_str(), "inner");
    let pairs = inner.vars().into_iter().zip(outer.vars());
    assert_eq!(pairs.filter(|(a, b)| a != b).count(), 1);
    assert_eq!(inherit::<&str>(&[]), Ok(None));
    assert_eq!(inherit(&[("FI_CXI_COLL_JOB_STEP_ID", "7")]), Ok(None));
}

#[test]
fn a_broken_environment_is_refused_with_the_variable() {
    let whole = [
        ("FI_CXI_COLL_JOB_ID", "4711"),
        ("FI_CXI_COLL_MCAST_TOKEN", "t"),
        ("FI_CXI_COLL_FABRIC_MGR_URL", URL),
    ];
    let found = inherit(&whole).unwrap().unwrap();
    assert_eq!(*found.reservation().certificate(), Certificate::Unverified);
    let why = "FI_CXI_COLL_FABRIC_MGR_URL is not set, but FI_CXI_COLL_JOB_ID is";
    says(inherit(&whole[..2]), why);
    let why = "FI_CXI_COLL_JOB_ID is not set, but FI_CXI_COLL_MCAST_TOKEN is";
    says(inherit(&whole[1..]), why);
    for (name, value, message) in [
        (
            "FI_CXI_HWCOLL_MIN_NODES",
            "many",
            "FI_CXI_HWCOLL_MIN_NODES is \"many\": expected a number",
        ),
        (
            "FI_CXI_COLL_FABRIC_MGR_CACERT",
            "maybe",
            "certificate path \"maybe\": expected an absolute path",
        ),
    ] {
        let mut vars = whole.to_vec();
        vars.push((name, value));
        says(inherit(&vars), message);
    }
    let quoted = [("FI_CXI_COLL_JOB_ID", "47'11"), whole[1], whole[2]];
    let error = inherit(&quoted).unwrap_err().to_string();
    let start = "FI_CXI_COLL_JOB_ID: job id \"47'11\" has ";
    assert!(error.starts_with(start), "{error}");
}

/// A variable, and what is said of it.
const WRONG: &str = r#"FI_CXI_COLL_JOB_ID="" fails: it is not set
FI_CXI_COLL_MCAST_TOKEN="" fails: it is not set
FI_CXI_COLL_FABRIC_MGR_URL="" fails: it is not set
FI_CXI_COLL_JOB_STEP_ID="" fails: it is not set: libfabric does not check that, and names the step (null)
FI_CXI_COLL_JOB_STEP_ID="a'b" fails: it has a quote or backslash, which libfabric sends without escaping
FI_CXI_COLL_FABRIC_MGR_URL="fm.example/multicasts" fails: libfabric ignores "fm.example/multicasts": expected http:// or https://
FI_CXI_COLL_FABRIC_MGR_URL="HTTP://fm/multicasts" weak: the session token travels unencrypted: use https://
FI_CXI_COLL_FABRIC_MGR_URL="https://fm/multicasts/" weak: libfabric adds '/' and an id: expected no '/' at its end
FI_CXI_COLL_FABRIC_MGR_CACERT="/nowhere" hangs: there is no /nowhere on this node: libfabric would wait forever
FI_CXI_COLL_FABRIC_MGR_CACERT="no" weak: libfabric does not verify the server: expected yes or a path
FI_CXI_COLL_TIMEOUT_USEC="32000" weak: below 2000000, switches are armed again for nearly every operation
FI_CXI_COLL_TIMEOUT_USEC="0" weak: 0 is out of range: libfabric takes the nearest of 1 to 20000000
FI_CXI_COLL_RETRY_USEC="soon" weak: invalid value "soon": expected a number of microseconds
SLINGSHOT_TCS="0x8" fails: LOW_LATENCY (2) is not among the job's traffic classes: reductions travel by it"#;

/// Every variable that libfabric hangs at, fails at, or does less well with.
#[test]
fn preflight_names_what_is_wrong() {
    let good = [
        ("FI_CXI_COLL_JOB_ID", "cluster-1"),
        ("FI_CXI_COLL_JOB_STEP_ID", "0"),
        ("FI_CXI_COLL_MCAST_TOKEN", "secret"),
        ("FI_CXI_COLL_FABRIC_MGR_URL", URL),
        ("FI_CXI_COLL_FABRIC_MGR_CACERT", "/etc/fm/ca.pem"),
        ("FI_CXI_COLL_TIMEOUT_USEC", "20000000"),
        ("SLINGSHOT_TCS", "0xa"),
    ];
    let look = |name: &str, value: &str| {
        let get = |variable: &'static str| {
            let usual = good.iter().find(|(there, _)| *there == variable);
            let usual = usual.map_or("", |(_, value)| *value);
            Some(if variable == name { value } else { usual }.into())
        };
        let findings = preflight(get, |path| path == "/etc/fm/ca.pem").unwrap();
        findings.into_iter().map(|found| (found.severity, found.to_string())).collect::<Vec<_>>()
    };
    assert_eq!(look("", ""), []);
    for line in WRONG.lines() {
        let (name, rest) = line.split_once("=\"").unwrap();
        let (value, rest) = rest.split_once("\" ").unwrap();
        let (severity, message) = rest.split_once(": ").unwrap();
        let severity = match severity {
            "hangs" => PreflightSeverity::Hangs,
            "fails" => PreflightSeverity::Fails,
            "weak" => PreflightSeverity::Weak,
            other => panic!("{other}"),
        };
        let expected = (severity, format!("{name}: {message}"));
        assert_eq!(look(name, value), [expected], "{line}");
    }
    assert_eq!(preflight(|_| None, |_| true), None);
}
