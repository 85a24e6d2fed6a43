//! Clients that are slow or send too much do not lock out others.

mod support;

use std::io::Write;
use std::net::TcpStream;

use cxi_fabric_manager::MockFabricManager;
use support::{Answer, BASIC, exchange, send};

#[test]
fn slow_clients_do_not_shut_out_others() {
    let manager = MockFabricManager::start().unwrap();
    let slow: Vec<_> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(manager.address()).unwrap();
            stream.write_all(b"G").unwrap();
            stream
        })
        .collect();
    let list = send(&manager, BASIC, "GET jobs/", "");
    assert_eq!(list.status, 200);
    drop(slow);
}

#[test]
fn a_long_body_takes_a_token_or_a_password() {
    let manager = MockFabricManager::start().unwrap();
    // The body is never sent; its announced length is enough to refuse it.
    let announce = |authorization: &str, length: u32| {
        let head = format!(
            "POST /fabric/collectives/jobs HTTP/1.1\r\n{authorization}Content-Length: {length}\r\n\r\n"
        );
        exchange(manager.address(), head.as_bytes())
    };
    for unknown in ["", "Authorization: Bearer nobody\r\n"] {
        let answer = Answer::of(&announce(unknown, 65_537).unwrap());
        assert_eq!(answer.status, 400);
        assert!(answer.text("message").contains("longer than 65536 bytes"));
    }
    let long = format!(r#"{{"jobID":"a-1","mcastLimit":1,"x":"{}"}}"#, "x".repeat(1 << 20));
    assert_eq!(send(&manager, BASIC, "POST jobs", &long).status, 200);
    let answer = Answer::of(&announce(&format!("Authorization: {BASIC}\r\n"), 1 << 25).unwrap());
    assert!(answer.text("message").contains("longer than 16777216 bytes"));
}
