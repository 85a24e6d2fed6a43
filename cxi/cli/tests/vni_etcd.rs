//! A pool in etcd, with two controllers of which one takes over.
//!
//! `CXI_TEST_FULL=1` makes 10,000 reservations while controllers and members of etcd are killed,
//! which takes half an hour or more.

mod common;
#[path = "../../vni-etcd/tests/server/mod.rs"]
mod server;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Write as _, stderr};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Arguments, Said, assert_contains, clean, command};
use cxi_test_kit::{Random, full};
use server::Etcd;
use tempfile::TempDir;

/// The things that two controllers share: settings, decisions and etcd.
struct Site {
    directory: TempDir,
}

impl Site {
    fn new(urls: &[String], more: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().display();
        let settings = format!(
            "[pool]\nstore = \"etcd\"\n[controller]\nrecords = \"{path}/decisions\"\nwait = \
             \"20s\"\n[etcd]\nendpoints = {urls:?}\ntimeout = \"5s\"\n{more}"
        );
        fs::write(directory.path().join("cxi.toml"), settings).unwrap();
        Self { directory }
    }

    /// A command on a controller.
    fn command(&self, controller: &str, arguments: &(impl Arguments + ?Sized)) -> Command {
        let path = self.directory.path();
        let mut command = command(&[]);
        clean(&mut command).env("CXI_CONFIG", path.join("cxi.toml"));
        command.env("CXI_VNI_EPOCH", path.join(controller).join("epoch"));
        command.args(arguments.words());
        command
    }

    fn on(&self, controller: &str, arguments: &(impl Arguments + ?Sized)) -> Said {
        self.command(controller, arguments).output().unwrap().into()
    }

    /// Kills a command in the middle.
    fn killed_on(&self, controller: &str, arguments: &str, after: Duration) {
        let mut command = self.command(controller, arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn reserve(&self, controller: &str, job: &str) -> Said {
        self.on(controller, &reserve(job))
    }
}

fn reserve(job: &str) -> String {
    format!("job reserve {job} --uid=1000 --nodes=n1")
}

#[test]
fn a_controller_takes_over_and_the_one_before_is_refused() {
    let Some(mut etcd) = Etcd::members(3, "http", &[]) else { return };
    let urls: Vec<String> = etcd.iter().map(Etcd::url).collect();
    let site = Site::new(&urls, "");
    assert_eq!(site.on("a", "vni show").code, 2, "there is no pool");
    site.on("a", "vni configure 1024-1026").done();
    // A machine that has never led does not query etcd for metrics.
    let metrics = || site.on("a", "metrics --mock").out;
    assert!(!metrics().contains("cxi_vni_pool"), "{}", metrics());
    site.on("a", "vni lead").prints("This controller leads cxi/vni in etcd: epoch 1\n");
    assert_contains(&metrics(), "cxi_vni_pool_vnis{state=\"free\"} 3");
    site.reserve("a", "1").prints("1024\n");
    // The next endpoint responds.
    etcd[0].kill();
    site.reserve("a", "2").prints("1025\n");
    let other = site.reserve("b", "3");
    other.mentions(1, "a leader with epoch 1 has taken over the log of the pool");
    assert_contains(&other.err, "cxi vni lead");
    site.on("b", "vni lead").prints("This controller leads cxi/vni in etcd: epoch 2\n");
    site.reserve("b", "2").prints("1025\n");
    site.reserve("b", "3").prints("1026\n");
    assert_contains(&site.reserve("a", "4").err, "a leader with epoch 2");
    site.on("b", "job release 1").done();
    site.on("b", "job confirm 1 --node n1").done();
    site.on("b", "job sweep -- echo 2 3").ended(8, "Nothing to do: no such job is running\n");
    let pool = site.on("b", "--json vni show").json();
    assert_eq!((pool["free"].as_u64(), pool["reserved"].as_u64()), (Some(1), Some(2)));
    // One of three members is not a majority.
    etcd[1].kill();
    let mut alone = site.command("b", "vni show");
    let alone: Said = alone.env("CXI_WAIT", "1s").output().unwrap().into();
    alone.mentions(1, "cannot read the log of the pool: etcd at http://");
}

/// Two controllers, of which one leads, and an etcd of three members. Whichever is killed, no VNI is
/// in two jobs, and none is lost.
#[test]
fn no_vni_is_given_twice_or_lost_whatever_is_killed() {
    const LIVE: usize = 64;
    let Some(mut etcd) = Etcd::members(3, "http", &[]) else { return };
    // Something is killed about every so many jobs.
    let (jobs, every) = if full() { (10_000, 25) } else { (60, 5) };
    let urls: Vec<String> = etcd.iter().map(Etcd::url).collect();
    let site = Site::new(&urls, "");
    let [mut leader, mut other] = ["a", "b"];
    site.on(leader, "vni configure 1024-1151").done();
    site.on(leader, "vni lead").done();
    // What the nodes have not confirmed the end of.
    let mut live = BTreeMap::new();
    let (mut down, mut members, mut controllers) = (None::<usize>, 0, 0);
    let (mut longest, mut after_a_kill) = (Duration::ZERO, Duration::ZERO);
    let mut random = Random::new(1);
    let mut below = |limit: usize| random.below(limit);
    for number in 0..jobs {
        let job = number.to_string();
        let begins = Instant::now();
        let mut is_killed = false;
        if below(every) == 0 {
            if let Some(member) = down.take() {
                etcd[member].restart();
            } else {
                let member = below(etcd.len());
                etcd[member].kill();
                down = Some(member);
                members += 1;
                is_killed = true;
            }
        }
        if below(every) == 0 {
            let ends = live.keys().next().filter(|_| below(2) == 0);
            let command = ends.map_or(reserve(&job), |job| format!("job release {job}"));
            let after = Duration::from_millis(below(40).try_into().unwrap());
            site.killed_on(leader, &command, after);
            (leader, other) = (other, leader);
            site.on(leader, "vni lead").done();
            // Should the one that was killed come back, it changes nothing.
            let deposed = site.reserve(other, "deposed");
            deposed.mentions(1, "has taken over the log of the pool");
            controllers += 1;
            is_killed = true;
        }
        let said = site.reserve(leader, &job).done();
        let pause = begins.elapsed();
        if is_killed {
            after_a_kill = after_a_kill.max(pause);
        } else {
            longest = longest.max(pause);
        }
        let vni: u16 = said.trim().parse().unwrap();
        let twice = live.iter().find(|(_, has)| **has == vni);
        assert_eq!(twice, None, "job {job} has it, too");
        live.insert(job, vni);

        if live.len() >= LIVE || number + 1 == jobs {
            // Those that Slurm no longer has.
            let stays = if number + 1 == jobs { 0 } else { LIVE / 2 };
            let over: Vec<String> = live.keys().take(live.len() - stays).cloned().collect();
            for job in &over {
                live.remove(job);
            }
            let lists = live.keys().map(String::as_str).collect::<Vec<_>>().join(" ");
            let swept = site.on(leader, &format!("job sweep -- echo {lists}"));
            assert!([0, 8].contains(&swept.code), "{swept:?}");
            for job in over {
                site.on(leader, &format!("job confirm {job} --node=n1")).done();
            }
        }
    }
    let swept = site.on(leader, "job sweep -- true");
    assert_eq!(swept.code, 8, "{swept:?}");
    let pool = site.on(leader, "--json vni show").json();
    assert_eq!((pool["free"].as_u64(), pool["reserved"].as_u64()), (Some(128), Some(0)));
    for directory in ["running", "ended"] {
        let left = fs::read_dir(site.directory.path().join("decisions").join(directory));
        assert_eq!(left.unwrap().count(), 0, "{directory}");
    }
    assert!(controllers > 4 && members > 2, "{controllers}, {members}");
    if full() {
        let said = format!(
            "{jobs} jobs, {controllers} controllers killed, {members} members killed; longest \
             reservation {longest:?}, after a kill, with the failover, {after_a_kill:?}"
        );
        writeln!(stderr(), "{said}").unwrap();
    }
}

#[test]
fn what_is_wrong_with_the_settings_is_named() {
    let one = ["https://127.0.0.1:9".to_owned()];
    for (urls, more, why) in [
        (&[][..], "", "pool.store is etcd: expected the setting etcd.endpoints"),
        (&one, "user = \"cxi\"", "expected both etcd.user and etcd.password-file, or neither"),
        (
            &one,
            "client-key = \"/k\"",
            "expected both etcd.client-certificate and etcd.client-key, or neither",
        ),
        (&one, "certificate = \"/nowhere/ca\"", "no certificate authority of /nowhere/ca"),
        (
            &one,
            "certificate = \"no\"\nuser = \"cxi\"\npassword-file = \"/nowhere/password\"",
            "/nowhere/password: cannot be read",
        ),
    ] {
        let said = Site::new(urls, more).on("a", "vni show");
        said.mentions(2, why);
    }
}
