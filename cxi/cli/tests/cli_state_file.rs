//! The state file of a mock node.

mod common;

use std::os::unix::fs::PermissionsExt as _;
use std::{fs, thread};

use common::{Arguments, MockNode, Said, assert_contains, command, cxi};

const LEFT: &str = "\n  The file was left as it is. Name another one, or remove it to start over.";

/// Refused, and the file is unchanged.
#[track_caller]
fn refused_and_kept(node: &MockNode, text: &str, message: &str) {
    fs::write(node.file(), text).unwrap();
    let expected = format!("error: {}: {message}", node.file().display());
    for arguments in ["service list", "service create --vni=7", "service destroy 2"] {
        node.cxi(arguments).refused(2, &expected);
        assert_eq!(fs::read_to_string(node.file()).unwrap(), text);
    }
}

#[test]
fn damaged_files_are_refused_and_kept() {
    let node = MockNode::new();
    node.cxi("service create --vni=7").done();
    let good = fs::read_to_string(node.file()).unwrap();

    let half = &good[..good.len() / 2];
    let lines = half.lines().count();
    let column = half.lines().last().unwrap().len();
    fs::write(node.file(), half).unwrap();
    let said = node.cxi("service list");
    said.mentions(2, "the state file is cut off: EOF while parsing");
    said.mentions(2, &format!("at line {lines} column {column}"));
    assert_eq!(fs::read_to_string(node.file()).unwrap(), half);

    refused_and_kept(
        &node,
        "",
        &format!("the state file is empty: expected the state of a mock node as JSON{LEFT}"),
    );
    refused_and_kept(
        &node,
        &good.replace("\"version\": 1", "\"version\": 2"),
        &format!("the state file has version 2, this cxi reads version 1{LEFT}"),
    );
    for other in ["{\"nics\": []}", "[]", "null"] {
        refused_and_kept(
            &node,
            other,
            &format!(
                "line 1: invalid state file: expected an object with \"format\": \"cxi mock \
                 node\"{LEFT}"
            ),
        );
    }
}

#[test]
fn a_read_only_file_can_be_read() {
    let node = MockNode::new();
    node.cxi("service create --vni=7").done();
    fs::set_permissions(node.file(), fs::Permissions::from_mode(0o444)).unwrap();
    let before = fs::read(node.file()).unwrap();
    node.cxi("service list").done();
    node.cxi("service create --vni=8").refused(
        2,
        &format!(
            "error: {}: the state file is read-only, and this command would change it\n  Make \
             it writable, or name another file.",
            node.file().display()
        ),
    );
    assert_eq!(fs::read(node.file()).unwrap(), before);
}

#[test]
fn a_missing_directory_and_a_directory_are_rejected_as_state_files() {
    let node = MockNode::new();
    let directory = node.directory().display().to_string();
    cxi(&[&format!("--mock={directory}/none/state.json"), "devices"]).refused(
        2,
        &format!(
            "error: {directory}/none/state.json: cannot be used as state file: No such file or \
             directory (os error 2)"
        ),
    );
    for command in ["service create --vni=7", "devices"] {
        for other in [&*directory, "/dev/zero"] {
            let mock = format!("--mock={other}");
            cxi(&[vec![&*mock], command.words()].concat()).refused(
                2,
                &format!("error: {other}: the state file cannot be read: not a regular file"),
            );
        }
    }
}

/// Neither a pipe without a writer nor a file of any length is read.
#[test]
fn only_a_file_of_sane_length_is_read() {
    let node = MockNode::new();
    let pipe = node.directory().join("pipe").display().to_string();
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    cxi(&[&format!("--mock={pipe}"), "service", "list"])
        .refused(2, &format!("error: {pipe}: the state file cannot be read: not a regular file"));
    let long = fs::File::create(node.file()).unwrap();
    long.set_len((64 << 20) + 1).unwrap();
    node.cxi("service list").refused(
        2,
        &format!(
            "error: {}: the state file cannot be read: too long: expected at most 67108864 bytes",
            node.file().display()
        ),
    );
}

#[test]
fn the_options_of_a_new_node_must_fit_the_file() {
    let node = MockNode::new();
    node.cxi("--mock-nics=3 --mock-release=main devices").done();
    node.cxi("--mock-nics=3 devices").done();
    let file = node.file().display().to_string();
    node.cxi("--mock-nics=4 devices").refused(
        2,
        &format!(
            "error: {file}: the mock node in this file has 3 NICs, not 4\n  --mock-nics describes \
             a new node; leave it out, or name another file."
        ),
    );
    node.cxi("--mock-release=shs-12.0 devices").refused(
        2,
        &format!(
            "error: {file}: the mock node in this file has the driver of main-2026-07, not of shs-12.0\n  \
             --mock-release describes a new node; leave it out, or name another file."
        ),
    );
}

#[test]
fn calls_at_the_same_time_lose_nothing() {
    let node = MockNode::new();
    thread::scope(|scope| {
        for vni in 100..108 {
            // Quiet: a call that waits for another one for long says so.
            let create = format!("-q service create --vni={vni} --limit=txqs=1:1");
            let node = &node;
            scope.spawn(move || node.cxi(&create).done());
        }
    });
    let list = node.cxi("service list -d cxi0 --json").json();
    assert_eq!(list["services"].as_array().map(Vec::len), Some(9));
    let left: Vec<_> = fs::read_dir(node.directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert!(left.is_empty(), "temporary files are left: {left:?}");
}

#[test]
fn a_link_stays_a_link() {
    let node = MockNode::new();
    let link = node.directory().join("link.json");
    std::os::unix::fs::symlink(node.file(), &link).unwrap();
    let option = format!("--mock={}", link.display());
    // A dangling link: the file that it names is created.
    fs::write(node.file(), "").unwrap();
    fs::remove_file(node.file()).unwrap();
    node.cxi("devices").done();
    cxi(&[&option, "service", "create", "--vni=7"]).done();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let list = node.cxi("service list -d cxi0 --json").json();
    assert_eq!(list["services"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_reader_that_goes_away_is_not_a_failure() {
    use std::process::Stdio;
    let mut completions = command("completions bash");
    let piped = completions.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    drop(child.stdout.take());
    Said::from(child.wait_with_output().unwrap()).prints("");
}

#[test]
fn manual_pages_and_completions_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display().to_string();
    let written = cxi(&["man", &path]).done();
    assert_contains(&written, "cxi-service-create.1");
    let page = fs::read_to_string(directory.path().join("cxi-service-create.1")).unwrap();
    for part in [
        "vni\\-range",
        ".SH \"EXIT STATUS\"",
        "cxi service create \\-\\-from",
        "cxi(1) for the options",
    ] {
        assert_contains(&page, part);
    }
    // Examples come first, and options of every command are described once.
    let (before, after) = page.split_once(".SH EXAMPLES").unwrap();
    assert!(before.contains(".SH SYNOPSIS") && after.contains(".SH DESCRIPTION"), "{page}");
    assert!(!page.contains("mock\\-nics"), "{page}");
    let first = fs::read_to_string(directory.path().join("cxi.1")).unwrap();
    assert_contains(&first, "mock\\-nics");
    let settings = fs::read_to_string(directory.path().join("cxi.toml.5")).unwrap();
    for part in ["node.retry\\-busy", "CXI_RETRY_BUSY", "etcd.timeout", "The default is 2s"] {
        assert_contains(&settings, part);
    }
    let script = cxi("completions bash").done();
    assert!(script.contains("_clap_complete_cxi") && script.len() < 4000, "{script}");
    let about = "Manage a pool of VNIs";
    let page = fs::read_to_string(directory.path().join("cxi-vni.1")).unwrap();
    assert_contains(&page, about);
    assert_contains(&cxi("vni --help").done(), about);
    cxi("man /nowhere")
        .refused(2, "error: /nowhere: not a directory: expected one for the manual pages");
}
