//! Commands on a pool take turns, in the order of their arrival, and wait for nothing but each other.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::assert_contains;
use crate::common::vni_pool::Pool;

#[test]
fn those_that_wait_are_served_in_the_order_of_their_arrival() {
    let pool = Pool::new();
    let lock = File::open(pool.path("pool.json.lock")).unwrap();
    lock.lock().unwrap();
    let said = pool.vni("reserve early --wait=30ms");
    assert_eq!(said.code, 4, "{}", said.err);
    assert_contains(
        &said.err,
        "another cxi has been using the pool file for 30ms",
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
    let said = pool.vni("reserve job1");
    assert_eq!(said.code, 2);
    assert_contains(&said.err, "cannot open the lock file: not a regular file");
    fs::remove_file(pool.path("pool.json.lock")).unwrap();
    pipe("pool.json");
    let said = pool.vni("reserve job1");
    assert_eq!(said.code, 2);
    assert_contains(&said.err, "the pool cannot be read: not a regular file");
}
