//! Sends requests as bytes, and parses the responses.

#![allow(dead_code, reason = "each test uses some of it")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use cxi_fabric_manager::{Config, MockFabricManager};
use serde_json::Value;

pub(crate) const BASIC: &str = "Basic Y3hpOm1vY2stcGFzc3dvcmQ=";

/// Everything that a server sends until it closes the connection.
pub(crate) fn exchange(address: SocketAddr, bytes: &[u8]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(bytes)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// A response, split into its parts.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        Self {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a JSON body")
    }

    #[track_caller]
    pub(crate) fn text(&self, member: &str) -> String {
        self.json()[member].as_str().expect(member).to_owned()
    }
}

/// A request with this `authorization`.
#[track_caller]
pub(crate) fn send(
    manager: &MockFabricManager,
    authorization: &str,
    line: &str,
    body: &str,
) -> Answer {
    Answer::of(&exchange(manager.address(), &request(authorization, line, body)).unwrap())
}

/// A method and a path, which is below `/fabric/collectives/` unless it starts with a slash.
pub(crate) fn request(authorization: &str, line: &str, body: &str) -> Vec<u8> {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let path = match path.strip_prefix('/') {
        Some(path) => path.to_owned(),
        None => format!("fabric/collectives/{path}"),
    };
    format!(
        "{method} /{path} HTTP/1.1\r\nHost: fm\r\nAuthorization: {authorization}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The header with a reservation's session token.
#[track_caller]
pub(crate) fn reserve(manager: &MockFabricManager, job: &str, limit: u32) -> String {
    let body = format!(r#"{{"jobID":"{job}","mcastLimit":{limit}}}"#);
    let answer = send(manager, BASIC, "POST jobs", &body);
    assert_eq!(answer.status, 200, "{}", answer.body);
    format!("Bearer {}", answer.text("sessionToken"))
}

/// A manager with a configuration other than the default.
pub(crate) fn configured(change: impl FnOnce(&mut Config)) -> MockFabricManager {
    let mut config = Config::default();
    change(&mut config);
    MockFabricManager::bind(config, "127.0.0.1:0").unwrap()
}

pub(crate) fn tree(job: &str, step: &str, nics: &str) -> String {
    format!(
        r#"{{"macs":[{nics}],"vni":10,"timeout":20000000,"jobID":"{job}","jobStepID":"{step}"}}"#
    )
}

/// The response to a request for a tree.
#[track_caller]
pub(crate) fn make_tree(
    manager: &MockFabricManager,
    session: &str,
    job: &str,
    step: &str,
    nics: &str,
) -> Answer {
    send(manager, session, "POST multicasts", &tree(job, step, nics))
}
