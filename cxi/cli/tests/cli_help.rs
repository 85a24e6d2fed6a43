//! Help, and the completion of shells.

mod common;

use common::{MockNode, Said, assert_contains, command, cxi};

#[test]
fn help_begins_with_an_example_and_the_options_of_the_command() {
    let help = cxi("service create --help").done();
    let place = |part: &str| help.find(part).unwrap_or_else(|| panic!("{part:?} in {help}"));
    let parts = [
        "Create a service",
        "Usage: cxi service create",
        "Example: for a user, with limits\n  cxi service create --uid root",
        "--from <FILE>",
        "--uid <USER>",
        "--disabled",
        "Options of every command (--help-global describes them):\n  -d, --device NICS  --json",
    ];
    for pair in parts.windows(2) {
        assert!(place(pair[0]) < place(pair[1]), "{pair:?} in {help}");
    }
    assert!(help.lines().count() < 75, "{help}");
    let described = "Number of NICs of a new mock node";
    assert!(!help.contains(described), "{help}");
    for line in ["--help-global", "service create --help-global", "job --help-global"] {
        assert_contains(&cxi(line).done(), described);
    }
    for line in ["--help", "-h", "help job", "job prolog -h"] {
        assert_contains(&cxi(line).done(), "\nExample: ");
    }
}

#[test]
fn what_lists_and_shows_has_the_same_verbs_everywhere() {
    let node = MockNode::new();
    node.cxi("vni configure 1024-2047").done();
    for noun in ["devices", "service", "job", "vni", "config"] {
        let listed = node.cxi(&format!("{noun} list")).done();
        assert_eq!(node.cxi(&format!("{noun} ls")).done(), listed, "{noun}");
        assert_contains(&cxi(&format!("{noun} show --help")).done(), "Usage: cxi ");
    }
    assert_eq!(node.cxi("devices").done(), node.cxi("devices list").done());
    assert_eq!(node.cxi("devices -d cxi1 -v").done(), node.cxi("devices show cxi1").done());
    node.cxi("devices show cxi7").mentions(3, "cxi7");
    node.cxi("devices list cxi0 -d cxi1").mentions(2, "cannot be used with");
}

/// Candidates that a shell offers after these words, of which the last is incomplete.
fn offered(node: &MockNode, words: &[&str]) -> Vec<String> {
    let mut command = command(&[&["--", "cxi"], words].concat());
    command.env("COMPLETE", "fish").env("CXI_MOCK", node.file());
    let offered = Said::from(command.output().unwrap()).done();
    offered.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn a_shell_completes_what_this_node_has() {
    let node = MockNode::new();
    node.cxi("service create --uid=root --vni=1024").done();
    node.cxi("job prolog --job=17 --uid=root --vni=1025 --cores=1").done();
    for (words, expected) in [
        (&["ser"][..], &["service"][..]),
        (&["-d", ""], &["cxi0", "cxi1", "all"]),
        (&["devices", ""], &["list", "show"]),
        (&["devices", "show", ""], &["cxi0", "cxi1", "all"]),
        (&["--device", "cxi0,cxi"], &["cxi0,cxi0", "cxi0,cxi1"]),
        (&["service", "show", ""], &["1", "2", "3"]),
        (&["job", "epilog", "--job", ""], &["17"]),
        (&["job", "show", "1"], &["17"]),
        (&["service", "list", "--uid", "roo"], &["root"]),
        (&["service", "create", "--gid", "roo"], &["root"]),
        (&["service", "create", "--tc", "b"], &["bulk-data", "best-effort"]),
        (&["service", "create", "--limit", "t"], &["txqs=", "tgqs=", "tles="]),
        (&["explain", "ENOS"], &["ENOSPC", "ENOSYS"]),
        (&["--mock-release", "shs-14"], &["shs-14.0.0", "shs-14.0.1"]),
    ] {
        let offered = offered(&node, words);
        for expected in expected {
            assert!(offered.iter().any(|word| word == expected), "{words:?}: {offered:?}");
        }
        let values = offered.iter().filter(|word| !word.starts_with('-')).count();
        assert!(values < expected.len() + 3, "{words:?}: {offered:?}");
    }
    // Without a node there are still commands.
    let missing = MockNode::new();
    std::fs::write(missing.file(), "no node").unwrap();
    assert!(offered(&missing, &["service", "show", "--"]).contains(&"--verbose".to_owned()));
}
