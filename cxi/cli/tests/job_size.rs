//! Size of a job on a node, by the decision of the controller, its size and its user's options.

mod common;

use std::fs;

use common::cluster::Cluster;
use common::{Said, assert_contains, clean, command};

#[test]
fn a_job_gets_what_its_cpus_on_this_node_ask_for_and_what_its_user_says() {
    let cluster = Cluster::new("1024-1039");
    let txqs = |job: &str, network: &str, node: &str| {
        let reserve = ["job", "reserve", job, "--uid=1000", "--nodes=n[1-4]", "--network", network];
        cluster.cxi(&reserve).done();
        let this = cluster.node(node);
        let size = ["--cpus-per-node=2(x3),16", "--nodes=n[1-4]", "--node", node];
        let prolog = ["--json", "job", "prolog", "--job", job];
        let grant = this.cxi(&[&prolog[..], &size].concat()).json();
        let limits = grant["grant"]["services"][0]["granted"].as_array().unwrap();
        let txqs = limits.iter().find(|limit| limit["name"] == "TXQs").unwrap();
        txqs["res"].as_u64().unwrap()
    };
    assert_eq!(txqs("1", "", "n3"), 4);
    assert_eq!(txqs("2", "", "n4"), 32);
    assert_eq!(txqs("3", "depth=5", "n4"), 10);
    assert_eq!(txqs("4", "res_txqs=3", "n4"), 3);
    let reserve = ["job", "reserve", "5", "--uid=1000", "--nodes=n1", "--network=job_vni"];
    cluster.cxi(&reserve).prints("1028,1029\n");
    let wrong = cluster.cxi("job reserve 6 --uid=1 --nodes=n1 --network=fast");
    wrong.mentions(2, "invalid network option 'fast'");
}

#[test]
fn what_was_cut_reaches_the_user() {
    let cluster = Cluster::new("1024-1027");
    let node = cluster.node("n1");
    node.mock.take_queues();
    cluster.reserve("1", "n1").done();
    let said = node.prolog("1");
    said.mentions(0, "warning: less than the job's size asks for");
    let environment = node.cxi("job env --job=1").done();
    assert_contains(&environment, "export SLINGSHOT_CXI_SCALED_BACK=TXQs\n");
    let list = node.cxi("job list").done();
    assert_contains(&list, "scaled back: TXQs");
    let strict = cluster.node_with("n2", "mode = \"strict\"\n");
    fs::copy(node.mock.file(), strict.mock.file()).unwrap();
    cluster.reserve("2", "n2").done();
    assert_eq!(strict.prolog("2").code, 7);
    assert_eq!(strict.cxi("job list").done().lines().count(), 1, "nothing is left of it");
}

#[test]
fn more_jobs_than_le_pools_fit_a_node() {
    let cluster = Cluster::new("1024-1099");
    let node = cluster.node("n1");
    for job in 1..=17 {
        cluster.reserve(&job.to_string(), "n1").done();
        let said = node.prolog(&job.to_string());
        assert_eq!(said.code, 0, "{job}: {}", said.err);
        let cut = said.err.contains("LEs wanted, 0 available: all 15 LE pools are taken");
        assert_eq!(cut, job > 15, "{job}: {}", said.err);
    }
}

/// Number of VNIs that a job gets, or the option because of which it is refused.
type Expected = Result<usize, &'static str>;

/// The site's `single-node-vni` and `job-vni`, the number of nodes, the user's options, and the result.
const VNIS: [(&str, &str, &str, &str, Expected); 13] = [
    ("none", "none", "n1", "", Ok(0)),
    ("none", "none", "n[1-2]", "", Ok(1)),
    ("none", "none", "n1", "single_node_vni", Err("single_node_vni")),
    ("user", "none", "n1", "", Ok(0)),
    ("user", "none", "n1", "single_node_vni", Ok(1)),
    ("all", "none", "n1", "", Ok(1)),
    ("all", "none", "n1", "job_vni", Err("job_vni")),
    ("all", "user", "n[1-2]", "", Ok(1)),
    ("all", "user", "n[1-2]", "job_vni", Ok(2)),
    ("all", "all", "n[1-2]", "", Ok(2)),
    ("user", "all", "n1", "single_node_vni", Ok(2)),
    ("none", "all", "n1", "", Ok(0)),
    ("all", "all", "n[1-2]", "no_vni,job_vni", Ok(0)),
];

#[test]
fn a_job_gets_the_vnis_that_its_site_and_its_user_want() {
    let cluster = Cluster::new("1024-1063");
    for (number, (single, shared, nodes, network, expected)) in VNIS.into_iter().enumerate() {
        let job = number.to_string();
        let mut reserve = command(&["job", "reserve", &job, "--uid=1000"]);
        reserve.args(["--nodes", nodes, "--network", network]);
        clean(&mut reserve)
            .env("CXI_CONFIG", cluster.path().join("controller.toml"))
            .env("CXI_SINGLE_NODE_VNI", single)
            .env("CXI_JOB_VNI", shared);
        let said = Said::from(reserve.output().unwrap());
        match expected {
            Ok(count) => {
                let vnis = said.done();
                let vnis = vnis.trim().split(',').filter(|vni| !vni.is_empty());
                assert_eq!(vnis.count(), count, "case {number}");
            }
            Err(option) => {
                let told = format!("error: network option {option}: this site does not allow it");
                said.refused(2, &told);
            }
        }
    }
}
