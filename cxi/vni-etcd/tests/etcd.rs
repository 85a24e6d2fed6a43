//! The log in a real etcd, where there is one.

mod proxy;
mod server;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cxi_job::JobId;
use cxi_job::collectives::Certificate;
use cxi_job::fabric::{Http, HttpRequest, HttpTransport as _, Identity, Patience};
use cxi_job::pool::log::{AppendError, EventLog as _, Record, SharedPool, check};
use cxi_job::pool::{Change, Event, Timestamp, VniPool, VniRequest};
use cxi_vni_etcd::EtcdLog;
use proxy::Proxy;
use server::{Etcd, PATIENCE, at, config, http, skip};
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
    match made {
        Ok(made) => {
            assert!(made.status.success(), "{made:?}");
            Some(files)
        }
        Err(_) => skip("there is no openssl (apt-get install openssl)"),
    }
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
    pool.catch_up::<cxi_job::pool::PoolError>().unwrap();
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
            let job = JobId::new(&format!("ƒ3WqKL{number:05}")).unwrap();
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

/// Another program wrote there, or the server repeats the first page forever.
#[test]
fn a_log_that_is_not_in_order_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let record = Record {
        epoch: 0,
        writer: "one".to_owned(),
        event: Event::new(1, at(1), Change::Reconfigured { config: config() }),
    };
    let value = STANDARD.encode(serde_json::to_vec(&record).unwrap());
    let page = format!(r#"{{"kvs":[{{"value":"{value}"}}],"more":true}}"#);
    let length = page.len();
    let server = std::thread::spawn(move || {
        for _ in 0..2 {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(&stream);
            let (mut line, mut sent) = (String::new(), 0);
            while line != "\r\n" {
                line.clear();
                reader.read_line(&mut line).unwrap();
                let length = line.to_lowercase();
                if let Some(length) = length.strip_prefix("content-length:") {
                    sent = length.trim().parse().unwrap();
                }
            }
            reader.read_exact(&mut vec![0; sent]).unwrap();
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length:";
            write!(&stream, "{head} {length}\r\n\r\n{page}").unwrap();
        }
    });
    let error = EtcdLog::new(http(), &[url], "/pool").load(0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read the log of the pool: /pool: change 1 comes behind change 1"
    );
    server.join().unwrap();
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
