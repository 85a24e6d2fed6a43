//! The log in a real etcd, if one is installed: two controllers, one of which dies, is paused or
//! loses its network, and never a VNI in two jobs.

mod proxy;
mod server;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cxi::Vni;
use cxi_job::JobId;
use cxi_job::pool::log::{EventLog as _, Record, SharedPool, check};
use cxi_job::pool::{Change, Event, PoolConfig, ReserveError, Timestamp, VniPool, VniRequest};
use cxi_vni_etcd::EtcdLog;
use proxy::Proxy;
use server::Etcd;

#[test]
fn it_conforms() {
    let Some(etcd) = Etcd::start() else { return };
    check(|number| EtcdLog::new(&etcd.url(), &format!("/pool{number}/"))).unwrap();
}

/// More records than come in one page.
#[test]
fn a_long_log_is_read_whole() {
    let Some(etcd) = Etcd::start() else { return };
    let mut log = EtcdLog::new(&etcd.url(), "/long/");
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
}

/// Somebody else wrote there, or the server lies: the first page comes again and again.
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
    let error = EtcdLog::new(&url, "/pool").load(0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read the log of the pool: /pool: change 1 comes behind change 1"
    );
    server.join().unwrap();
}

#[test]
fn a_server_that_is_not_there_is_an_error_with_its_address() {
    for url in ["http://127.0.0.1:9", "https://127.0.0.1:9", "nonsense"] {
        let error = SharedPool::open(EtcdLog::new(url, "/x"), config(), "one", 0, at(0));
        let text = error.unwrap_err().to_string();
        assert!(text.contains(&format!("etcd at {url} ")), "{text}");
    }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn config() -> PoolConfig {
    PoolConfig::new("1024-65535".parse().unwrap())
}

type Pool = SharedPool<EtcdLog>;

/// The VNI of a job; an error says whether another controller leads.
fn reserve(pool: &mut Pool, job: &JobId) -> Result<Vni, bool> {
    let reserved = pool.change(at(1), |pool, now| {
        let reserved = pool.reserve(job, &VniRequest::vnis(1), now)?;
        Ok::<_, ReserveError>((reserved.vnis, reserved.event))
    });
    match reserved {
        Ok(vnis) => Ok(vnis.iter().next().unwrap()),
        Err(error) => Err(error.is_deposed()),
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) % limit
    }
}

/// Controllers take over from each other: the one before is dead, or paused and wakes up to go on.
/// Meanwhile their connections are cut, before requests and after answers.
#[test]
fn no_vni_is_in_two_jobs_and_none_is_lost() {
    let Some(etcd) = Etcd::start() else { return };
    let full = std::env::var_os("CXI_TEST_FULL").is_some_and(|value| !value.is_empty());
    let wanted = if full { 10_000 } else { 200 };
    let proxy = Proxy::start(etcd.address(), 30);
    let open = |epoch: u64| loop {
        let log = EtcdLog::new(&proxy.url(), "/pool/");
        let writer = format!("controller/{epoch}");
        if let Ok(pool) = SharedPool::open(log, config(), writer, epoch, at(epoch)) {
            return pool;
        }
    };
    let mut random = Random(15);
    let mut given = BTreeMap::new();
    let (mut epoch, mut paused, mut deposed) = (1, Vec::new(), 0);
    let mut leader = open(epoch);
    while given.len() < wanted {
        let job = JobId::new(&format!("job{}", given.len())).unwrap();
        match reserve(&mut leader, &job) {
            Ok(vni) => assert!(given.insert(job.clone(), vni).is_none()),
            // It is unknown whether it was logged: the job asks again.
            Err(deposed) => assert!(!deposed, "the only leader was deposed"),
        }
        if random.below(20) == 0 {
            epoch += 1;
            let old = std::mem::replace(&mut leader, open(epoch));
            if random.below(2) == 0 {
                paused.push(old);
            }
        }
        if random.below(10) == 0
            && let Some(mut awake) = paused.pop()
        {
            let late = JobId::new(&format!("late{epoch}")).unwrap();
            // A network error may hide it until the next attempt.
            let mut wake = || reserve(&mut awake, &late).expect_err("a deposed leader goes on");
            while !wake() {}
            deposed += 1;
        }
    }
    assert!(
        proxy.cuts() > 10 && epoch > 5 && deposed > 0,
        "nothing went wrong"
    );

    let records = EtcdLog::new(&etcd.url(), "/pool/").load(0).unwrap();
    let events: Vec<_> = records.into_iter().map(|it| it.event).collect();
    // It refuses a VNI that a job has.
    let pool = VniPool::replay(config(), &events).unwrap();
    assert_eq!(pool.jobs().count(), wanted);
    for (job, vni) in given {
        let held: Vec<_> = pool.job(&job).expect("the job").vnis.iter().collect();
        assert_eq!(held, [vni]);
    }
}
