//! `cxi job run`: the services are destroyed when the program ends, however it ends.

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use common::{MockNode, Said, command, without_hidden};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

fn run(node: &MockNode, options: &[&str], script: &str) -> Said {
    let program = ["--", "sh", "-c", script];
    let arguments = [&["job", "run", "--cores=4"], options, &program].concat();
    node.cxi(&arguments)
}

#[test]
fn a_program_gets_the_services_and_they_end_with_it() {
    let node = MockNode::new();
    let state = node.file();
    let script = format!(
        "echo $SLINGSHOT_VNIS $SLINGSHOT_DEVICES $SLINGSHOT_SVC_IDS $SLINGSHOT_TCS; {} --mock={} \
         --json service list",
        env!("CARGO_BIN_EXE_cxi"),
        state.display()
    );
    let said = run(&node, &["--vni=2000,2001"], &script).done();
    let (environment, list) = said.split_once('\n').unwrap();
    assert_eq!(environment, "2000,2001 cxi0,cxi1 2,2 0xa");
    let list: serde_json::Value = serde_json::from_str(list).unwrap();
    let list = list["services"].as_array().unwrap();
    assert_eq!(list.len(), 4, "two of them the program's");
    assert_eq!(list[1]["members"][0]["id"], geteuid().as_raw());
    assert_eq!(node.services(), 0);

    // Without --vni it gets a VNI that no service has.
    node.cxi("service create --uid=7 --vni=1024").done();
    run(&node, &[], "echo $SLINGSHOT_VNIS").prints("1025\n");
}

#[test]
fn the_programs_exit_code_is_passed_on() {
    let node = MockNode::new();
    for (script, code) in [("exit 3", 3), ("kill -9 $$", 137)] {
        run(&node, &[], script).refused(code, "");
        assert_eq!(node.services(), 0);
    }
    for (program, code, message) in [
        (
            "/no/such/program",
            127,
            "error: /no/such/program: No such file or directory (os error 2)",
        ),
        ("/", 126, "error: /: Permission denied (os error 13)"),
    ] {
        node.cxi(&["job", "run", "--cores=4", "--", program]).refused(code, message);
        assert_eq!(node.services(), 0);
    }
}

#[test]
fn no_services_no_program() {
    let node = MockNode::new();
    let file = node.directory().join("ran");
    let touch = format!("touch {}", file.display());
    let said = run(&node, &["--mock-fault=cxi1:SVC_ALLOC:EPERM"], &touch);
    said.mentions(6, "The job has no service on any NIC.");
    assert!(!file.exists());
    assert_eq!(node.services(), 0);
}

#[test]
fn a_leftover_is_reported() {
    let node = MockNode::new();
    let faults = "--mock-fault=cxi1:SVC_DESTROY:EBUSY";
    let said = run(&node, &[faults, "--retry-busy=50ms"], "true");
    said.failed(4, "error: cxi1: service 2 (uid ");
    said.mentions(4, "still in use after");
    assert_eq!(node.services(), 1);
    // The exit code of a failed program takes precedence.
    assert_eq!(run(&node, &[faults, "--retry-busy=0s"], "exit 9").code, 9);
}

/// Starts a script. Returns the first line that it prints.
fn started(node: &MockNode, options: &[&str], script: &str) -> (Child, String) {
    let mock = node.option();
    let run = [&mock, "job", "run", "--cores=4"];
    let mut command = command(&[&run, options, &["--", "sh", "-c", script]].concat());
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    (child, line)
}

#[test]
fn a_signal_ends_the_program_and_the_services() {
    for (options, script, code) in [
        (&[][..], "echo ready; exec sleep 60", 128 + 15),
        // A program that ignores the signal is killed.
        (&["--grace=100ms"], "trap '' TERM; echo ready; sleep 60; sleep 60", 128 + 9),
        // A program that handles the signal decides the exit code.
        (&[], "trap 'exit 5' TERM; echo ready; sleep 60 & wait", 5),
    ] {
        let node = MockNode::new();
        let (mut child, line) = started(&node, options, script);
        assert_eq!(line, "ready\n");
        assert_eq!(node.services(), 2);
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        kill(pid, Signal::SIGTERM).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(code), "{script}");
        assert_eq!(node.services(), 0);
    }
}

#[test]
fn what_a_killed_run_leaves_is_cleaned_up() {
    let node = MockNode::new();
    let script = "echo $$ $SLINGSHOT_VNIS; exec sleep 60";
    let (mut child, line) = started(&node, &[], script);
    let (program, vni) = line.trim().split_once(' ').unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    kill(Pid::from_raw(program.parse().unwrap()), Signal::SIGKILL).unwrap();
    assert_eq!(node.services(), 2);
    // Its record says that it has ended, and its VNI may be somebody else's live one.
    let done = node.cxi(&["job", "clean", &format!("--live={vni}")]).done();
    assert!(done.contains("destroyed"), "{done}");
    assert_eq!(node.services(), 0);
}

#[test]
fn what_runs_is_not_cleaned_up() {
    let node = MockNode::new();
    let (mut child, _) = started(&node, &["--vni=1024"], "echo ready; exec sleep 60");
    for order in ["job clean", "job clean --foreign --none-live"] {
        assert_eq!(node.cxi(order).code, 8, "{order}");
    }
    assert_eq!(node.services(), 2);
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    child.wait().unwrap();
    assert_eq!(node.services(), 0);
    let records = node.directory().join("state.json.d/services");
    assert_eq!(fs::read_dir(records).unwrap().count(), 0);
}

#[test]
fn a_terminal_and_a_log_show_what_is_waited_for() {
    let node = MockNode::new();
    let prolog = "job prolog --job=1 --uid=1001 --vni=1021 --cores=8";
    node.cxi(prolog).done();
    let mock = node.option();
    let busy = "--mock-fault=cxi1:SVC_DESTROY:EBUSY";
    let epilog = ["job", "epilog", "--job=1", "--retry-busy=200ms"];
    let terminal = nix::pty::openpty(None, None).unwrap();
    let mut child = command(&[&[mock.as_str(), busy], &epilog[..]].concat())
        .stdout(Stdio::null())
        .stderr(terminal.slave)
        .spawn()
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(4));
    // The other end is closed, so reading ends; on Linux, with EIO.
    let mut seen = Vec::new();
    let _ = fs::File::from(terminal.master).read_to_end(&mut seen);
    let seen = without_hidden(&String::from_utf8(seen).unwrap());
    let waiting = "Waiting: cxi1: service 2 (uid 1001, VNI 1021) is still in use; no visible \
         process has the NIC open; 1 s left";
    assert!(seen.contains(waiting), "{seen:?}");
    // The text takes two lines on a terminal with 80 columns.
    let (before, after) = seen.rsplit_once("\r\x1b[1A\x1b[J").unwrap();
    assert!(before.contains("Waiting") && !after.contains("Waiting"));
    assert!(after.contains("still in use after"), "{seen:?}");
    let epilog = ["job", "epilog", "--job=1", "--retry-busy=1900ms"];
    let said = node.cxi(&[&[busy], &epilog[..]].concat());
    assert_eq!(said.err.matches("Waiting: cxi1: ").count(), 1, "{}", said.err);
    for (format, line) in [
        ("json", r#","priority":6,"identifier":"cxi","info":{"message":"Waiting: cxi1: "#),
        ("journal", "<6>cxi: info: Waiting: cxi1: "),
    ] {
        let format = format!("--log-format={format}");
        let said = node.cxi(&[&[busy, format.as_str()], &epilog[..]].concat());
        let first = said.err.lines().next().unwrap();
        assert!(first.contains(line), "{first}");
    }
    let quiet = node.cxi(&[&[busy, "-q"], &epilog[..]].concat());
    assert!(!quiet.err.contains("Waiting"), "{}", quiet.err);
}

#[test]
fn the_program_runs_as_the_user() {
    if !geteuid().is_root() {
        // Only root can become another user; the message for an ordinary user is checked instead.
        let node = MockNode::new();
        let said = run(&node, &["--uid=65534", "--gid=65534"], "true");
        said.failed(6, "error: cannot become user 65534, group 65534: ");
        return;
    }
    let node = MockNode::new();
    let script = "id -u; id -g; id -G; cat /proc/self/status | grep CapEff";
    run(&node, &["--uid=65531", "--gid=65532"], script)
        .prints("65531\n65532\n65532\nCapEff:\t0000000000000000\n");
    run(&node, &["--uid=65531"], script)
        .refused(2, "error: user 65531 is unknown on this node: name its group with --gid");
    assert_eq!(node.services(), 0);
}

#[test]
fn the_file_can_name_the_mock_node_by_variable() {
    let node = MockNode::new();
    let mut list = command("service list");
    let said = Said::from(list.env("CXI_MOCK", node.file()).output().unwrap());
    assert!(said.done().starts_with("NICs    Service"));
    assert!(fs::exists(node.file()).unwrap());
}
