//! A pool of VNIs and its log: whatever kills a command, and whoever works on the pool at the same
//! time, no change is lost, and none is made twice.

mod common;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use common::{Said, command};
use serde_json::Value;
use tempfile::TempDir;

struct Pool {
    directory: TempDir,
}

impl Pool {
    fn new() -> Self {
        let pool = Self {
            directory: TempDir::new().unwrap(),
        };
        pool.vni(&["configure", "1024-65535"]).done();
        pool
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn log(&self) -> String {
        self.path("pool.log").display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(&["vni"]);
        command
            .args(arguments)
            .env("CXI_VNI_POOL", self.path("pool.json"))
            .env("CXI_VNI_LOG", self.log());
        command
    }

    fn vni(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().unwrap().into()
    }

    fn reserve(&self, job: &str) -> String {
        self.vni(&["reserve", job]).done()
    }

    fn keep(&self) -> [Vec<u8>; 2] {
        ["pool.json", "pool.log"].map(|name| fs::read(self.path(name)).unwrap())
    }

    fn put(&self, [pool, log]: &[Vec<u8>; 2]) {
        fs::write(self.path("pool.json"), pool).unwrap();
        fs::write(self.path("pool.log"), log).unwrap();
    }

    /// The jobs and their VNIs, which the log has just as the pool has them.
    fn jobs(&self) -> Vec<(String, u64)> {
        let shown = self.vni(&["show", "--json"]).json();
        let before = self.keep();
        fs::remove_file(self.path("pool.json")).unwrap();
        self.vni(&["replay", &self.log()]).done();
        let replayed = self.vni(&["show", "--json"]).json();
        self.put(&before);
        assert_eq!(shown["jobs"], replayed["jobs"], "pool and log");
        let job = |job: &Value| {
            let vnis = &job["vnis"]["list"];
            (
                job["job"].as_str().unwrap().to_owned(),
                vnis[0].as_u64().unwrap(),
            )
        };
        let jobs: Vec<(String, u64)> = shown["jobs"].as_array().unwrap().iter().map(job).collect();
        let different: BTreeSet<u64> = jobs.iter().map(|(_, vni)| *vni).collect();
        assert_eq!(different.len(), jobs.len(), "a VNI in two jobs: {jobs:?}");
        jobs
    }

    /// What is beside the pool and its log.
    fn others(&self) -> Vec<String> {
        let names = fs::read_dir(self.directory.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let kept = ["pool.json", "pool.log", "pool.json.lock"];
        names.filter(|name| !kept.contains(&&**name)).collect()
    }
}

#[test]
fn a_change_that_was_logged_and_not_kept_is_taken_over() {
    let pool = Pool::new();
    pool.reserve("job1");
    let [before, log] = pool.keep();
    assert_eq!(pool.reserve("job2"), "1025\n");
    let [_, whole] = pool.keep();
    let line = whole.len() - log.len();
    for written in (0..=line)
        .step_by(if cfg!(debug_assertions) { 11 } else { 1 })
        .chain([line])
    {
        // Killed while the line was written, or right after it.
        pool.put(&[before.clone(), whole[..log.len() + written].to_vec()]);
        let done = written == line;
        assert_eq!(pool.jobs().len(), if done { 2 } else { 1 }, "{written}");
        assert_eq!(pool.reserve("job3"), if done { "1026\n" } else { "1025\n" });
        let (jobs, expected) = (pool.jobs(), if done { 3 } else { 2 });
        assert_eq!(jobs.len(), expected, "{written}: {jobs:?}");
    }
    assert_eq!(pool.reserve("job2"), "1025\n");
}

#[test]
fn on_a_full_disk_a_change_is_made_or_not() {
    let pool = Pool::new();
    // In blocks of 512 bytes: neither log nor pool grows beyond it.
    let mut refused = 0;
    for blocks in 1..=5 {
        for job in 0..6 {
            let before = pool.keep();
            let text = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
            let mut limited = Command::new("sh");
            let inner = pool.command(&["reserve", &format!("job{blocks}-{job}")]);
            limited.args(["-c", &text, "sh"]).arg(inner.get_program());
            limited.args(inner.get_args());
            for (name, value) in inner.get_envs() {
                limited.env(name, value.unwrap_or_default());
            }
            let said = Said::from(limited.output().unwrap());
            if said.code != 0 {
                refused += 1;
                assert_eq!(said.code, 1, "{said:?}");
                assert_eq!(pool.keep(), before, "{said:?}");
            }
        }
        pool.jobs();
    }
    assert!(refused > 0);
    assert_eq!(pool.others(), Vec::<String>::new());
}

#[test]
fn commands_that_are_killed_lose_nothing() {
    let pool = Pool::new();
    let mut confirmed = Vec::new();
    for number in 0..60_u64 {
        let job = format!("job{number}");
        let mut child = pool
            .command(&["reserve", &job])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        sleep(Duration::from_micros(number * 173 % 9_000));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        if let Ok(vni) = String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse::<u64>()
        {
            confirmed.push((job, vni));
        }
    }
    pool.reserve("last");
    let jobs = pool.jobs();
    for job in confirmed {
        assert!(jobs.contains(&job), "{job:?} was told its VNI");
    }
    assert_eq!(pool.others(), Vec::<String>::new());
}

#[test]
fn a_replay_beside_other_commands_loses_none_of_them() {
    const JOBS: usize = 24;
    let pool = Pool::new();
    scope(|scope| {
        let reserving = scope.spawn(|| {
            for job in 0..JOBS {
                pool.reserve(&format!("job{job}"));
            }
        });
        while !reserving.is_finished() {
            pool.vni(&["replay", &pool.log()]).done();
        }
    });
    assert_eq!(pool.jobs().len(), JOBS);
}

#[test]
fn a_replay_does_not_take_back_what_the_log_does_not_have() {
    let pool = Pool::new();
    pool.reserve("job1");
    let old = pool.path("old.log").display().to_string();
    fs::copy(pool.path("pool.log"), &old).unwrap();
    pool.reserve("job2");
    let before = pool.keep();
    let said = pool.vni(&["replay", &old]);
    assert_eq!(said.code, 2);
    assert!(
        said.err
            .contains("the pool has change 3, the log ends with change 2"),
        "{}",
        said.err
    );
    assert_eq!(pool.keep(), before);
    pool.vni(&["replay", &old, "--force"]).done();
    assert_ne!(pool.keep(), before);
}

#[test]
fn a_new_pool_is_not_made_over_the_log_of_a_lost_one() {
    let pool = Pool::new();
    pool.reserve("job1");
    fs::remove_file(pool.path("pool.json")).unwrap();
    let said = pool.vni(&["configure", "1024-65535"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("cxi vni replay LOG"), "{}", said.err);
    assert!(!pool.path("pool.json").exists());
    pool.vni(&["replay", &pool.log()]).done();
    assert_eq!(pool.reserve("job1"), "1024\n");
}

#[test]
fn those_that_wait_are_served_in_the_order_of_their_arrival() {
    let pool = Pool::new();
    let lock = File::open(pool.path("pool.json.lock")).unwrap();
    lock.lock().unwrap();
    let said = pool.vni(&["reserve", "early", "--wait=30ms"]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(
        said.err
            .contains("another cxi has been using the pool file for 30ms"),
        "{}",
        said.err
    );
    let waiting: Vec<_> = (0..5)
        .map(|job| {
            let child = pool
                .command(&["reserve", &format!("job{job}")])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            wait_until_it_waits(&child, &pool.path("pool.json.lock"));
            child
        })
        .collect();
    drop(lock);
    for (child, vni) in waiting.into_iter().zip(1024..) {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.stdout, format!("{vni}\n").into_bytes());
    }
}

/// A process that waits for a lock stands in `/proc/locks` with an arrow.
fn wait_until_it_waits(child: &std::process::Child, lock: &std::path::Path) {
    let inode = fs::metadata(lock).unwrap().ino();
    let (pid, inode) = (format!(" {} ", child.id()), format!(":{inode} "));
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        let waits = |line: &&str| line.contains("->") && line.contains(&inode);
        if locks.lines().filter(waits).any(|line| line.contains(&pid)) {
            return;
        }
        assert!(Instant::now() < deadline, "it does not wait: {locks}");
        sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_pipe_as_lock_or_log_is_refused_at_once() {
    let pool = Pool::new();
    let pipe = |name: &str| {
        let path = pool.path(name);
        let _ = fs::remove_file(&path);
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
    };
    pipe("pool.json.lock");
    let said = pool.vni(&["reserve", "job1"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err
            .contains("not a lock file: expected a regular file"),
        "{}",
        said.err
    );
    fs::remove_file(pool.path("pool.json.lock")).unwrap();
    pipe("pool.log");
    let said = pool.vni(&["reserve", "job1"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("cannot use the log"), "{}", said.err);
}

#[test]
fn what_root_writes_stays_its_owners() {
    if !nix::unistd::geteuid().is_root() {
        common::skip("files can be given away by root only");
        return;
    }
    let pool = Pool::new();
    chown(pool.path("pool.json"), Some(12345), Some(12346)).unwrap();
    fs::set_permissions(pool.path("pool.json"), fs::Permissions::from_mode(0o640)).unwrap();
    pool.reserve("job1");
    let file = |name: &str| {
        let metadata = fs::metadata(pool.path(name)).unwrap();
        (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777)
    };
    assert_eq!(file("pool.json"), (12345, 12346, 0o640));
    // Whoever may change the pool may lock it, and nobody else.
    assert_eq!(file("pool.json.lock"), (12345, 12346, 0o600));
}

#[test]
fn vnis_that_rest_are_not_said_to_be_free() {
    let pool = Pool::new();
    pool.vni(&["configure", "1024-65535", "--rest=30s"]).done();
    pool.reserve("job1");
    pool.vni(&["release", "job1", "--nodes=n1"]).done();
    assert_eq!(
        pool.vni(&["confirm", "job1", "--node=n1"]).done(),
        "Job job1 has no VNIs any more: they rest for 30s before they may be used again\n"
    );
}
