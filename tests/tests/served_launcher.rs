//! The launcher: exit status, signals, and nothing left behind.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use cxi_test_kit::Random;
use cxi_tests::node::{
    self, DEVICE, Run, Served, children, client, errors, eventually, kill, need_node, printed,
    refused, run, server,
};
use nix::sys::signal::Signal;

#[test]
fn the_exit_status_is_passed_on() {
    need_node!();
    let status = |arguments: &[&str]| run(arguments).status.code();
    assert_eq!(status(&["--", "sh", "-c", "exit 3"]), Some(3));
    assert_eq!(status(&["--", "sh", "-c", "kill -9 $$"]), Some(137));
    assert_eq!(status(&["--", "sh", "-c", "kill -SEGV $$"]), Some(139));
    assert_eq!(status(&["--", "/nonexistent"]), Some(127));
    assert_eq!(status(&["--", "/dev/null"]), Some(126));
    assert_eq!(status(&["--fault", "nonsense", "--", "true"]), Some(125));
    assert_eq!(status(&["--set", "pid_bits=x", "--", "true"]), Some(125));
    assert_eq!(status(&["--config", "/nonexistent", "--", "true"]), Some(125));
    let loads = ["--set", "default_svc_num_tles=4096", "--", "true"];
    assert_eq!(status(&loads), Some(125));
}

#[test]
fn a_mistyped_option_is_not_a_program() {
    let output = run(&["--nic", "2", "--", "true"]);
    let text = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("unexpected argument '--nic'"), "{text}");
    assert!(text.contains("'--nics'"), "{text}");
}

/// Records that programs write stay on their node, whose other files are those of the machine.
#[test]
fn records_of_a_node_do_not_reach_the_machine() {
    need_node!();
    let script = "for directory in /run/cxi /run/cxi-node /var/lib/cxi; do
            ls -A $directory; touch $directory/cxi-mock-test; ls -A $directory
        done; ls -A /run /var/lib | grep -vxE 'cxi|cxi-node'";
    let text = node::script(&[], script);
    let rest = text.strip_prefix("cxi-mock-test\ncxi-mock-test\ncxi-mock-test\n");
    let rest = rest.unwrap_or_else(|| panic!("directories are not empty: {text}"));
    let here = Command::new("ls").args(["-A", "/run", "/var/lib"]).output();
    let here = String::from_utf8(here.expect("ls runs").stdout).expect("names");
    let here: Vec<_> = here.lines().filter(|name| !["cxi", "cxi-node"].contains(name)).collect();
    assert_eq!(rest.lines().collect::<Vec<_>>(), here);
    for directory in ["/run/cxi", "/run/cxi-node", "/var/lib/cxi"] {
        assert!(!Path::new(directory).join("cxi-mock-test").exists());
    }
}

#[test]
fn a_served_node_says_how_to_enter_it() {
    need_node!();
    let directory = cxi_test_kit::Directory::new();
    let dir = directory.join("node");
    for (command, on) in [("serve", ""), ("cluster", " --node n1")] {
        let mut served = server([command, "--dir", &dir]);
        let mut served = served.stderr(Stdio::piped()).start();
        let said = BufReader::new(served.stderr.take().expect("it is piped"));
        let first = said.lines().next().expect("a line").expect("text");
        let enter = format!(" is ready: cxi-mock enter --dir {dir}{on} -- PROGRAM");
        assert!(first.ends_with(&enter), "{first}");
        kill("TERM", served.id());
        assert!(served.wait().expect("it ends").success());
    }
}

#[test]
fn signals_are_forwarded() {
    need_node!();
    for signal in ["TERM", "INT", "HUP", "USR1", "USR2"] {
        // A shell cannot trap what was ignored when it started, as nohup(1) does with HUP.
        if is_ignored(signal) {
            cxi_test_kit::skip(format_args!("{signal} is ignored here"));
            continue;
        }
        let script = format!("trap 'exit 42' {signal}; echo ready; while :; do sleep 0.05; done");
        let mut launcher = server(["run", "--", "sh", "-c", &script]).start();
        node::wait_ready(&mut launcher);
        kill(signal, launcher.id());
        let status = launcher.wait().expect("the launcher ends");
        assert_eq!(status.code(), Some(42), "{signal}");
    }
}

/// Returns whether this process, and so what it starts, ignores a signal.
fn is_ignored(signal: &str) -> bool {
    let signal: Signal = format!("SIG{signal}").parse().expect("a signal");
    let status = fs::read_to_string("/proc/self/status").expect("proc is mounted");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.expect("a set").trim(), 16).expect("a number");
    ignored >> (signal as u32 - 1) & 1 == 1
}

/// A program whose processes can be found by a word in their command lines.
struct Tree {
    word: String,
}

impl Tree {
    /// Sleeping processes of several kinds: children, in another session, of a dead parent.
    fn script(number: u32) -> (Self, String) {
        let word = format!("9{:07}{number}", std::process::id());
        let script = format!("{} sleep {word}", Self::background(&word));
        (Self { word }, script)
    }

    fn background(word: &str) -> String {
        format!(
            "setsid sleep {word} & setsid sh -c 'sleep {word} & sleep {word} & exit' & \
             sleep {word} & echo ready;"
        )
    }

    fn is_gone(&self) -> bool {
        node::with_argument(&self.word).is_empty()
    }
}

/// Launcher, guard, guard, program: as many of them as there are yet.
fn watching(launcher: u32) -> Vec<u32> {
    std::iter::successors(Some(launcher), |pid| children(*pid).first().copied()).take(4).collect()
}

#[test]
fn nothing_is_left_whoever_is_killed() {
    need_node!();
    let launcher = [0].as_slice();
    for (number, victims) in (0..).zip([launcher, &[1], &[2], &[3], &[0, 1], &[1, 2], &[0, 2]]) {
        let (tree, script) = Tree::script(number);
        let mut launcher = server(["run", "--", "sh", "-c", &script]).start();
        node::wait_ready(&mut launcher);
        eventually("all processes are there", || node::with_argument(&tree.word).len() >= 5);
        let watching = watching(launcher.id());
        // Practically at once: none of them does anything before all are killed.
        for signal in ["STOP", "KILL"] {
            for &at in victims {
                kill(signal, watching[at]);
            }
        }
        let status = launcher.wait().expect("the launcher ends");
        if !victims.contains(&0) {
            assert_eq!(status.code(), Some(137), "{victims:?}");
        }
        eventually(&format!("{victims:?}: a process is left"), || tree.is_gone());
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("proc is mounted");
    assert!(!mounts.contains("cxi-mock"), "{mounts}");
}

#[test]
fn background_processes_end_with_the_program() {
    need_node!();
    let (tree, _) = Tree::script(9);
    let script = format!("{} exit 5", Tree::background(&tree.word));
    assert_eq!(run(&["--", "sh", "-c", &script]).status.code(), Some(5));
    assert!(tree.is_gone());
}

#[test]
fn killed_programs_leave_no_lni() {
    need_node!();
    let node = Served::start(&[]);
    let svc_id = printed(&node.enter(&[client(), "allocate", DEVICE, "55", "0"]));
    let before = node.state();
    let times = if cxi_test_kit::full() { 100 } else { 20 };
    let mut random = Random::new(1);
    for _ in 0..times {
        let mut launcher =
            node.command(&[client(), "churn", DEVICE, &svc_id]).spawn().expect("the server runs");
        std::thread::sleep(Duration::from_micros(random.below(1 << 16)));
        // In turn the program, one of its guards, and its launcher.
        let watching = watching(launcher.id());
        let victim = watching[random.below(watching.len())];
        kill("KILL", victim);
        launcher.wait().expect("the launcher ends");
    }
    eventually("a program is left", || node::with_argument("churn").is_empty());
    eventually("the accounting is as before", || node.state() == before);
    printed(&node.enter(&[client(), "destroy", DEVICE, &svc_id]));
}

#[test]
fn a_storm_of_commands() {
    need_node!();
    let node = Served::start(&[]);
    let before = node.state();
    let commands = if cxi_test_kit::full() { "10000" } else { "400" };
    let programs: Vec<_> = (0..8)
        .map(|number: u32| {
            let number = number.to_string();
            node.command(&[client(), "storm", DEVICE, &number, "4", commands])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the server runs")
        })
        .collect();
    for program in programs {
        let output = program.wait_with_output().expect("the program ends");
        assert_eq!(printed(&output), "ok");
    }
    assert_eq!(node.state(), before);
}

#[test]
fn a_served_node_ends_on_request() {
    need_node!();
    let mut node = Served::start(&[]);
    let socket = format!("{}/control", node.dir());
    assert!(fs::exists(&socket).expect("the directory is there"));
    assert_eq!(node.end("TERM").code(), Some(0));
    assert!(!fs::exists(&socket).expect("the directory is there"));
    refused(&node.enter(&["true"]), "there is no node in");
}

#[test]
fn entered_programs_end_with_the_node() {
    need_node!();
    for signal in ["TERM", "KILL"] {
        let mut node = Served::start(&[]);
        let (tree, script) = Tree::script(if signal == "TERM" { 20 } else { 21 });
        let mut program = node
            .command(&["sh", "-c", &script])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server runs");
        eventually("all processes are there", || node::with_argument(&tree.word).len() >= 5);
        node.end(signal);
        assert_eq!(program.wait().expect("it ends").code(), Some(137));
        assert!(tree.is_gone());
    }
}

#[test]
fn a_program_may_outlive_its_launcher() {
    need_node!();
    let node = Served::start(&[]);
    let (tree, script) = Tree::script(22);
    let enter = ["enter", "--dir", &node.dir(), "--outlive", "--", "sh", "-c"];
    let script = format!("({script}) >/dev/null 2>&1 & echo started");
    let output = server(enter).arg(script).run();
    assert_eq!(printed(&output), "started");
    eventually("all processes are there", || node::with_argument(&tree.word).len() >= 5);
    for pid in node::with_argument(&tree.word) {
        kill("KILL", pid);
    }
    eventually("a process is left", || tree.is_gone());
}

#[test]
fn a_directory_belongs_to_one_node() {
    need_node!();
    let node = Served::start(&[]);
    let output = server(["serve", "--dir", &node.dir()]).output();
    let output = output.expect("the server runs");
    refused(&output, "there is already a node in");
    printed(&node.enter(&["true"]));
}
