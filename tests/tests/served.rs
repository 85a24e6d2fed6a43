//! Programs that are unaware of the mock, on a served node.

use std::process::Command;
use std::time::Instant;

use cxi_ioctl::DriverRelease;
use cxi_test_kit::{Directory, skip};
use cxi_tests::node::{self, DEVICE, Served, client, errors, need_node, printed, run};

#[test]
fn a_c_program() {
    need_node!();
    let directory = Directory::new();
    for (name, link) in [("dynamic", None), ("static", Some("-static"))] {
        let program = directory.join(name);
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/c/service.c");
        let compiled = Command::new("cc")
            .args(["-std=gnu11", "-Wall", "-Wextra", "-o", &program, source])
            .args(link)
            .output();
        match compiled {
            Err(error) => return skip(format_args!("there is no C compiler cc: {error}")),
            Ok(output) if !output.status.success() && link.is_some() => {
                let why = errors(&output);
                skip(format_args!("cc does not link statically: {why}"));
                continue;
            }
            Ok(output) => assert!(output.status.success(), "{output:?}"),
        }
        for release in DriverRelease::ALL {
            let length = if release >= DriverRelease::Main2026_07 { "24" } else { "16" };
            let output = run(&["--release", release.name(), "--", &program, DEVICE, length]);
            assert_eq!(printed(&output), "ok", "{name}, {release}");
        }
    }
}

#[test]
fn a_python_program() {
    need_node!(cxi_test_kit::has("python3"));
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/python/service.py");
    for release in ["shs-12.0", "shs-14.0.1", "main"] {
        let output = run(&["--release", release, "--", "python3", program, DEVICE]);
        assert_eq!(printed(&output), "ok", "{release}");
    }
}

#[test]
fn a_program_that_opens_a_terminal() {
    need_node!(cxi_test_kit::has("script"));
    let typed = ["script", "--quiet", "--return", "--command", "test -t 0 && echo ok", "/dev/null"];
    assert_eq!(printed(&run(&[&["--"], &typed[..]].concat())), "ok");
}

#[test]
fn the_library_sleeps_on_wait_objects() {
    need_node!();
    let node = Served::start(&[]);
    let output = node.enter(&[client(), "wait", "cxi0", node::cxi_mock(), "ctl", "wake"]);
    assert_eq!(printed(&output), "ok");
}

#[test]
fn services_outlive_programs() {
    need_node!();
    let node = Served::start(&[]);
    let svc_id = printed(&node.enter(&[client(), "allocate", DEVICE, "55", "0"]));
    assert_eq!(printed(&node.enter(&[client(), "count", DEVICE])), "2");
    // The LNI goes with its process, so that the service is idle at once.
    printed(&node.enter(&[client(), "lni", DEVICE, &svc_id]));
    printed(&node.enter(&[client(), "destroy", DEVICE, &svc_id]));
    assert_eq!(printed(&node.enter(&[client(), "count", DEVICE])), "1");
}

#[test]
fn who_calls_counts() {
    need_node!(cxi_test_kit::root("run programs as other users"));
    let node = Served::start(&[]);
    let svc_id = printed(&node.enter(&[client(), "allocate", DEVICE, "55", "1234"]));
    let as_user = |uid: &str, command: &[&str]| {
        let mut program = vec![client(), "as", uid];
        program.extend(command);
        node.enter(&program)
    };
    let error = |output: &std::process::Output| {
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).trim().to_owned()
    };
    // Only the member may use the service, not even root.
    let lni = [client(), "lni", DEVICE, &svc_id];
    printed(&as_user("1234", &lni));
    assert!(error(&as_user("1235", &lni)).ends_with("EPERM"));
    assert!(error(&node.enter(&lni)).ends_with("EPERM"));
    // Changing services needs the capability, and being root without it does not help.
    let destroy = [client(), "destroy", DEVICE, &svc_id];
    assert!(error(&as_user("1234", &destroy)).ends_with("EPERM"));
    printed(&node.enter(&destroy));
}

#[test]
fn lists_and_responses_of_a_slow_nic() {
    need_node!();
    let node = Served::start(&["--fault", "delay=50ms"]);
    let time = |threads: &str, commands: &str| {
        let start = Instant::now();
        let storm = [client(), "storm", DEVICE, "0", threads, commands];
        assert_eq!(printed(&node.enter(&storm)), "ok");
        start.elapsed()
    };
    // As many slow commands by one thread and by eight. Four of these share an open file, and where
    // its windows can be mapped, the kernel lets them write one after another: half the time is the
    // best.
    let (serial, parallel) = (time("1", "64"), time("8", "8"));
    assert!(parallel * 4 < serial * 3, "{parallel:?}, {serial:?}");
}

#[test]
fn commands_are_traced() {
    need_node!();
    let directory = Directory::new();
    let file = directory.join("trace");
    printed(&run(&["--trace", &file, "--", client(), "cycle", DEVICE]));
    let lines = node::json_lines(&file);
    let named = |command: &str, result: &str| {
        lines.iter().filter(|line| line["command"] == command && line["result"] == result).count()
    };
    assert_eq!(named("SVC_DESTROY", "OK"), 1, "{lines:?}");
    assert_eq!(named("SVC_DESTROY", "EBUSY"), 1, "{lines:?}");
    assert_eq!(named("SVC_DESTROY", "EINVAL"), 1, "{lines:?}");
    assert!(lines.iter().all(|line| line["device"] == "cxi0"), "{lines:?}");
}
