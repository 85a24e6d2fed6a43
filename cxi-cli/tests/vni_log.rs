//! A pool of VNIs and its log: whatever kills a command, and whoever works on the pool at the same
//! time, no change is lost, and none is made twice.

mod common;

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::process::{Command, Stdio};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use common::Said;
use common::vni_pool::Pool;

#[test]
fn a_change_that_was_logged_and_not_kept_is_taken_over() {
    let pool = Pool::new();
    pool.reserve("job1");
    let [before, log] = pool.keep().map(Option::unwrap);
    assert_eq!(pool.reserve("job2"), "1025\n");
    let [_, whole] = pool.keep().map(Option::unwrap);
    let line = whole.len() - log.len();
    for written in (0..=line)
        .step_by(if cfg!(debug_assertions) { 11 } else { 1 })
        .chain([line])
    {
        // Killed while the line was written, or right after it.
        let torn = whole[..log.len() + written].to_vec();
        pool.put(&[Some(before.clone()), Some(torn)]);
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
            let mut limited = pool.in_shell(&text, &["reserve", &format!("job{blocks}-{job}")]);
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
