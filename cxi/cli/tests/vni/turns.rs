//! Commands on a pool take turns in order of arrival, and wait only for each other.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::Said;
use crate::common::vni_pool::Pool;

#[test]
fn those_that_wait_are_served_in_the_order_of_their_arrival() {
    let pool = Pool::new();
    let lock = File::open(pool.path("pool.json.lock")).unwrap();
    lock.lock().unwrap();
    let busy = "another cxi has been using the pool file for 30ms";
    let mut early = pool.command("reserve early");
    let early: Said = early.env("CXI_WAIT", "30ms").output().unwrap().into();
    early.mentions(4, busy);
    assert!(!early.err.contains("Waiting"), "{}", early.err);
    let mut patient = pool.command("reserve patient");
    let patient: Said = patient.env("CXI_WAIT", "1050ms").output().unwrap().into();
    let lock_file = pool.path("pool.json.lock");
    let waits = format!("info: Waiting for another command to release {}\n", lock_file.display());
    assert!(patient.err.starts_with(&waits), "{}", patient.err);
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

/// `/proc/locks` marks a process that is waiting for a lock with an arrow.
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
    let refused = "cannot open the lock file: not a regular file";
    pool.vni("reserve job1").mentions(2, refused);
    fs::remove_file(pool.path("pool.json.lock")).unwrap();
    pipe("pool.json");
    let refused = "the pool cannot be read: not a regular file";
    pool.vni("reserve job1").mentions(2, refused);
}
