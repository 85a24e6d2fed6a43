//! The requests of the known clients, byte for byte, and the required responses. Each requirement has a
//! number, which is part of the name of its test.
//!
//! | number | requirement |
//! |---|---|
//! | W1 | `Expect: 100-continue` is answered; a DELETE may be chunked, with an empty body |
//! | W2 | unknown headers are ignored |
//! | W3 | the list has links, with and without the final slash in the path |
//! | W4 | without reservations, it is an empty list |
//! | W5 | every response has a JSON body, errors with both `message` and `detail` |
//! | W6 | a tree is deleted with 200 |
//! | W7 | `hwRoot` has six octets, `mcastID` is a number |
//! | W8 | a prefix in front of all paths |
//! | W9 | a form with secrets that are not escaped gets a token |
//! | W10 | one request per connection |
//! | W11 | certificates: in `tests/tests/fabric_manager/`, with a TLS proxy |
//! | W12 | no response with a multiple of 4096 bytes |

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use cxi_fabric_manager::MockFabricManager;
use support::{Answer, BASIC, configured, exchange, make_tree, reserve, send, tree};

/// Slurm's requests for one job, in order.
#[test]
fn w1_w3_w4_w10_a_workload_manager_reserves_ends_a_step_and_releases() {
    let manager = MockFabricManager::start().unwrap();
    let host = manager.address();
    let secret = "client_id=wlm&client_secret=mock-secret";
    let form = format!("grant_type=client_credentials&{secret}&scope=openid");
    let token = Answer::of(
        &exchange(
            host,
            format!(
                "POST /token HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\nContent-Length: {}\r\n\
                 Content-Type: application/x-www-form-urlencoded\r\n\r\n{form}",
                form.len()
            )
            .as_bytes(),
        )
        .unwrap(),
    );
    assert_eq!((token.status, token.json()["expires_in"].as_u64()), (200, Some(300)));
    assert_eq!(token.text("token_type"), "Bearer");
    let token = token.text("access_token");
    let head = |line: &str| {
        format!(
            "{line} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nAccept: */*\r\n\
             Content-Type: application/json\r\n"
        )
    };
    let plain = |line: &str, body: &str| {
        let length = if body.is_empty() {
            String::new()
        } else {
            format!("Content-Length: {}\r\n", body.len())
        };
        let bytes = format!("{}{length}\r\n{body}", head(line));
        Answer::of(&exchange(host, bytes.as_bytes()).unwrap())
    };
    let jobs = "/fabric/collectives/jobs";

    let none = plain(&format!("GET {jobs}/alpha-17"), "");
    assert_eq!(none.status, 404);
    assert_eq!(none.text("detail"), none.text("message"));
    let list = plain(&format!("GET {jobs}/"), "");
    assert_eq!((list.status, list.json()["documentLinks"].clone()), (200, serde_json::json!([])));

    let made = plain(&format!("POST {jobs}"), r#"{"jobID":"alpha-17","mcastLimit":4}"#);
    assert_eq!(made.status, 200);
    let session = made.text("sessionToken");
    let found = plain(&format!("GET {jobs}/alpha-17"), "");
    assert_eq!(found.text("sessionToken"), session);
    let again = plain(&format!("POST {jobs}"), r#"{"jobID":"alpha-17","mcastLimit":4}"#);
    assert_eq!(again.status, 409);
    for path in ["GET /fabric/collectives/jobs/", "GET /fabric/collectives/jobs"] {
        let links = plain(path, "").json()["documentLinks"].clone();
        assert_eq!(links, serde_json::json!(["/fabric/collectives/jobs/alpha-17"]));
    }

    let session = format!("Bearer {session}");
    make_tree(&manager, &session, "alpha-17", "0", r#""1:44:33""#);
    assert_eq!(manager.state().jobs["alpha-17"].steps["0"], [1]);
    let ended = plain(&format!("PATCH {jobs}/alpha-17"), r#"{"jobSteps":{"0":null}}"#);
    assert_eq!((ended.status, ended.json()["jobSteps"].clone()), (200, serde_json::json!({})));

    // The chunked deletion, whose body is sent only after 100 Continue.
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let delete = head(&format!("DELETE {jobs}/alpha-17"));
    write!(stream, "{delete}Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n").unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"0\r\n\r\n").unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(Answer::of(&rest).status, 200);
    manager.assert_quiet();
}

/// libfabric's requests for one tree.
#[test]
fn w2_w6_w7_a_library_makes_and_deletes_a_tree() {
    let manager = MockFabricManager::start().unwrap();
    let host = manager.address();
    let session = reserve(&manager, "alpha-17", 2);
    let body = tree("alpha-17", "3", r#""1:44:33","0:00:01","1:44:33""#);
    let bytes = format!(
        "POST /fabric/collectives/multicasts HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n\
         Content-Type: application/json\r\ncharset: utf-8\r\nAuthorization: {session}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let made = Answer::of(&exchange(host, bytes.as_bytes()).unwrap());
    assert_eq!(made.status, 200);
    assert_eq!(made.json()["mcastID"].as_u64(), Some(1));
    assert_eq!(made.text("hwRoot"), "00:00:00:01:44:33");
    // A NIC can be the root of only one tree.
    let second = send(&manager, &session, "POST multicasts", &body);
    assert_eq!(second.text("hwRoot"), "00:00:00:00:00:01");

    let bytes = format!(
        "DELETE /fabric/collectives/multicasts/1 HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n\
         Content-Type: application/json\r\ncharset: utf-8\r\nAuthorization: {session}\r\n\r\n"
    );
    assert_eq!(Answer::of(&exchange(host, bytes.as_bytes()).unwrap()).status, 200);
    assert_eq!(Answer::of(&exchange(host, bytes.as_bytes()).unwrap()).status, 404);
    assert_eq!(manager.state().roots.len(), 1);
}

/// libfabric shows the user a message chosen by the digits before the first colon.
#[test]
fn what_is_short_has_a_number() {
    let manager = configured(|config| config.settings.addresses = (7, 8));
    let small = reserve(&manager, "a-1", 1);
    let large = reserve(&manager, "a-2", 9);
    let make = |session: &str, job: &str, nics: &str| make_tree(&manager, session, job, "0", nics);
    let code = |answer: &Answer| (answer.status, answer.text("message")[..3].to_owned());
    assert_eq!(make(&small, "a-1", r#""0:00:01""#).json()["mcastID"].as_u64(), Some(7));
    assert_eq!(code(&make(&small, "a-1", r#""0:00:02""#)), (507, "01:".to_owned()));
    assert_eq!(code(&make(&large, "a-2", r#""0:00:01""#)), (507, "03:".to_owned()));
    assert_eq!(make(&large, "a-2", r#""0:00:02""#).status, 200);
    assert_eq!(code(&make(&large, "a-2", r#""0:00:03""#)), (507, "02:".to_owned()));
}

/// Checks have an order: form, token, job.
#[test]
fn requests_are_refused_for_the_first_reason() {
    let manager = MockFabricManager::start().unwrap();
    let own = reserve(&manager, "a-1", 1);
    let other = reserve(&manager, "a-2", 1);
    let good = tree("a-1", "0", r#""0:00:01""#);
    let status = |who: &str, line: &str, body: &str| send(&manager, who, line, body).status;
    for (wrong, what) in [
        ("{", "EOF while parsing an object"),
        ("[]", "not a JSON object"),
        (&*tree("a-1", "0", ""), "0 NICs: expected 1"),
        (&*tree("a-1", "0", r#""1:2:3""#), "such as 1:44:33"),
        (&*good.replace("10", "0"), "invalid VNI 0: expected 1 to 65535"),
        (&*good.replace("20000000", "20000001"), "expected 1 to 20000000 microseconds"),
        (&*good.replace("jobStepID", "step"), "missing field `jobStepID`"),
    ] {
        let answer = send(&manager, "Bearer nobody", "POST multicasts", wrong);
        assert_eq!(answer.status, 400, "{wrong}");
        assert!(answer.text("message").contains(what), "{}", answer.body);
    }
    assert_eq!(status("Bearer nobody", "POST multicasts", &good), 401);
    assert_eq!(status(&other, "POST multicasts", &good), 401);
    assert_eq!(status(BASIC, "POST multicasts", &tree("a-9", "0", r#""0:00:01""#)), 404);
    assert_eq!(status(&own, "POST multicasts", &good), 200);
    assert_eq!(status(&other, "DELETE multicasts/1", ""), 403);
    assert_eq!(status(&own, "DELETE multicasts/x", ""), 400);
    // A session token allows reading its job and ending its steps, and nothing else.
    assert_eq!(status(&own, "GET jobs/a-1", ""), 200);
    assert_eq!(status(&own, "GET jobs/a-2", ""), 403);
    assert_eq!(status(&own, "GET jobs/", ""), 403);
    assert_eq!(status(&own, "DELETE jobs/a-1", ""), 403);
    let patch = "PATCH jobs/a-1";
    assert_eq!(status(&own, patch, r#"{"jobSteps":{"0":1}}"#), 400);
    assert_eq!(status(&own, patch, r#"{"jobSteps":{"0":null,"9":null}}"#), 200);
    assert!(manager.state().roots.is_empty());
    assert_eq!(status("Basic bm9ib2R5", "GET jobs/", ""), 401);
    for limit in ["0", "-1", "1.5", "\"4\"", "null"] {
        let body = format!(r#"{{"jobID":"a-3","mcastLimit":{limit}}}"#);
        assert_eq!(status(BASIC, "POST jobs", &body), 400, "{limit}");
    }
    manager.expect_vnis("a-1", &[77]);
    let foreign = send(&manager, &own, "POST multicasts", &good);
    assert_eq!(foreign.text("message"), "VNI 10 does not belong to job a-1");
}

/// No response has a length at which libfabric would read past its buffer, unless a fault requests it.
#[test]
fn w12_no_answer_is_a_multiple_of_a_page() {
    let manager = MockFabricManager::start().unwrap();
    let lengths: Vec<usize> = (1..=120)
        .map(|job| {
            reserve(&manager, &format!("cluster-of-some-length-{job:08}"), 1);
            send(&manager, BASIC, "GET jobs/", "").body.len()
        })
        .collect();
    assert!(lengths.iter().any(|length| *length > 4096));
    assert!(lengths.iter().all(|length| length % 4096 != 0), "{lengths:?}");
}

#[test]
fn what_is_no_http_is_answered_or_left() {
    let manager = MockFabricManager::start().unwrap();
    let status =
        |bytes: &[u8]| exchange(manager.address(), bytes).map(|text| text[9..12].to_owned());
    assert_eq!(status(b"\x00\x01\r\n\r\n").unwrap(), "400");
    assert_eq!(status(b"POST /token HTTP/1.1\r\nContent-Length: x\r\n\r\n").unwrap(), "400");
    assert_eq!(
        status(b"POST /token HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n").unwrap(),
        "400"
    );
    assert_eq!(
        status(b"POST /token HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").unwrap(),
        "400"
    );
    // Sizes that overflow when they are added to the current length.
    let most = "ffffffffffffffff";
    let huge =
        format!("POST /token HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n{most}\r\n");
    assert_eq!(status(huge.as_bytes()).unwrap(), "400");
    let long = [b"GET /".as_slice(), &vec![b'a'; 70_000]].concat();
    assert!(exchange(manager.address(), &long).is_ok_and(|text| text.starts_with("HTTP/1.1 400")));
    assert_eq!(status(b"BREW /pot HTTP/1.1\r\n\r\n").unwrap(), "404");
}

/// The part of an error that a client shows: Slurm `detail`, libfabric `message`.
#[test]
fn w5_every_error_says_why_in_json() {
    let manager = MockFabricManager::start().unwrap();
    let own = reserve(&manager, "a-1", 1);
    let other = reserve(&manager, "a-2", 1);
    let (first, second) = (tree("a-1", "0", r#""0:00:01""#), tree("a-1", "0", r#""0:00:02""#));
    let made = send(&manager, &own, "POST multicasts", &first);
    assert_eq!(made.status, 200);
    for (status, who, line, body) in [
        (400, BASIC, "POST jobs", "{"),
        (401, "Bearer nobody", "GET jobs/", ""),
        (403, &*other, "DELETE multicasts/1", ""),
        (404, BASIC, "GET jobs/a-9", ""),
        (404, BASIC, "PATCH jobs/a-9", r#"{"jobSteps":{}}"#),
        (404, BASIC, "DELETE jobs/a-9", ""),
        (404, BASIC, "GET /", ""),
        (409, BASIC, "POST jobs", r#"{"jobID":"a-1","mcastLimit":1}"#),
        (507, &*own, "POST multicasts", &*second),
    ] {
        let answer = send(&manager, who, line, body);
        assert_eq!(answer.status, status, "{line}");
        let message = answer.text("message");
        assert!(!message.is_empty() && message == answer.text("detail"), "{line}");
    }
}

#[test]
fn every_must_has_a_test() {
    let tests = [include_str!("wire.rs"), include_str!("access.rs")].concat();
    let names: Vec<_> = tests.lines().filter(|line| line.starts_with("fn ")).collect();
    for number in (1..=12).filter(|number| *number != 11) {
        let number = format!("w{number}_");
        assert!(names.iter().any(|name| name.contains(&number)), "{number}");
    }
}
