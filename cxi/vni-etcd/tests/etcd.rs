//! The log in a real etcd, where there is one.

mod proxy;
mod server;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cxi_site::JobId;
use cxi_site::collectives::Certificate;
use cxi_site::fabric::{Http, HttpRequest, HttpTransport as _, Identity, Patience};
use cxi_site::pool::log::{AppendError, EventLog as _, Record, SharedPool, check};
use cxi_site::pool::{Change, Event, Timestamp, VniPool, VniRequest};
use cxi_test_kit::skip;
use cxi_vni_etcd::EtcdLog;
use proxy::Proxy;
use server::{Etcd, PATIENCE, at, config, http};
use tempfile::TempDir;

#[test]
fn it_conforms() {
    let Some(etcd) = Etcd::start() else { return };
    check(|number| EtcdLog::new(http(), &[etcd.url()], &format!("/pool{number}/"))).unwrap();
}

/// Both sides show a certificate; without one, or with an unknown one, nothing is returned.
#[test]
fn it_conforms_over_tls() {
    let Some(files) = certificate() else { return };
    let path = |name: &str| files.path().join(name).display().to_string();
    let (pem, key) = (path("cert.pem"), path("key.pem"));
    let options = ["--cert-file", &pem, "--key-file", &key];
    let mutual = ["--client-cert-auth", "--trusted-ca-file", &pem];
    let Some(etcd) = Etcd::with("https", &[&options[..], &mutual].concat()) else { return };
    let url = etcd.url();
    let ours = Certificate::Path(pem.clone());
    let identity = Identity { certificate: pem.into(), key: key.into() };
    check(|number| {
        let http = Http::with_identity(&ours, Some(&identity)).unwrap();
        EtcdLog::new(http, &[&url], &format!("/pool{number}/"))
    })
    .unwrap();
    let anonymous = Http::new(&ours).unwrap();
    assert!(EtcdLog::new(anonymous, &[&url], "/pool/").load(0).is_err());
    let other = certificate().unwrap();
    let other = other.path().join("cert.pem").display().to_string();
    let stranger = Http::with_identity(&Certificate::Path(other), Some(&identity)).unwrap();
    let text = EtcdLog::new(stranger, &[&url], "/pool/").load(0).unwrap_err();
    assert!(text.to_string().contains("invalid peer certificate"), "{text}");
}

/// A certificate of 127.0.0.1 that vouches for itself, and its key; `None`, with a message, where
/// openssl is not installed.
fn certificate() -> Option<TempDir> {
    let files = tempfile::tempdir().unwrap();
    let made = Command::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes".split(' '))
        .args("-keyout key.pem -out cert.pem -days 2 -subj /CN=etcd".split(' '))
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .current_dir(files.path())
        .output();
    let Ok(made) = made else {
        skip("there is no openssl (apt-get install openssl)");
        return None;
    };
    assert!(made.status.success(), "{made:?}");
    Some(files)
}

#[test]
fn it_logs_in() {
    let Some(etcd) = Etcd::start() else { return };
    let order = |what: &str, body: &str| {
        let url = format!("{}/v3/auth/{what}", etcd.url());
        let answer = http().send(&HttpRequest::post(&url, None, body), PATIENCE);
        assert_eq!(answer.unwrap().status, 200, "{what} {body}");
    };
    order("role/add", r#"{"name":"root"}"#);
    for user in ["root", "cxi"] {
        order("user/add", &format!(r#"{{"name":"{user}","password":"secret"}}"#));
        order("user/grant", &format!(r#"{{"user":"{user}","role":"root"}}"#));
    }
    order("enable", "{}");
    let log = || EtcdLog::new(http(), &[etcd.url()], "/pool/");
    let refused = |mut log: EtcdLog, why: &str| {
        let text = log.load(0).unwrap_err().to_string();
        assert!(text.contains("refused: ") && text.contains(why), "{text}");
    };
    refused(log(), "user name is empty");
    refused(log().user("cxi", "wrong"), "invalid user ID or password");
    let mut pool =
        SharedPool::open(log().user("cxi", "secret"), config(), "one", 0, at(0)).unwrap();
    pool.catch_up::<cxi_site::pool::PoolError>().unwrap();
}

/// More records than come in one page.
#[test]
fn a_long_log_is_read_whole() {
    let Some(etcd) = Etcd::start() else { return };
    let mut log = EtcdLog::new(http(), &[etcd.url()], "/long/");
    let change = Change::Reconfigured { config: config() };
    let records: Vec<_> = (1..=1005)
        .map(|sequence| Record {
            epoch: 0,
            writer: "one".to_owned(),
            event: Event::new(sequence, at(sequence), change.clone()),
        })
        .collect();
    for record in &records {
        log.append(record).unwrap();
    }
    assert_eq!(log.load(0).unwrap(), records);
    assert_eq!(log.load(1004).unwrap(), records[1004..]);
    // Each answer that is longer than 20 pieces is cut off, and shorter ones now and then.
    let network = Proxy::start(etcd.address(), 20);
    let patience = Patience { pause: Duration::from_millis(1), ..Patience::default() };
    let mut far = EtcdLog::new(http(), &[network.url()], "/long/").patience(patience);
    assert_eq!(far.load(0).unwrap(), records);
    assert!(network.cuts() > 3, "{} cuts", network.cuts());
}

/// Nothing is left of what a log no longer begins with.
#[test]
fn a_saved_pool_replaces_the_events_before_it() {
    let Some(etcd) = Etcd::start() else { return };
    let log = || EtcdLog::new(http(), &[etcd.url()], "/pool/");
    let mut pool = SharedPool::open(log(), config(), "one", 1, at(0)).unwrap();
    let other = SharedPool::open(log(), config(), "two", 2, at(0)).unwrap();
    let late = pool.save(at(1)).unwrap_err();
    assert!(late.is_deposed(), "{late}");
    assert_eq!(log().load(0).unwrap().len(), 2);
    let mut pool = other;
    pool.save(at(1)).unwrap();
    let records = log().load(0).unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!((records[0].epoch, records[0].event.sequence), (2, 3));
}

/// etcd takes 1.5 MiB at once.
#[test]
fn pools_of_fourteen_thousand_jobs_can_be_saved() {
    let Some(etcd) = Etcd::start() else { return };
    let mut log = EtcdLog::new(http(), &[etcd.url()], "/large/");
    let mut save = |jobs: u16| {
        let mut pool = VniPool::new(config()).unwrap();
        for number in 0..jobs {
            let job = JobId::new(format!("ƒ3WqKL{number:05}")).unwrap();
            let _ = pool.reserve(&job, &VniRequest::vnis(1), Timestamp::now()).unwrap();
        }
        let mut pool = pool.snapshot();
        pool.sequence = 0;
        let saved = VniPool::restore(pool).unwrap().save(at(1)).unwrap().event;
        let saved = Record { epoch: 0, writer: "one".to_owned(), event: saved.unwrap() };
        log.append(&saved).map(|()| assert_eq!(log.load(0).unwrap(), [saved]))
    };
    let error = save(17_000).unwrap_err();
    assert!(matches!(error, AppendError::Failed(_)), "{error}");
    assert!(error.to_string().contains("request is too large"), "{error}");
    save(14_000).unwrap();
}

/// Serves one answer for each request, and then repeats the last one.
fn serve(answers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut answers = answers.into_iter().peekable();
        while let Ok((stream, _)) = listener.accept() {
            let mut reader = BufReader::new(&stream);
            let (mut line, mut sent) = (String::new(), 0);
            while line != "\r\n" {
                line.clear();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    break;
                }
                let length = line.to_lowercase();
                if let Some(length) = length.strip_prefix("content-length:") {
                    sent = length.trim().parse().unwrap();
                }
            }
            let _ = reader.read_exact(&mut vec![0; sent]);
            let Some(answer) = answers.next() else { break };
            if answers.peek().is_none() {
                answers = vec![answer.clone(), answer.clone()].into_iter().peekable();
                let _ = answers.next();
            }
            let (head, length) = ("HTTP/1.1 200 OK\r\nConnection: close", answer.len());
            let _ = write!(&stream, "{head}\r\nContent-Length: {length}\r\n\r\n{answer}");
        }
    });
    url
}

/// The answer of a cluster at a revision.
fn answer(cluster: u64, revision: u64, rest: &str) -> String {
    format!(r#"{{"header":{{"cluster_id":"{cluster}","revision":"{revision}"}}{rest}}}"#)
}

/// A key in an answer, as of revision 2.
fn found(key: &str, value: &[u8]) -> String {
    let (key, value) = (STANDARD.encode(key), STANDARD.encode(value));
    format!(r#"{{"key":"{key}","create_revision":"2","mod_revision":"2","value":"{value}"}}"#)
}

fn first_record() -> Vec<u8> {
    let record = Record {
        epoch: 0,
        writer: "one".to_owned(),
        event: Event::new(1, at(1), Change::Reconfigured { config: config() }),
    };
    serde_json::to_vec(&record).unwrap()
}

const FIRST: &str = "/pool/events/00000000000000000001";

/// Whatever an answer lacks, it is not "there is no pool", nor a pool with fewer jobs.
#[test]
fn an_answer_that_says_nothing_is_an_error() {
    let record = first_record();
    let good = found(FIRST, &record);
    let with = |rest: &str| answer(7, 9, rest);
    let encoded = STANDARD.encode(&record);
    // Every answer below is this one, with a fault.
    let valid = with(&format!(r#","kvs":[{good}],"count":"1""#));
    let mut log = EtcdLog::new(http(), &[serve(vec![valid.clone()])], "/pool");
    assert_eq!(log.load(0).unwrap().len(), 1);
    let patience = Patience {
        deadline: Duration::from_millis(60),
        pause: Duration::from_millis(20),
        ..Patience::default()
    };
    let twice = format!(r#","kvs":[{good},{good}],"count":"2""#);
    let epoch = found("/pool/epoch", b"00000000000000000003");
    let short = found("/pool/epoch", b"0000000000000000000");
    let empty = || with("");
    for (answers, why) in [
        (vec!["{}".to_owned()], "missing field `header`"),
        (vec!["null".to_owned()], "invalid type: null"),
        (vec![r#"{"header":{}}"#.to_owned()], "missing field `cluster_id`"),
        (vec![r#"{"header":{"cluster_id":"7"}}"#.to_owned()], "missing field `revision`"),
        (vec![answer(0, 9, "")], "cluster 0, revision 9: expected 1 or more"),
        (vec![answer(7, 0, "")], "cluster 7, revision 0: expected 1 or more"),
        (vec![valid.replace(r#""9""#, r#""x9""#)], "invalid number \"x9\""),
        (vec![with(r#","count":"1""#)], "0 of 1 keys"),
        (vec![with(r#","more":true"#)], "0 of 0 keys"),
        (vec![with(r#","kvs":null"#)], "invalid type: null"),
        (vec![with(&format!(r#","kvs":[{good}]"#))], "1 of 0 keys"),
        (vec![with(&format!(r#","kvs":[{good}],"count":"3""#))], "1 of 3 keys"),
        (vec![with(&twice)], "not in order"),
        (vec![answer(7, 1, &format!(r#","kvs":[{good}],"count":"1""#))], "and the answer of 1"),
        (
            vec![valid.replace("\"mod_revision\":\"2\"", "\"mod_revision\":\"1\"")],
            "revision 2 to 1",
        ),
        (vec![valid.replace("\"create_revision\":\"2\",", "")], "missing field `create_revision`"),
        (vec![valid.replace("\"value\"", "\"valve\"")], "missing field `value`"),
        (vec![valid.replace(&encoded, &encoded[..encoded.len() - 1])], "Invalid padding"),
        (vec![valid.replace(&encoded, &encoded[..encoded.len() - 4])], "not a change of a pool"),
        (vec![valid[..valid.len() - 1].to_owned()], "EOF"),
        (
            vec![with(&format!(r#","kvs":[{}],"count":"1""#, found("/other/1", &record)))],
            "/other/1",
        ),
        (
            vec![with(&format!(
                r#","kvs":[{}],"count":"1""#,
                found("/pool/events/00000000000000000002", &record)
            ))],
            "it has change 1",
        ),
        (
            vec![empty(), with(&format!(r#","kvs":[{epoch}],"count":"1""#)), empty()],
            "/pool: there is an epoch, and no change of a pool",
        ),
        (
            vec![empty(), with(&format!(r#","kvs":[{short}],"count":"1""#))],
            "expected the number of an epoch",
        ),
        // Others answer in the middle of it.
        (
            vec![empty(), answer(8, 9, "")],
            "it is of cluster 8, and an earlier answer was of cluster 7",
        ),
        (vec![empty(), answer(7, 8, "")], "it is of revision 8, and an earlier answer was of 9"),
    ] {
        let said = answers.join("\n");
        let url = serve(answers);
        let mut log = EtcdLog::new(http(), &[&url], "/pool").patience(patience);
        let error = log.load(0).expect_err(&said).to_string();
        assert!(error.contains(why), "{said}\n{error}");
        // And no pool is made in its place.
        let log = EtcdLog::new(http(), &[&url], "/pool").patience(patience);
        SharedPool::open(log, config(), "one", 0, at(0)).expect_err(&said);
    }
}

/// An answer that says nothing leaves open whether a record was written.
#[test]
fn an_answer_to_a_write_that_says_nothing_is_not_an_outcome() {
    let record: Record = serde_json::from_slice(&first_record()).unwrap();
    let two = r#","responses":[{},{}]"#;
    let one = r#","responses":[{}]"#;
    for (answer, why) in [
        ("{}".to_owned(), "missing field `header`"),
        (r#"{"succeeded":true}"#.to_owned(), "missing field `header`"),
        (answer(7, 9, r#","succeeded":true"#), "done has 0 responses, expected 2"),
        (answer(7, 9, &format!(r#","succeeded":true{one}"#)), "done has 1 responses"),
        (answer(7, 9, two), "refused has 2 responses, expected 0"),
        (answer(7, 9, r#","succeeded":"yes""#), "invalid type"),
    ] {
        let mut log = EtcdLog::new(http(), &[serve(vec![answer])], "/pool");
        let error = log.append(&record).unwrap_err();
        assert!(matches!(&error, AppendError::Unknown(_)), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
    let done = answer(7, 9, &format!(r#","succeeded":true{two}"#));
    EtcdLog::new(http(), &[serve(vec![done])], "/pool").append(&record).unwrap();
}

/// Members that take a connection and never answer, and one that drops every packet.
#[test]
fn no_member_is_waited_for_after_the_deadline() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_url = format!("http://{}", silent.local_addr().unwrap());
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let other_url = format!("http://{}", other.local_addr().unwrap());
    // Of a network for documentation: nobody answers, or at once an error.
    let nowhere = "http://192.0.2.1:2379".to_owned();
    let patience = Patience { attempt: Duration::from_millis(400), ..Patience::default() };
    let urls = [silent_url, other_url, nowhere];
    for wait in [300, 1500] {
        let wait = Duration::from_millis(wait);
        let mut log = EtcdLog::new(http(), &urls, "/pool").patience(patience);
        let begins = Instant::now();
        log.within(wait);
        let error = log.load(0).unwrap_err().to_string();
        assert!(error.contains("etcd at http://"), "{error}");
        // There is no time left for this one.
        SharedPool::open_existing(log, "one", 0).unwrap_err();
        let took = begins.elapsed();
        assert!(took < wait + Duration::from_millis(700), "{took:?} for {wait:?}");
    }
    drop((silent, other));
}

#[test]
fn a_password_is_not_sent_in_clear_unless_it_may_be() {
    // Not this machine by its name, as far as anyone knows.
    let url = "http://etcd.invalid:2379";
    let patience = Patience { deadline: Duration::from_millis(50), ..Patience::default() };
    let log = || EtcdLog::new(http(), &[url], "/x").patience(patience).user("cxi", "secret");
    let error = log().load(0).unwrap_err().to_string();
    assert!(error.contains("sent in clear: expected https://"), "{error}");
    let error = log().allow_clear_password().load(0).unwrap_err().to_string();
    assert!(error.contains("did not answer"), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_an_error_with_its_address() {
    let patience = Patience { deadline: Duration::from_millis(200), ..Patience::default() };
    for url in ["http://127.0.0.1:9", "https://127.0.0.1:9", "nonsense"] {
        let log = EtcdLog::new(http(), &[url], "/x").patience(patience);
        let error = SharedPool::open(log, config(), "one", 0, at(0));
        let text = error.unwrap_err().to_string();
        assert!(text.contains(&format!("etcd at {url} ")), "{text}");
    }
}
