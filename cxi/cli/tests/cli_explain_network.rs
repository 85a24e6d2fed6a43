//! `cxi explain` without a text: why a program has no network.

mod common;

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{MockNode, Said, assert_contains, command};
use serde_json::Value;

const UID: u32 = 4711;

/// `cxi explain` with only these variables, as far as the network is concerned.
fn explain(node: &MockNode, arguments: &str, variables: &[(&str, &str)]) -> Said {
    explain_command(node, arguments, variables).output().unwrap().into()
}

fn explain_command(node: &MockNode, arguments: &str, variables: &[(&str, &str)]) -> Command {
    let mock = node.option();
    let mut command = command(&format!("explain {arguments} {mock}"));
    for (name, _) in std::env::vars_os() {
        let is_decisive = ["SLINGSHOT_", "FI_", "SLURM", "FLUX", "PBS"];
        if is_decisive.iter().any(|start| name.to_string_lossy().starts_with(start)) {
            command.env_remove(name);
        }
    }
    command.envs(variables.iter().copied());
    command
}

fn own() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// A node with two NICs, on which this user has service 2 with VNIs 1036 and 1037.
fn node() -> MockNode {
    let node = MockNode::new();
    node.cxi(&format!("service create --uid={} --vni=1036,1037 -d cxi0,cxi1", own())).done();
    node
}

const GIVEN: [(&str, &str); 3] = [
    ("SLINGSHOT_VNIS", "1036,1037"),
    ("SLINGSHOT_DEVICES", "cxi0,cxi1"),
    ("SLINGSHOT_SVC_IDS", "2,2"),
];

/// Returns the scheduler's variables, but for one.
fn but(name: &'static str, value: &'static str) -> Vec<(&'static str, &'static str)> {
    let others = GIVEN.into_iter().filter(|(other, _)| *other != name);
    others.chain([(name, value)]).collect()
}

#[test]
fn a_job_on_a_single_node_is_told_how_to_get_a_service() {
    let node = MockNode::new();
    let job = [("SLURM_JOB_ID", "17"), ("SLURM_JOB_NUM_NODES", "1")];
    let said = explain(&node, "", &job);
    assert_eq!((said.code, said.err.as_str()), (9, ""), "{said:?}");
    let uid = own();
    for part in [
        "your scheduler gave you no service: single-node jobs get none here; srun \
         --network=single_node_vni asks for one\n",
        &*format!("No service of cxi0, cxi1 admits uid {uid}.\n"),
        "SLINGSHOT_VNIS, SLINGSHOT_DEVICES, SLINGSHOT_SVC_IDS are not set.",
        "ENOSYS (-38, Function not implemented)",
        "srun --network=single_node_vni",
        "SLURM_NETWORK=single_node_vni",
        "cxi0-1: libfabric finds no service",
    ] {
        assert_contains(&said.out, part);
    }
    assert!(said.out.starts_with("your scheduler gave you no service: "), "{}", said.out);
    let said = explain(&node, "", &[]);
    assert!(said.out.starts_with("no scheduler gave you a service\n"), "{}", said.out);
    assert_contains(&said.out, "This is not in a job");
    // A disabled service does not help, and is named.
    node.cxi(&format!("service create --uid={uid} --vni=1036 --disabled")).done();
    let said = explain(&node, "", &job);
    assert_contains(&said.out, "would admit you, but is disabled");
}

#[test]
fn what_fits_works() {
    let node = node();
    let said = explain(&node, "", &GIVEN).done();
    for part in [
        "the network is there: libfabric takes service 2 and VNI 1036 on cxi0, cxi1\n",
        "cxi0-1: libfabric takes service 2 and VNI 1036\n",
        "VNI 1036: step; libfabric takes this one\nVNI 1037: job; Mercury takes this one\n",
        "SLINGSHOT_SVC_IDS=2,2\n",
    ] {
        assert_contains(&said, part);
    }
    // libfabric finds the service of a user without the variables, too.
    let json = explain(&node, "--json", &[]).json();
    assert_eq!(json["network"]["works"], true);
    let taken = &json["network"]["nics"][1]["takes"];
    assert_eq!((&taken["service"], &taken["vni"]), (&Value::from(2), &Value::from(1036)));
    assert_eq!(taken["by_variables"], false);
}

#[test]
fn what_does_not_fit_is_named_first() {
    let node = node();
    node.cxi(&format!("service create --uid={UID} --vni=2000 -d cxi0,cxi1")).done();
    for (variables, verdict) in [
        (
            but("SLINGSHOT_SVC_IDS", "5,5"),
            "cxi0, cxi1: SLINGSHOT_SVC_IDS names service 5, which is gone",
        ),
        (but("SLINGSHOT_SVC_IDS", "2,5"), "cxi1: SLINGSHOT_SVC_IDS names service 5, which is gone"),
        (
            but("SLINGSHOT_SVC_IDS", "3,3"),
            "cxi0, cxi1: SLINGSHOT_SVC_IDS names service 3 (uid 4711, VNI 2000), which does not admit uid",
        ),
        (
            but("SLINGSHOT_SVC_IDS", "1,1"),
            "cxi0, cxi1: SLINGSHOT_SVC_IDS names service 1 (default service, VNIs 1,10, disabled), and a disabled",
        ),
        (
            but("SLINGSHOT_VNIS", "999"),
            "cxi0, cxi1: VNI 999, the first of SLINGSHOT_VNIS, is not one of service 2 (uid",
        ),
        (
            but("SLINGSHOT_DEVICES", "cxi6,cxi7"),
            "SLINGSHOT_DEVICES names cxi6, cxi7, and this node has cxi0, cxi1: the variables are another node's",
        ),
        (but("SLINGSHOT_DEVICES", "cxi0"), "1 devices but 2 service IDs: "),
        (but("FI_PROVIDER", "tcp"), "FI_PROVIDER=tcp keeps libfabric from using the NICs"),
    ] {
        let said = explain(&node, "", &variables);
        assert_eq!((said.code, said.err.as_str()), (9, ""), "{verdict}: {said:?}");
        assert!(said.out.starts_with(verdict), "expected {verdict}\nprinted {}", said.out);
        let advice = said.out.split("What to do:\n").nth(1).unwrap_or_default();
        let first = advice.lines().next().unwrap_or_default();
        assert!(!first.contains("destroy") && !first.is_empty(), "{}", said.out);
    }
    // A stale ID: what would be right is named.
    let said = explain(&node, "", &but("SLINGSHOT_SVC_IDS", "5,5"));
    assert_contains(
        &said.out,
        &format!("On cxi0, service 2 (uid {}, VNIs 1036,1037) admits this user.", own()),
    );
}

/// The namespace comes first, then the user, then the group, then a service for everyone.
#[test]
fn libfabric_prefers_a_namespace_to_a_user_to_a_group() {
    let node = MockNode::new();
    let taken = || {
        let said = explain(&node, "--json -d cxi0", &[]);
        let json: Value = serde_json::from_str(&said.out).unwrap();
        (said.code, json["network"]["nics"][0]["takes"]["service"].clone())
    };
    assert_eq!(taken(), (9, Value::Null));
    node.cxi("service enable 1 -d cxi0").done();
    // It works, and every user of the node shares it.
    assert_eq!(taken(), (9, 1.into()));
    let (uid, gid) = (own(), nix::unistd::getegid().as_raw());
    let members =
        [format!("--gid={gid}"), format!("--uid={uid}"), "--netns=/proc/self/ns/net".into()];
    for (id, member) in (2..).zip(members) {
        node.cxi(&format!("service create {member} --vni={} -d cxi0", 1030 + id)).done();
        assert_eq!(taken(), (0, id.into()), "{member}");
    }
    // Of several that fit as well, the last.
    node.cxi(&format!("service create --uid={uid} --vni=1050 --limit=txqs=1:1 -d cxi0")).done();
    assert_eq!(taken(), (0, 4.into()));
    node.cxi("service destroy 4 -d cxi0").done();
    assert_eq!(taken(), (0, 5.into()));
}

#[test]
fn each_vni_says_what_it_is_for() {
    let node = MockNode::new();
    let three = [("SLINGSHOT_VNIS", "1036,1037,1038"), ("FI_CXI_RX_MATCH_MODE", "software")];
    explain(&node, "env", &three).prints(
        "VNI 1036: step; libfabric takes this one\n\
         VNI 1037: job; Mercury takes this one\n\
         VNI 1038: extra\n\
         FI_CXI_RX_MATCH_MODE=software\n\
         SLINGSHOT_VNIS=1036,1037,1038\n",
    );
    let said = explain(&node, "env", &[]).done();
    assert!(said.starts_with("SLINGSHOT_VNIS is not set: "), "{said}");
    let flux = [("SLINGSHOT_VNIS", "1,2"), ("FLUX_JOB_ID", "f1")];
    let said = explain(&node, "env", &flux).done();
    assert!(said.starts_with("VNI 1: job; libfabric takes this one\nVNI 2: extra; "), "{said}");
}

#[test]
fn the_nodes_of_a_job_are_compared() {
    let node = node();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let one = file("n1.env", "SLINGSHOT_VNIS=1036\n");
    let two = file("n2.env", "export SLINGSHOT_VNIS='1040,1041'\n");
    let said = explain(&node, &format!("--env {one} --env {two}"), &[]);
    assert_eq!(said.code, 9);
    assert!(
        said.out.starts_with("VNI 1036 of n1 is not among n2's (1040, 1041): "),
        "{}",
        said.out
    );
    let same = file("n3.env", "SLURMD_NODENAME=nid3\nSLINGSHOT_VNIS=1036\n");
    let said = explain(&node, &format!("--env {one} --env {same}"), &[]).done();
    assert!(
        said.starts_with("n1, nid3 can talk to each other: libfabric takes VNI 1036"),
        "{said}"
    );
    // A file alone is looked at on this node.
    let given = file("a.env", "SLINGSHOT_VNIS=1036\nSLINGSHOT_DEVICES=cxi0\nSLINGSHOT_SVC_IDS=7\n");
    let said = explain(&node, &format!("--env {given}"), &GIVEN);
    assert!(
        said.out.starts_with("cxi0: SLINGSHOT_SVC_IDS names service 7, which is gone"),
        "{}",
        said.out
    );
    // Control characters do not reach the terminal.
    let evil = file(
        "evil.env",
        "SLINGSHOT_VNIS=\u{1b}[31m\nSLINGSHOT_DEVICES=cxi\u{7}9\nSLINGSHOT_SVC_IDS=1\n",
    );
    for arguments in [format!("--env {evil}"), format!("env --env {evil}")] {
        let said = explain(&node, &arguments, &[]);
        assert!(!said.out.contains(['\u{1b}', '\u{7}']), "{:?}", said.out);
    }
    explain(&node, "--env /nonexistent", &[]).mentions(2, "cannot be read: No such file");
}

/// A process that is ended with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_environment_of_a_running_process_is_read() {
    let node = node();
    let mut sleep = Command::new("sleep");
    sleep.arg("60").env_clear().envs(but("SLINGSHOT_SVC_IDS", "2,9"));
    if own() == 0 {
        sleep.uid(UID);
    }
    let running = Running(sleep.spawn().unwrap());
    let pid = running.0.id();
    let said = explain(&node, &format!("--pid {pid}"), &GIVEN);
    let (verdict, also) = if own() == 0 {
        ("cxi0: SLINGSHOT_SVC_IDS names service 2", "which does not admit uid 4711")
    } else {
        ("cxi1: SLINGSHOT_SVC_IDS names service 9, which is gone", "")
    };
    assert!(said.out.starts_with(verdict), "{said:?}");
    assert_contains(&said.out, also);
    explain(&node, "--pid 4194305", &[]).mentions(5, "process 4194305 cannot be read");
}

/// A scheduler may leave an open pipe as the standard input, in which nothing ever comes.
#[test]
fn an_open_pipe_is_not_waited_for() {
    let node = node();
    let start = Instant::now();
    let mut command = explain_command(&node, "", &GIVEN);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.starts_with("the network is there: "), "{out}");
}

#[test]
fn a_message_that_is_piped_in_is_explained() {
    let node = node();
    let mut shell = Command::new("sh");
    let cxi = env!("CARGO_BIN_EXE_cxi");
    let mock = node.option();
    shell.args([
        "-c",
        "(sleep 0.3; echo 'Failed to allocate LNI, ret: -128') | \"$0\" explain \"$1\"",
        cxi,
        &mock,
    ]);
    let said: Said = shell.output().unwrap().into();
    assert!(
        said.out.starts_with("EKEYREVOKED (128, Key has been revoked) from allocating an LNI"),
        "{said:?}"
    );
}
