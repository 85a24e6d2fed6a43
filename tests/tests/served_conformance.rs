//! Replays recorded scenarios on served nodes, as the users that they name.
//!
//! A part of the scenarios; all of them with `CXI_TEST_FULL=1`.

use std::io::Write;
use std::process::Stdio;
use std::thread;

use cxi_test_kit::Directory;
use cxi_tests::archive::{self, File};
use cxi_tests::device::Device;
use cxi_tests::mock::InProcess;
use cxi_tests::node::{Run, client, cxi_mock, need_node, server};
use cxi_tests::on_node;
use cxi_tests::scenario::{Scenario, Setup};
use serde_json::Value;

/// One scenario of this many is replayed.
const PART: usize = 50;

/// Names of network namespaces in scenarios. A test cannot choose their numbers.
const NAMESPACES: [&str; 3] = ["NETNS", "NET_NS", "\"netns\":4026531841"];

/// The options of the server for a scenario.
fn options(scenario: &Scenario, directory: &Directory) -> Vec<String> {
    let Setup { params, vf } = &scenario.device;
    let mut options = vec!["--manual-cleanup".to_owned()];
    options.extend(["--dir".to_owned(), directory.join("node")]);
    options.extend(["--release".to_owned(), scenario.driver.name().to_owned()]);
    for (name, value) in params {
        let value = match value {
            Value::Bool(value) => u8::from(*value).to_string(),
            Value::Array(list) => {
                let list: Vec<_> = list.iter().map(ToString::to_string).collect();
                list.join(",")
            }
            value => value.to_string(),
        };
        options.extend(["--set".to_owned(), format!("{name}={value}")]);
    }
    if *vf {
        let config = directory.write("config.json", r#"{"virtual_functions": 1}"#);
        options.extend(["--config".to_owned(), config]);
    }
    options
}

fn replay(file: &File) {
    let scenario = Scenario::parse(&file.json).expect("a scenario");
    let directory = Directory::new();
    let mut node = server(["run"]);
    node.args(options(&scenario, &directory)).arg("--");
    if InProcess::load(scenario.driver, &scenario.device).is_err() {
        // A server that cannot load the driver has no errno to return, and prints it.
        let output = node.arg("true").run();
        assert_eq!(output.status.code(), Some(125), "{}: {output:?}", file.path);
        return;
    }
    node.args([client(), "replay"]).env(on_node::SERVER, cxi_mock());
    let mut replay = node.stdin(Stdio::piped()).start();
    let mut input = replay.stdin.take().expect("a pipe");
    input.write_all(&file.json).expect("the program reads");
    drop(input);
    let output = replay.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}\n{said}", file.path);
}

#[test]
fn scenarios_on_a_served_node() {
    need_node!(cxi_test_kit::root("be every user of a scenario"));
    let mut files = archive::packed().expect("the project's copy can be read");
    files.retain(|file| {
        let text = String::from_utf8_lossy(&file.json).replace(' ', "");
        !NAMESPACES.iter().any(|name| text.contains(name))
    });
    let part = if cxi_test_kit::full() { 1 } else { PART };
    let files: Vec<_> = files.into_iter().skip(part / 2).step_by(part).collect();
    assert!(files.len() > 10, "there are scenarios");
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for files in files.chunks(files.len().div_ceil(workers)) {
            scope.spawn(|| files.iter().for_each(replay));
        }
    });
}
