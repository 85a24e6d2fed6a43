//! Commands for a mock node never touch the machine, and the other way around.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{MockNode, Said, assert_contains, cxi};
use cxi_test_kit::skip;

/// Files of the machine that no command may use or write: a settings file, a job and a pool that
/// cannot be read, on file systems that cannot be written.
const MACHINE: &str = r#"
    for place in /run /etc /var/lib; do mount -t tmpfs none "$place"; done
    mkdir -p /run/cxi/jobs /etc/cxi /var/lib/cxi
    for file in /run/cxi/jobs/9.json /etc/cxi/cxi.toml /var/lib/cxi/vni-pool.json; do
        echo '{ this is of the machine' > "$file"
    done
    echo root:x:0:0::/:/bin/sh > /etc/passwd
    for place in /run /etc /var/lib; do mount -o remount,bind,ro "$place"; done
"#;

/// All commands of a node and a controller, with their exit codes.
const COMMANDS: &str = "
    0 devices
    0 service create --uid=1000 --vni=1024
    0 service list
    0 service show
    0 service usage
    0 service disable 2
    0 service update 2 --enable
    0 explain create --uid=7 --vni=7
    6 explain open 2
    0 explain busy 2
    0 top
    0 metrics
    9 audit
    0 cdi
    0 service destroy 2
    0 job plan --cores=1
    0 job prolog --job=8 --uid=1000 --vni=1024 --cores=1
    0 job env --job=8
    0 job epilog --job=8
    0 vni configure 2000-2010
    0 vni reserve 8
    0 vni show
    0 vni reconcile --node=here
    0 vni release 8 --nodes=here
    0 vni confirm 8 --node=here
    0 vni reserve 9
    0 vni cancel 9
    0 job reserve 9 --uid=1000 --nodes=here
    0 job prolog --job=9 --cores=1
    0 job list
    0 job list --controller
    0 job env --job=9
    0 job release 9
    0 job epilog --job=9 --node=here
    8 job clean --node=here
    0 job run --cores=1 -- true
    0 config check
";

/// Runs a script as root of a machine with this setup; `None` if that is impossible here.
fn on_machine(setup: &str, script: &str, variables: &[(&str, &Path)]) -> Option<Said> {
    let unshare = |way: &[&str], script: &str| {
        let mut command = Command::new("unshare");
        command.args(way).args(["sh", "-euc", script]);
        command
    };
    let ways = [&["--mount"][..], &["--user", "--map-root-user", "--mount"]];
    let possible = |way: &&&[&str]| {
        let output = unshare(way, "mount -t tmpfs none /run").output();
        output.is_ok_and(|output| output.status.success())
    };
    let Some(way) = ways.iter().find(possible) else {
        skip("no mount namespace can be made here");
        return None;
    };
    let mut command = unshare(way, &format!("{setup}\n{script}"));
    command.env("CXI", env!("CARGO_BIN_EXE_cxi"));
    command.env_remove("CXI_MOCK");
    command.envs(variables.iter().copied());
    Some(command.output().unwrap().into())
}

/// A script that runs all commands with these options, traced into a file, and names those that end
/// with another code.
fn script(traced: bool, options: &str) -> String {
    let trace = "strace -f -qq -A -e trace=%file -o \"$TRACE\"";
    let trace = if traced { trace } else { "" };
    let lines = COMMANDS.trim().lines().map(|line| {
        let (code, command) = line.trim().split_once(' ').unwrap();
        format!(
            "code=0; {trace} \"$CXI\" {options} {command} > /dev/null || code=$?; \
             [ $code = {code} ] || echo \"ended with $code: {command}\"\n"
        )
    });
    lines.collect()
}

#[test]
fn no_command_for_a_mock_touches_what_the_machine_has() {
    let Some(machine) = on_machine(MACHINE, "\"$CXI\" job list", &[]) else { return };
    machine.failed(2, "error: /etc/cxi/cxi.toml: line 1: ");
    let traced = Command::new("strace").arg("-V").output().is_ok();
    if !traced {
        skip("nothing is traced, as strace is missing");
    }
    for options in ["--mock=\"$STATE\"", ""] {
        let node = MockNode::new();
        let (state, trace) = (node.file(), node.directory().join("trace"));
        let decisions = node.directory().join("decisions");
        let mut variables =
            vec![("STATE", &*state), ("TRACE", &trace), ("CXI_CONTROLLER_RECORDS", &decisions)];
        if options.is_empty() {
            variables.push(("CXI_MOCK", &state));
        }
        let said = on_machine(MACHINE, &script(traced, options), &variables).unwrap();
        said.prints("");
        assert!(node.directory().join("state.json.d/jobs").is_dir());
        if traced {
            let trace = fs::read_to_string(&trace).unwrap();
            assert_contains(&trace, "state.json.d/jobs");
            for line in trace.lines() {
                let own = ["/run/cxi", "/etc/cxi", "/etc/cdi", "/var/lib/cxi"];
                assert!(!own.iter().any(|place| line.contains(place)), "{line}");
                let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "mkdir", "unlink", "rename"];
                let machine = line.contains("\"/run") || line.contains("\"/etc");
                assert!(!machine || !writes.iter().any(|way| line.contains(way)), "{line}");
            }
        }
    }
}

#[test]
fn a_mock_without_a_file_leaves_no_records() {
    let node = MockNode::new();
    let temporary = [("TMPDIR", node.directory())];
    let script = "\"$CXI\" --mock job prolog --job=3 --uid=7 --vni=7 --cores=1
                  \"$CXI\" --mock job list";
    let Some(said) = on_machine(MACHINE, script, &temporary) else { return };
    said.prints("Created service 2 on cxi0-1: for uid 7, VNI 7\nJob  State  VNIs\n");
    assert_eq!(fs::read_dir(node.directory()).unwrap().count(), 0);
}

#[test]
fn files_of_the_machine_have_to_be_named() {
    let node = MockNode::new();
    for (command, path, option) in [
        ("cdi --output", "/etc/cdi/hpe.com-cxi.json", "--output=FILE"),
        ("integration install slurm", "/etc/cxi", "--prefix"),
    ] {
        node.cxi(command).refused(
            2,
            &format!(
                "error: {path} belongs to this machine, and the command is for a mock node: name \
                 another path with {option}"
            ),
        );
    }
}

#[test]
fn a_forgotten_variable_is_noticed_where_there_are_nics() {
    let node = MockNode::new();
    let state = node.file();
    let nics = "mount -t tmpfs none /dev; : > /dev/cxi0; : > /dev/cxi1";
    let variables = [("CXI_MOCK", &*state)];
    let run = |script| on_machine(nics, script, &variables);
    let Some(said) = run("\"$CXI\" service list -d cxi0") else { return };
    let warning = format!(
        "CXI_MOCK names the mock node {}: this machine's cxi0-1 is not used",
        state.display()
    );
    assert_eq!((said.code, said.err), (0, format!("warning: {warning}\n")));
    let said = run("\"$CXI\" --json service list").unwrap();
    let object: serde_json::Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(object["warning"]["message"], *warning);
    // There is no warning if the command line names the mock node.
    run("\"$CXI\" --mock=\"$CXI_MOCK\" service list").unwrap().done();

    let check = run("\"$CXI\" config check").unwrap().out;
    let named = format!("Mock node {}, named by CXI_MOCK\n", state.display());
    assert_contains(&check, &named);
    let json = node.cxi("--json config check").json();
    assert_eq!(json["mock"]["file"], *state.display().to_string());
    assert_eq!(json["mock"]["by_variable"], false);
    assert_eq!(cxi("--json config check").json()["mock"], serde_json::Value::Null);
}
