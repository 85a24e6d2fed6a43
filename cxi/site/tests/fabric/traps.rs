//! Everything that is known to hang or break clients: this one ends in time, and says why.

use std::time::{Duration, Instant};

use cxi_fabric_manager::api::Body;
use cxi_fabric_manager::{Config, Delivery, Effect, Endpoint, Fault};
use cxi_site::fabric::{Credentials, FabricError, Http, Patience};
use serde_json::json;

use super::support::{PATIENCE, Site, client, http, job};

/// More than the deadline by what a busy machine needs.
const LATEST: Duration = Duration::from_secs(4);

#[track_caller]
fn in_time<T: std::fmt::Debug>(act: impl FnOnce() -> Result<T, FabricError>) -> String {
    let start = Instant::now();
    let error = act().unwrap_err().to_string();
    let taken = start.elapsed();
    assert!(taken < PATIENCE.deadline + LATEST, "{taken:?}: {error}");
    error
}

#[test]
fn silence_and_slowness_end_at_the_deadline() {
    let site = Site::new();
    let client = site.client();
    client.find(&job("1")).unwrap();
    for delivery in
        [Delivery::Silence, Delivery::HeadOnly, Delivery::After(2000), Delivery::Drip(20)]
    {
        site.fails(Endpoint::ListJobs, delivery);
        let error = in_time(|| client.sweep(|_| false));
        let why = "cannot list the reservations of alpha: gave up after 900ms: no answer in time";
        assert_eq!(error, why, "{delivery:?}");
        site.mock.clear_faults();
    }
}

#[test]
fn broken_answers_are_asked_for_again() {
    let site = Site::new();
    let client = site.client();
    client.reserve(&job("1"), 1).unwrap();
    for delivery in [Delivery::Cut(3), Delivery::TooShort(2), Delivery::Reset] {
        site.mock.inject(Fault::from(delivery).on(Endpoint::GetJob).times(2));
        assert!(client.find(&job("1")).unwrap().is_some(), "{delivery:?}");
        site.fails(Endpoint::GetJob, delivery);
        let error = in_time(|| client.find(&job("1")));
        let start = "cannot look for the reservation of job 1: gave up after 900ms: ";
        assert!(error.starts_with(start), "{error}");
        site.mock.clear_faults();
    }
}

#[test]
fn an_unreachable_fabric_manager_is_reported() {
    let site = Site::new();
    let client = site.client_with(Credentials::basic(Some(site.mock.files.path())));
    site.mock.set_listening(false).unwrap();
    let error = in_time(|| client.reserve(&job("1"), 1));
    let start = "cannot reserve 1 multicast trees for job 1: gave up after 900ms: no connection: ";
    assert!(error.starts_with(start), "{error}");
}

#[test]
fn a_conflict_for_ever_ends_and_one_for_a_while_is_waited_for() {
    let site = Site::new();
    let client = site.client();
    site.mock.inject(Fault::status(409).on(Endpoint::DeleteJob).times(3));
    let patient = site.client().patience(Patience::default());
    assert!(!patient.release(&job("1")).unwrap());
    site.fails(Endpoint::DeleteJob, Fault::status(409));
    assert_eq!(
        in_time(|| client.release(&job("1"))),
        "cannot release the reservation of job 1: gave up after 900ms: the answer is 409: \
         status 409, as requested"
    );
    // A reservation that is there and cannot be found.
    site.fails(Endpoint::CreateJob, Fault::status(409));
    let error = in_time(|| client.reserve(&job("1"), 1));
    let end = "the answer is 409: status 409, as requested";
    assert!(error.ends_with(end), "{error}");
}

/// Answers that abort a controller are an error here, and never an empty list.
#[test]
fn lists_without_links_are_rejected() {
    let site = Site::new();
    let client = site.client();
    let no_list = "has no list \"documentLinks\"";
    let null = json!({ "documentLinks": null });
    for (status, body, what) in [
        (200, Body::Json(json!({})), no_list),
        (200, Body::Json(null), no_list),
        (200, Body::Json(json!([])), "is not a JSON object"),
        (200, Body::Empty, "is empty"),
        (200, Body::Html, "is not JSON: expected value at line 1"),
        (404, Body::Error, "is 404"),
    ] {
        site.fails_once(Endpoint::ListJobs, Fault::answer(status, body));
        let error = in_time(|| client.sweep(|_| false));
        let start = format!("cannot list the reservations of alpha: the answer {what}");
        assert!(error.starts_with(&start), "{error}");
    }
}

#[test]
fn odd_answers_are_taken_as_they_are_meant() {
    let mut config = Config::default();
    config.settings.released_is_204 = true;
    config.settings.reserved_is_201 = true;
    let site = Site::with(config);
    let client = site.client();
    site.fails_once(Endpoint::CreateJob, Fault::new(Effect::PageOfBytes));
    let reserved = client.reserve(&job("1"), 1).unwrap();
    assert!(!reserved.found);
    assert!(client.release(&job("1")).unwrap());
    site.mock.assert_quiet();
}

#[test]
fn each_token_problem_has_its_own_message() {
    let site = Site::new();
    let endpoint = site.mock.token_url();
    let action = "cannot look for the reservation of job 1: ";
    let find = || {
        let client = site.client();
        in_time(move || client.find(&job("1")))
    };
    let no_token = format!("no token of {endpoint}");
    let token = Body::Json(json!({ "token": "x" }));
    for (at, fault, why) in [
        (
            Endpoint::Token,
            Fault::status(401),
            format!("{no_token}: the answer is 401: status 401, as requested"),
        ),
        (
            Endpoint::Token,
            Delivery::Silence.into(),
            format!("gave up after 900ms: {no_token}: no answer in time"),
        ),
        (
            Endpoint::Token,
            Fault::answer(200, token),
            format!("{no_token}: the answer has no string \"access_token\""),
        ),
        // Refused, and the next one too.
        (Endpoint::GetJob, Fault::answer(403, Body::Html), "the answer is 403".to_owned()),
    ] {
        site.fails(at, fault);
        assert_eq!(find(), format!("{action}{why}"));
        site.mock.clear_faults();
    }
    site.write("client-secret", "");
    let empty = site.mock.files.path().join("client-secret");
    assert_eq!(find(), format!("{action}{} is empty", empty.display()));
    std::fs::remove_file(&empty).unwrap();
    assert!(find().contains("client-secret: No such file or directory"));
    std::os::unix::fs::symlink("/dev/zero", &empty).unwrap();
    assert!(find().contains("client-secret: not a regular file"));
    std::fs::remove_file(&empty).unwrap();
    site.write("client-secret", "x");
    site.write("endpoint", "fm/token");
    assert!(find().contains("\"fm/token\": expected http:// or https:// and a host"));
}

/// A session token that libfabric could not send is not handed out.
#[test]
fn unusable_tokens_are_refused() {
    let site = Site::new();
    let client = site.client();
    for (token, what) in [(json!(null), "has no string"), (json!("a b"), "not fit for a header")] {
        let set = Effect::Set { member: "sessionToken".to_owned(), value: token };
        site.fails_once(Endpoint::CreateJob, Fault::new(set));
        let error = in_time(|| client.reserve(&job("1"), 1));
        assert!(error.contains(what), "{error}");
        client.release(&job("1")).unwrap();
    }
}

/// Whoever can listen on the network must not get the password or the token.
#[test]
fn secrets_are_not_sent_in_clear_unless_they_may_be() {
    let site = Site::new();
    let refused = |error: FabricError| error.to_string();
    let remote = "http://fm.invalid/apis/fabric-manager";
    let message = |url: &str| {
        format!(
            "the password or token would be sent in clear to {url}: expected https://, or the setting \
             fabric-manager.allow-clear-secrets"
        )
    };
    for credentials in [site.oauth(), Credentials::basic(Some(site.mock.files.path()))] {
        let client = client(remote, credentials, http());
        let error = refused(client.find(&job("1")).unwrap_err());
        assert!(error.ends_with(&message(remote)), "{error}");
        let error = refused(client.allow_clear_secrets().find(&job("1")).unwrap_err());
        assert!(error.contains("gave up after"), "{error}");
    }
    let endpoint = "http://token.invalid/token";
    site.write("endpoint", endpoint);
    let error = refused(site.client().find(&job("1")).unwrap_err());
    assert!(error.ends_with(&message(endpoint)), "{error}");
}

/// A key that others can read, and files that are none.
#[test]
fn certificates_and_keys_are_read_with_care() {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use cxi_site::collectives::Certificate;
    use cxi_site::fabric::Identity;
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let made = std::process::Command::new("mkfifo").arg(path("pipe")).status();
    assert!(made.unwrap().success());
    let pem = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    fs::write(path("cert"), pem).unwrap();
    fs::write(path("key"), "x").unwrap();
    fs::set_permissions(path("key"), Permissions::from_mode(0o644)).unwrap();
    let error = |certificate: &str, key: &str| {
        let identity = Identity { certificate: path(certificate), key: path(key) };
        Http::with_identity(&Certificate::Unverified, Some(&identity)).unwrap_err().to_string()
    };
    for (certificate, key, why) in [
        ("pipe", "key", "not a regular file"),
        ("cert", "pipe", "not a regular file"),
        ("cert", "key", "a secret that others can use (mode 644): expected mode 600"),
        ("key", "key", "no certificate in PEM form"),
    ] {
        let error = error(certificate, key);
        assert!(error.contains(why), "{error}");
    }
    for place in [path("pipe"), "/dev/zero".into()] {
        let authority = Certificate::Path(place.display().to_string());
        let error = Http::new(&authority).unwrap_err().to_string();
        assert!(error.ends_with("not a regular file"), "{error}");
    }
}

#[test]
fn authorities_that_are_not_there_are_named() {
    use cxi_site::collectives::Certificate;
    let authority = Certificate::Path("/nowhere/ca.pem".to_owned());
    let error = Http::new(&authority).unwrap_err().to_string();
    let start = "no certificate authority of /nowhere/ca.pem: ";
    let known = error.starts_with(start) && error.contains("No such file");
    assert!(known, "{error}");
}

/// A token goes where it was meant to go, and nowhere else.
#[test]
fn a_redirection_is_not_followed() {
    use std::io::{Read, Write};
    let elsewhere = Site::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let here = format!("http://{}", listener.local_addr().unwrap());
    let there = elsewhere.mock.url();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let length = stream.read(&mut request).unwrap();
        let head = format!("HTTP/1.1 302 Found\r\nLocation: {there}\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        String::from_utf8_lossy(&request[..length]).to_ascii_lowercase()
    });
    let client = elsewhere.client_at(&here);
    assert_eq!(
        in_time(|| client.find(&job("1"))),
        "cannot look for the reservation of job 1: the answer is 302"
    );
    let asked = server.join().unwrap();
    assert!(asked.contains("\r\nauthorization: basic "), "{asked}");
    assert_eq!(elsewhere.mock.journal(), []);
}
