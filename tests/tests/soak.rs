//! A node with four NICs on which jobs start and end all the time: prologs, epilogs and cleanups
//! overlap, commands are killed halfway through, and NICs refuse. No running job loses a service, no
//! VNI is in two jobs, and in the end nothing is left.
//!
//! Some seconds; `CXI_TEST_FULL=1` makes it ten minutes, `CXI_TEST_SECONDS` says how long.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Write, stderr};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use cxi_test_kit::{Directory, Random};
use cxi_tests::node::{self, Run, Served, need_node, printed, server};
use serde_json::Value;

const NICS: usize = 4;
/// Threads that run jobs, in addition to two that clean up and one that injects faults.
const RUNNERS: u32 = 8;
/// Faults while a job starts and ends.
const FAULTS: [&str; 5] = [
    "cxi1:SVC_ALLOC:EAGAIN:times=1",
    "cxi2:SVC_DESTROY:EBUSY:times=3",
    "cxi0:SVC_LIST_GET:EAGAIN:times=1",
    "cxi3:SVC_ALLOC:ENOMEM:times=1",
    "cxi3:delay=2ms",
];

#[test]
fn jobs_that_run_lose_nothing_and_nothing_is_left() {
    need_node!();
    let soak = Soak::new();
    let before = soak.services();
    let deadline = Instant::now() + node::soak_length(4);
    scope(|scope| {
        let soak = &soak;
        for runner in 0..RUNNERS {
            scope.spawn(move || {
                let mut random = Random::new(1 + u64::from(runner));
                let mut job = 0;
                while Instant::now() < deadline {
                    soak.life(&format!("job{runner}-{job}"), 1000 + runner, &mut random);
                    job += 1;
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(move || {
                while Instant::now() < deadline {
                    soak.clean();
                }
            });
        }
        scope.spawn(move || {
            let mut random = Random::new(0);
            while Instant::now() < deadline {
                soak.node.order(&["fault", FAULTS[random.below(FAULTS.len())]]);
                sleep(Duration::from_millis(50));
                soak.node.order(&["clear-faults"]);
            }
        });
    });
    soak.node.order(&["clear-faults"]);
    soak.clean();
    assert_eq!(soak.services(), before, "something is left");
    let shown: Value =
        serde_json::from_str(&printed(&soak.vni(&["show", "--json"]).run())).expect("JSON");
    assert_eq!(shown["jobs"], Value::Array(Vec::new()), "no job has a VNI");
    let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    let (ran, killed) = (count(&soak.ran), count(&soak.killed));
    let _ = writeln!(stderr(), "{ran} jobs ran, {killed} commands were killed");
    assert!(ran > 0 && killed > 0, "{ran} jobs, {killed} kills");
}

struct Soak {
    node: Served,
    directory: Directory,
    /// Holder of each VNI, from its allocation to its release.
    holders: Mutex<BTreeMap<u64, String>>,
    ran: AtomicUsize,
    killed: AtomicUsize,
}

impl Soak {
    fn new() -> Self {
        let soak = Self {
            node: Served::start(&["--nics", "4"]),
            directory: Directory::new(),
            holders: Mutex::default(),
            ran: AtomicUsize::new(0),
            killed: AtomicUsize::new(0),
        };
        fs::create_dir(soak.directory.join("run")).expect("a directory");
        let configured = soak.vni(&["configure", "1024-2047"]).output();
        printed(&configured.expect("cxi runs"));
        soak
    }

    /// The environment of a node's scripts.
    fn with_places<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("CXI_POOL_FILE", self.directory.join("pool.json"))
            .env("CXI_LOCK", self.directory.join("node.lock"))
            .env("CXI_WAIT", "10m")
    }

    /// `cxi vni`, which needs no NIC.
    fn vni(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_test-cxi"));
        self.with_places(command.arg("vni").args(arguments));
        command
    }

    /// `cxi` on the node, as the process itself, so that a kill hits it.
    fn cxi(&self, arguments: &[&str]) -> Command {
        let mut command = server(["enter", "--dir", &self.node.dir(), "--outlive", "--"]);
        self.with_places(command.arg(env!("CARGO_BIN_EXE_test-cxi")).args(arguments));
        command
    }

    /// Runs a command until it completes; before that, it may be killed halfway a few times.
    fn finish(&self, random: &mut Random, make: impl Fn() -> Command) -> Output {
        while random.below(3) == 0 {
            let mut child =
                make().stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("cxi runs");
            sleep(Duration::from_micros(random.below(60_000)));
            child.kill().expect("a child can be killed");
            child.wait().expect("it ends");
            self.killed.fetch_add(1, Ordering::Relaxed);
        }
        make().run()
    }

    /// A job from its prolog to its epilog, as the scripts of a scheduler do it.
    fn life(&self, job: &str, uid: u32, random: &mut Random) {
        let vni = printed(&self.finish(random, || self.vni(&["reserve", job])));
        let number: u64 = vni.parse().expect("a VNI");
        let holder = self.holders.lock().expect("no panic").insert(number, job.to_owned());
        assert_eq!(holder, None, "VNI {vni} is in two jobs, {job} is one");
        let record = self.directory.join(&format!("run/{job}.vnis"));
        fs::write(self.directory.join(job), format!("{vni}\n")).expect("a file");
        fs::rename(self.directory.join(job), &record).expect("a file");

        let (uid, vni) = (uid.to_string(), vni.as_str());
        let which = ["--uid", uid.as_str(), "--vni", vni];
        let prolog = ["job", "prolog", "--job", job, "--cores=1", "--no-tles"];
        let prolog = self.finish(random, || self.cxi(&[&prolog[..], &which].concat()));
        if prolog.status.success() {
            for _ in 0..=random.below(3) {
                assert_eq!(self.on_nics(number), NICS, "{job} has lost a service");
            }
            self.ran.fetch_add(1, Ordering::Relaxed);
        }
        let epilog = ["job", "epilog", "--job", job, "--retry-busy=1m"];
        loop {
            let epilog = self.finish(random, || self.cxi(&epilog));
            match epilog.status.code() {
                Some(0 | 8) => break,
                // A NIC that does not answer now.
                Some(1) => {}
                _ => panic!("{job}: {epilog:?}"),
            }
        }
        assert_eq!(self.on_nics(number), 0, "{job} has left a service");
        fs::remove_file(record).expect("the record is there");
        self.holders.lock().expect("no panic").remove(&number);
        let release = self.finish(random, || self.vni(&["release", job, "--nodes=n1"]));
        assert!(matches!(release.status.code(), Some(0 | 8)), "{release:?}");
        // 5: it was killed after it had done its work.
        let confirm = self.finish(random, || self.vni(&["confirm", job, "--all"]));
        assert!(matches!(confirm.status.code(), Some(0 | 5)), "{confirm:?}");
    }

    /// On how many NICs there is a service with that VNI.
    fn on_nics(&self, vni: u64) -> usize {
        let has = |service: &&Value| {
            let vnis = service["vnis"].as_array();
            vnis.is_some_and(|vnis| vnis.contains(&vni.into()))
        };
        let services = self.listed();
        let nics = services.iter().filter(has).map(|service| service["device"].to_string());
        nics.collect::<BTreeSet<_>>().len()
    }

    fn listed(&self) -> Vec<Value> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let listed = self.cxi(&["--json", "service", "list"]).output();
            let listed = listed.expect("cxi runs");
            if listed.status.success() || Instant::now() > deadline {
                let list: Value = serde_json::from_str(&printed(&listed)).expect("JSON");
                return list["services"].as_array().expect("a list").clone();
            }
        }
    }

    fn services(&self) -> usize {
        self.listed().len()
    }

    /// Runs a health check.
    fn clean(&self) {
        let run = self.directory.join("run");
        let clean = ["job", "clean", "--foreign", "--vni-pool=1024-2047", "--retry-busy=1s"];
        let clean = self.cxi(&[&clean[..], &["--live-from", &run]].concat()).output();
        let clean = clean.expect("cxi runs");
        // 1 and 4: a NIC that does not answer, or a service that is busy, now.
        let code = clean.status.code();
        assert!(matches!(code, Some(0 | 1 | 4 | 8)), "{clean:?}");
    }
}
