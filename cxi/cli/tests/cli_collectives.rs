//! `cxi collectives`, on a mock fabric manager.

mod common;

use std::fs;

use common::{Arguments, Said, assert_contains, command};
use cxi_fabric_manager::{Delivery, Endpoint, Fault};
use cxi_test_kit::FabricManager;
use serde_json::{Value, json};

/// Commands of a workload manager.
trait Commands {
    fn run(&self, arguments: &[&str], variables: &Value) -> Said;

    fn cxi(&self, arguments: &(impl Arguments + ?Sized)) -> Said {
        self.run(&arguments.words(), &json!({}))
    }
}

impl Commands for FabricManager {
    fn run(&self, arguments: &[&str], variables: &Value) -> Said {
        let mut command = command("collectives");
        command.args(arguments.words());
        for (name, value) in [
            ("FABRIC_MANAGER", self.url().as_str()),
            ("CLUSTER", "alpha"),
            ("FABRIC_CREDENTIALS", &self.files.path().display().to_string()),
            ("FABRIC_MANAGER_DEADLINE", "1s"),
            ("FABRIC_MANAGER_CERTIFICATE", "no"),
        ] {
            command.env(format!("CXI_{name}"), value);
        }
        for (name, value) in variables.as_object().unwrap() {
            command.env(name, value.as_str().unwrap());
        }
        command.output().unwrap().into()
    }
}

#[test]
fn a_job_from_reservation_to_release() {
    let site = FabricManager::start();
    let reserve = "reserve 17 --limit=4 --min-nodes=64 --json";
    let said = site.cxi(reserve).json();
    let environment = &said["environment"];
    assert_eq!(said["clear"], json!([]));
    assert_eq!(environment["FI_CXI_COLL_JOB_ID"], "alpha-17");
    assert_eq!(environment["FI_CXI_HWCOLL_MIN_NODES"], "64");
    assert_eq!(environment["FI_CXI_HWCOLL_ADDRS_PER_JOB"], "4");
    assert_eq!(site.state().jobs["alpha-17"].limit, 4);
    let shell =
        site.run(&["reserve", "17", "--limit=4"], &json!({"CXI_FABRIC_MANAGER_AUTH": "basic"}));
    let shell = shell.done();
    let url = site.multicasts_url();
    let url = format!("export FI_CXI_COLL_FABRIC_MGR_URL='{url}'\n");
    assert_contains(&shell, &url);
    assert_contains(&shell, "unset FI_CXI_HWCOLL_MIN_NODES\n");

    // With the session token from the environment, and with the workload manager's token.
    let said = site.run(&["step-end", "0"], environment);
    said.prints("Ended step 0\n");
    site.cxi("step-end 0 --job=17").prints("Ended step 0\n");
    site.cxi("release 17").prints("Released the reservation of job 17\n");
    let again = site.cxi("release 17");
    again.ended(8, "Nothing to do: job 17 has no reservation\n");
    site.assert_quiet();
}

#[test]
fn a_reservation_that_fails_is_the_jobs_only_if_it_must_be() {
    let site = FabricManager::start();
    site.inject(Fault::status(507).on(Endpoint::CreateJob));
    let reason =
        "cannot reserve 4 multicast trees for job 17: the answer is 507: status 507, as requested";
    let without = site.cxi("reserve 17 --limit=4");
    assert_eq!((without.code, without.out.lines().count()), (0, 7));
    let unset = |line: &str| line.starts_with("unset FI_CXI_");
    assert!(without.out.lines().all(unset), "{}", without.out);
    let warning = format!("warning: the job starts without hardware collectives: {reason}\n");
    assert_eq!(without.err, warning);
    site.cxi("reserve 17 --limit=4 --required").refused(7, &format!("error: {reason}"));
    site.inject(Fault::from(Delivery::Silence).on(Endpoint::DeleteJob));
    site.cxi("release 17").refused(
        4,
        "error: cannot release the reservation of job 17: gave up after 1s: no answer in time",
    );
}

#[test]
fn a_sweep_spares_the_living_and_the_others() {
    let site = FabricManager::start();
    for job in ["1", "2", "3"] {
        site.cxi(&["reserve", job, "--limit=1"]).done();
    }
    site.run(&["reserve", "1", "--limit=1"], &json!({"CXI_CLUSTER": "alpha1"})).done();
    let list = site.files.path().join("live");
    fs::write(&list, "2\n\n9\n").unwrap();
    let from = format!("--live-from={}", list.display());
    site.cxi(&["sweep", &from, "--dry-run"])
        .prints("Would release the reservation of job 1\nWould release the reservation of job 3\n");
    let swept = site.cxi(&["sweep", &from, "--json"]).json();
    let expected = json!({
        "dry_run": false, "live": ["2"], "released": ["1", "3"], "failed": [], "others": 1,
    });
    assert_eq!(swept, expected);
    assert_eq!(site.cxi("sweep --live=2,9").code, 8);
    site.cxi("sweep --live-from=/nowhere").mentions(2, "Nothing was released.\n");
    fs::write(&list, "2\na b\n").unwrap();
    site.cxi(&["sweep", &from]).mentions(2, "live: line 2: job id \"a b\" has ' '");
    assert_eq!(site.cxi("sweep").code, 2);
    site.cxi("sweep --none-live").prints("Released the reservation of job 2\n");
    let left: Vec<_> = site.state().jobs.into_keys().collect();
    assert_eq!(left, ["alpha1-1"]);
}

#[test]
fn what_hangs_libfabric_is_found_before() {
    let site = FabricManager::start();
    let none = site.cxi("preflight");
    none.ended(8, "No reservation: FI_CXI_COLL_… are not set\n");
    let mut variables = json!({
        "FI_CXI_COLL_JOB_ID": "alpha-17",
        "FI_CXI_COLL_JOB_STEP_ID": "0",
        "FI_CXI_COLL_MCAST_TOKEN": "secret",
        "FI_CXI_COLL_FABRIC_MGR_URL": "https://fm/fabric/collectives/multicasts",
        "FI_CXI_COLL_FABRIC_MGR_CACERT": "/",
    });
    site.run(&["preflight"], &variables).prints("No problems found.\n");
    variables["FI_CXI_COLL_FABRIC_MGR_CACERT"] = "/nowhere/ca.pem".into();
    site.run(&["preflight"], &variables).ended(
        9,
        "FI_CXI_COLL_FABRIC_MGR_CACERT: there is no /nowhere/ca.pem on this node: libfabric would wait forever\n",
    );
}

#[test]
fn wrong_words_are_refused() {
    let site = FabricManager::start();
    for (arguments, message) in [
        (&["reserve", "1-2", "--limit=1", "--required"][..], "expected no '-', '/' or '#'"),
        (&["step-end", "0"], "no --job, and the environment has no FI_CXI_COLL_JOB_ID"),
    ] {
        site.cxi(arguments).mentions(2, message);
    }
    for (variable, value, message) in [
        ("CXI_FABRIC_MANAGER", "fm", "expected http:// or https:// and a host"),
        ("CXI_FABRIC_MANAGER_CERTIFICATE", "ca.pem", "expected system, no or an absolute path"),
        ("CXI_CLUSTER", "a/b", "invalid cluster name \"a/b\""),
        (
            "CXI_FABRIC_MANAGER_CLIENT_KEY",
            "/k",
            "expected both fabric-manager.client-certificate and fabric-manager.client-key, or \
             neither",
        ),
    ] {
        site.run(&["release", "1"], &json!({variable: value})).mentions(2, message);
    }
}
