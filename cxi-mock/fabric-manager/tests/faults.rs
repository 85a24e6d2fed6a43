//! All faults, as a client sees them.

mod support;

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use cxi_fabric_manager::api::Body;
use cxi_fabric_manager::{Config, Delivery, Effect, Endpoint, Fault, MockFabricManager};
use serde_json::json;
use support::{Answer, BASIC, configured, exchange, make_tree, request, reserve, send, tree};

fn list(manager: &MockFabricManager) -> std::io::Result<String> {
    exchange(manager.address(), &request(BASIC, "GET jobs/", ""))
}

#[test]
fn answers_can_be_late_broken_or_missing() {
    let manager = MockFabricManager::start().unwrap();
    let whole = list(&manager).unwrap();
    let once = |delivery: Delivery| {
        manager.inject(Fault::from(delivery).times(1));
        list(&manager)
    };
    let start = Instant::now();
    assert_eq!(once(Delivery::After(50)).unwrap(), whole);
    assert!(start.elapsed() >= Duration::from_millis(50));
    assert_eq!(once(Delivery::Drip(1)).unwrap(), whole);
    assert!(whole.starts_with(&once(Delivery::Cut(3)).unwrap()));
    assert_eq!(
        once(Delivery::Cut(3)).unwrap().len() + Answer::of(&whole).body.len() - 3,
        whole.len()
    );
    let short = Answer::of(&once(Delivery::TooShort(2)).unwrap());
    let promised = format!("Content-Length: {}", short.body.len() + 2);
    assert!(short.head.ends_with(&promised), "{}", short.head);
    assert_eq!(once(Delivery::Reset).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(list(&manager).unwrap(), whole);
}

#[test]
fn silence_lasts_until_the_client_gives_up() {
    use std::io::{Read, Write};
    let manager = MockFabricManager::start().unwrap();
    for (delivery, said) in [(Delivery::Silence, false), (Delivery::HeadOnly, true)] {
        manager.inject(Fault::from(delivery).times(1));
        let mut stream = std::net::TcpStream::connect(manager.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        stream.write_all(&request(BASIC, "GET jobs/", "")).unwrap();
        let mut text = Vec::new();
        let error = stream.read_to_end(&mut text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert_eq!(!text.is_empty(), said);
        assert!(!said || text.ends_with(b"\r\n\r\n"));
    }
}

#[test]
fn no_server_listens_for_a_while() {
    let manager = MockFabricManager::start().unwrap();
    manager.set_listening(false).unwrap();
    assert_eq!(list(&manager).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    manager.set_listening(true).unwrap();
    assert!(list(&manager).is_ok());
}

/// A fault affects some kinds of requests, begins after some requests, and happens a number of times.
#[test]
fn faults_are_counted() {
    let manager = MockFabricManager::start().unwrap();
    let status = || send(&manager, BASIC, "GET jobs/", "").status;
    let mut later = Fault::status(503).on(Endpoint::ListJobs).times(2);
    later.after = 1;
    manager.inject(later);
    manager.inject(Fault::status(500).on(Endpoint::CreateJob));
    assert_eq!([status(), status(), status(), status()], [200, 503, 503, 200]);
    let reserve = || send(&manager, BASIC, "POST jobs", r#"{"jobID":"a-1","mcastLimit":1}"#);
    assert_eq!([reserve().status, reserve().status], [500, 500]);
    manager.clear_faults();
    assert_eq!(reserve().status, 200);
    let journal = manager.journal();
    let faulty: Vec<u16> =
        journal.iter().filter(|entry| entry.fault).map(|entry| entry.status).collect();
    assert_eq!(faulty, [503, 503, 500, 500]);
}

#[test]
fn answers_can_be_others() {
    let manager = MockFabricManager::start().unwrap();
    let once = |fault: Fault| {
        manager.inject(fault.times(1));
        send(&manager, BASIC, "GET jobs/", "")
    };
    for status in [202, 400, 401, 403, 409, 500, 503] {
        assert_eq!(once(Fault::status(status)).status, status);
    }
    let page = once(Fault::answer(401, Body::Html));
    assert!(page.body.starts_with("<html>"));
    assert_eq!(once(Fault::answer(200, Body::Empty)).body, "");
    assert_eq!(once(Fault::answer(204, Body::Empty)).head.lines().count(), 2);
    for message in ["01: quota", "no colon", ":first"] {
        let short = once(Fault::answer(507, Body::Message(message.to_owned())));
        assert_eq!((short.status, short.text("message")), (507, message.to_owned()));
    }
    for links in
        [json!({}), json!({ "documentLinks": null }), json!({ "documentLinks": ["/x", null] })]
    {
        assert_eq!(once(Fault::answer(200, Body::Json(links.clone()))).json(), links);
    }
    let page = once(Fault::new(Effect::PageOfBytes));
    assert_eq!((page.body.len(), page.json()["documentLinks"].clone()), (4096, json!([])));
}

#[test]
fn trees_can_have_impossible_roots_and_ids() {
    let manager = MockFabricManager::start().unwrap();
    let session = reserve(&manager, "a-1", 9);
    let mut nic = 0;
    let mut once = |effect: Effect| {
        manager.inject(Fault::new(effect).on(Endpoint::CreateTree).times(1));
        nic += 1;
        make_tree(&manager, &session, "a-1", "0", &format!(r#""1:44:{nic:02X}""#)).json()
    };
    assert_eq!(once(Effect::ThreeOctetRoot)["hwRoot"], "1:44:01");
    assert_eq!(once(Effect::LocalRoot)["hwRoot"], "02:00:00:01:44:02");
    let member = |member: &str| member.to_owned();
    assert_eq!(once(Effect::Remove { member: member("hwRoot") }).get("hwRoot"), None);
    for value in [json!("7"), json!(-1), json!(8192)] {
        let set = Effect::Set { member: member("mcastID"), value: value.clone() };
        assert_eq!(once(set)["mcastID"], value);
    }
    // The client cannot use these trees, but they exist.
    assert_eq!(manager.state().roots.len(), 6);
}

/// Cleanup is lost: reported as done without being done, or done and reported as failed.
#[test]
fn deletions_can_lie() {
    let manager = MockFabricManager::start().unwrap();
    reserve(&manager, "a-1", 1);
    let delete = || send(&manager, BASIC, "DELETE jobs/a-1", "").status;
    manager.inject(Fault::status(200).on(Endpoint::DeleteJob).times(1));
    assert_eq!((delete(), manager.state().is_quiet()), (200, false));
    manager.inject(
        Fault::new(Effect::Answer { status: 500, body: Body::Error, perform: true }).times(1),
    );
    assert_eq!((delete(), manager.state().is_quiet()), (500, true));
    assert_eq!(delete(), 404);
}

/// While a tree is being created or deleted, the response is 409.
#[test]
fn trees_take_their_time() {
    let manager = configured(|config| {
        config.settings.creation_ms = 1000;
        config.settings.deletion_ms = 1000;
    });
    let session = reserve(&manager, "a-1", 1);
    let body = tree("a-1", "0", r#""0:00:01""#);
    let make = || send(&manager, &session, "POST multicasts", &body).status;
    assert_eq!([make(), make()], [409, 409]);
    manager.advance(Duration::from_secs(1));
    assert_eq!(make(), 200);
    let delete = || send(&manager, &session, "DELETE multicasts/1", "").status;
    assert_eq!([delete(), delete()], [409, 409]);
    manager.advance(Duration::from_secs(1));
    assert_eq!([delete(), delete()], [200, 404]);
}

/// The same by orders to the control port.
#[test]
fn the_control_port_does_the_same() {
    let manager = MockFabricManager::start().unwrap().with_control("127.0.0.1:0").unwrap();
    let control = manager.control_address().unwrap();
    let order = |line: &str, body: &str| {
        Answer::of(&exchange(control, &request("none", line, body)).unwrap())
    };
    let done = |line: &str, body: &str| assert_eq!(order(line, body).status, 200, "{line} {body}");
    assert_eq!(order("GET /quiet", "").status, 200);
    reserve(&manager, "a-1", 3);
    assert_eq!(order("GET /quiet", "").status, 409);
    assert_eq!(order("GET /state", "").json()["jobs"]["a-1"]["limit"].as_u64(), Some(3));
    done(
        "POST /faults",
        r#"{"on":"jobs.list","times":1,"effect":{"answer":{"status":503,"body":"html"}}}"#,
    );
    assert_eq!(send(&manager, BASIC, "GET jobs/", "").status, 503);
    done("POST /faults", r#"{"effect":{"delivery":{"cut":1}}}"#);
    done("POST /faults", r#"{"effect":"page_of_bytes"}"#);
    done("DELETE /faults", "");
    assert_eq!(send(&manager, BASIC, "GET jobs/", "").status, 200);
    assert_eq!(order("GET /journal", "").json().as_array().unwrap().len(), 3);
    done("DELETE /journal", "");
    done("POST /clock", r#"{"advance_ms":1000}"#);
    done("POST /expire-tokens", "");
    done("POST /vnis", r#"{"job":"a-1","vnis":[10]}"#);
    done("POST /listening", r#"{"listening":false}"#);
    assert!(list(&manager).is_err());
    done("POST /listening", r#"{"listening":true}"#);
    assert!(list(&manager).is_ok());
    done("POST /restart", r#"{"forget":"everything"}"#);
    manager.assert_quiet();
    let unknown = order("POST /faults", r#"{"effect":"unheard_of"}"#);
    assert_eq!(unknown.status, 400);
    assert!(unknown.text("message").starts_with("/faults: unknown variant"), "{}", unknown.body);
    assert_eq!(order("GET /", "").status, 404);
}

#[test]
fn an_impossible_configuration_is_refused() {
    for addresses in [(9, 8), (0, 8192)] {
        let mut config = Config::default();
        config.settings.addresses = addresses;
        let error = MockFabricManager::bind(config, "127.0.0.1:0").unwrap_err();
        let (first, last) = addresses;
        assert_eq!(
            error.to_string(),
            format!("invalid multicast ids {first} to {last}: expected a range within 0 to 8191")
        );
    }
}
