//! `cxi-mock fabric-manager`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use cxi_test_kit::Directory;
use cxi_tests::node::cxi_mock;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

fn get(url: &str, path: &str) -> String {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn it_serves_until_it_is_ended() {
    let files = Directory::new();
    let config = r#"{"prefix": "/apis/fm", "settings": {"addresses": [1, 9]}}"#;
    let config = files.write("config.json", config);
    let mut server = Command::new(cxi_mock())
        .args(["fabric-manager", "--config"])
        .arg(&config)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    while !said.ends_with('}') {
        said += &lines.next().unwrap().unwrap();
    }
    let said: Value = serde_json::from_str(&said).unwrap();
    let url = said["url"].as_str().unwrap();
    let (address, prefix) = url.rsplit_once("/apis/").unwrap();
    assert_eq!(prefix, "fm");
    assert_eq!(said["multicasts_url"], format!("{url}/fabric/collectives/multicasts"));
    let list = get(address, "/apis/fm/fabric/collectives/jobs/");
    assert!(list.starts_with("HTTP/1.1 401 "), "{list}");
    let quiet = get(said["control_url"].as_str().unwrap(), "/quiet");
    assert!(quiet.starts_with("HTTP/1.1 200 "), "{quiet}");
    kill(Pid::from_raw(server.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    let status = server.wait().unwrap();
    assert!(status.code().is_some(), "{status}");
}

#[test]
fn a_wrong_configuration_is_refused() {
    let files = Directory::new();
    let run = |text: &str| {
        let config = files.write("config.json", text);
        let run =
            Command::new(cxi_mock()).args(["fabric-manager", "--config"]).arg(&config).output();
        let output = run.unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, message) = run(r#"{"setings": {}}"#);
    assert_eq!(code, Some(125));
    assert!(message.contains("config.json: unknown field `setings`, expected one of"), "{message}");
    let (code, message) = run(r#"{"settings": {"addresses": [5, 4]}}"#);
    assert_eq!(code, Some(125));
    assert!(
        message.contains("invalid multicast ids 5 to 4: expected a range within 0 to 8191"),
        "{message}"
    );
}
