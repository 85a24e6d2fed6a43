//! The fabric manager of a cluster, and the jobs that use it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Duration;

use cxi_fabric_manager::model::TreeRequest;
use cxi_site::StepId;
use cxi_site::collectives::{Certificate, CollectivesEnv};
use cxi_site::fabric::{Http, HttpRequest, HttpTransport as _, Patience, end_inherited_step};
use cxi_test_kit::Directory;
use cxi_tests::node::{
    self, OPEN, Run, Served, client, errors, eventually, kill, need_node, printed, server, sorted,
};
use serde_json::{Value, json};

const CXI: &str = env!("CARGO_BIN_EXE_test-cxi");

fn state(cluster: &Served) -> Value {
    cluster.state_of(&[])["fabric_manager"]["state"].clone()
}

fn quiet() -> Value {
    json!({"jobs": {}, "roots": {}})
}

/// The command `cxi collectives` needs no options there.
#[test]
fn workload_managers_on_all_nodes_reach_it() {
    need_node!();
    for network in [&[] as &[&str], &["--network"]] {
        let options = [&["--nodes", "2", "--fabric-manager"], network].concat();
        let cluster = Served::cluster(&options);
        let on = |node, arguments: &[&str]| {
            let program = [&[CXI, "collectives"], arguments].concat();
            printed(&cluster.on(node, &program))
        };
        let variables = on("n1", &["reserve", "7", "--limit", "3", "--required"]);
        assert!(variables.contains("export FI_CXI_COLL_JOB_ID='mock-7'"), "{variables}");
        let jobs = json!({"mock-7": {"limit": 3, "steps": {}}});
        assert_eq!(state(&cluster)["jobs"], jobs);
        let basic = ["env", "CXI_FABRIC_MANAGER_AUTH=basic", CXI];
        let release = [&basic[..], &["collectives", "release", "7"]].concat();
        printed(&cluster.on("n2", &release));
        assert_eq!(state(&cluster), quiet());
        // A node that boots finds it again.
        cluster.order(&["--node", "n2", "reboot"]);
        on("n2", &["reserve", "8", "--limit", "1", "--required"]);
        on("n1", &["sweep", "--none-live"]);
        assert_eq!(state(&cluster), quiet());
    }
}

#[test]
fn a_job_has_a_reservation_as_long_as_it_runs() {
    need_node!();
    let cluster = Served::cluster(&["--nodes", "2", "--fabric-manager"]);
    let everywhere = |program: &[&str]| {
        let mut command = server(["cluster", "run", "--dir", &cluster.dir(), "--"]);
        command.args(program);
        command
    };
    let show = "echo $FI_CXI_COLL_JOB_ID $FI_CXI_COLL_JOB_STEP_ID $FI_CXI_COLL_MCAST_TOKEN; \
                echo $FI_CXI_COLL_FABRIC_MGR_URL";
    let output = everywhere(&["sh", "-c", show]).output().unwrap();
    let mut lines = sorted(&output);
    lines.dedup();
    let url = cluster.state_of(&[])["fabric_manager"]["multicasts_url"].clone();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(json!(lines[0]), url);
    assert!(lines[1].starts_with("mock-1 0 session-"), "{lines:?}");
    assert_eq!(state(&cluster), quiet());

    let word = format!("9{}", std::process::id());
    let mut job = everywhere(&["sleep", &word]).spawn().unwrap();
    eventually("no reservation", || state(&cluster)["jobs"]["mock-2"] != json!(null));
    kill("KILL", job.id());
    job.wait().expect("it ends");
    eventually("the reservation is left", || state(&cluster) == quiet());
}

/// libfabric refuses hardware collectives on NETSIM, and wants a retry handler on an ASIC.
#[test]
fn nics_beside_a_fabric_manager_are_no_netsim_unless_configured() {
    need_node!();
    let directory = Directory::new();
    let config = directory.write("nic.json", r#"{"identity": {"device_platform": 1}}"#);
    let configured = ["--fabric-manager", "--config", &config];
    for (options, platform) in
        [(&[] as &[&str], "1"), (&["--fabric-manager"], "2"), (&configured, "1")]
    {
        let cluster = Served::cluster(&[&["--nodes", "1"], options].concat());
        let file = "/sys/class/cxi/cxi0/device/properties/platform";
        assert_eq!(printed(&cluster.on("n1", &["cat", file])), platform, "{options:?}");
    }
}

/// Software does the same: the program runs, and a message says why it is slower.
#[test]
fn a_job_without_a_reservation_runs() {
    need_node!();
    let directory = Directory::new();
    let config = directory.join("fm.json");
    let run = |text: &str| {
        std::fs::write(&config, text).unwrap();
        let manager = format!("--fabric-manager={config}");
        let mut command: Command = server(["cluster", "--nodes", "2", &manager, "run", "--"]);
        let script = "echo $CXI_CLUSTER$FI_CXI_COLL_JOB_ID";
        command.args(["sh", "-c", script]).stdin(Stdio::null());
        let output = command.output().unwrap();
        (errors(&output), output)
    };
    let (said, output) = run(r#"{"settings": {"addresses": [1, 8], "overcommits": false}}"#);
    assert_eq!(printed(&output), "mock\nmock");
    assert!(said.contains("run without hardware collectives: 02: 8 multicast ids"), "{said}");
    let (said, output) = run(r#"{"settings": {"adresses": [1, 8]}}"#);
    assert_eq!(output.status.code(), Some(125));
    assert!(said.contains("fm.json: unknown field `adresses`"), "{said}");
}

/// Its trees are those of the fabric: NICs of four nodes reduce in the switches of one.
#[test]
fn a_tree_adds_up_what_nodes_send() {
    need_node!(node::windows());
    let options = ["--nodes", "4", "--fabric-manager", OPEN[0], OPEN[1]];
    let cluster = Served::cluster(&options);
    let nodes = ["n1", "n2", "n3", "n4"];
    let addresses = nodes.map(|node| printed(&cluster.on(node, &[client(), "nid", "cxi0"])));
    // What libfabric does with the environment of `cluster run`.
    let reserve = [CXI, "collectives", "reserve", "7", "--limit", "1", "--json"];
    let reserved: Value =
        serde_json::from_str(&printed(&cluster.on("n1", &reserve))).expect("JSON");
    let get = |name: &str| Some(reserved["environment"][name].as_str()?.into());
    let step = StepId::new("0").unwrap();
    let inherited = CollectivesEnv::inherit(get, step.clone()).unwrap().unwrap();
    let reservation = inherited.reservation();
    let nics = addresses.each_ref().map(|nid| nid.parse().expect("a number"));
    let body = TreeRequest::of_libfabric(reservation.id().as_str(), step.as_str(), &nics, 10);
    let body = serde_json::to_string(&body).expect("JSON");
    let bearer = format!("Bearer {}", reservation.token());
    let request = HttpRequest::post(reservation.url(), Some(&bearer), &body);
    let (http, timeout) = (Http::new(&Certificate::Unverified).unwrap(), Duration::from_secs(20));
    let made = http.send(&request, timeout).expect("an answer");
    let made: Value = serde_json::from_slice(&made.body).expect("JSON");
    let id = made["mcastID"].to_string();
    // The root comes last.
    let start = |rank: usize| {
        let place = [&id, &rank.to_string(), "4", "50"];
        let program = [&[client(), "allreduce", "cxi0"], &place[..]].concat();
        let mut command = cluster.command_on(nodes[rank], &program);
        let mut process = command.start();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        (process, output)
    };
    for (mut process, mut output) in [3, 2, 1, 0].map(start) {
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        assert!(process.wait().unwrap().success());
        assert_eq!(text.trim(), "50 sums");
    }
    let patience = Patience::default();
    assert!(end_inherited_step(reservation, &step, &http, &patience).unwrap());
}
