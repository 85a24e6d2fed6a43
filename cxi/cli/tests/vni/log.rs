//! A pool and its log agree, whatever ends a command in the middle: no change is lost, and none is
//! made twice.

use std::fs;

use crate::common::vni_pool::Pool;
use crate::common::{Said, assert_contains};

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
fn a_new_pool_is_not_made_over_the_log_of_a_lost_one() {
    let pool = Pool::new();
    pool.reserve("job1");
    fs::remove_file(pool.path("pool.json")).unwrap();
    let said = pool.vni("configure 1024-65535");
    assert_eq!(said.code, 2);
    assert_contains(&said.err, "cxi vni replay LOG");
    assert!(!pool.path("pool.json").exists());
    pool.vni(&["replay", &pool.log()]).done();
    assert_eq!(pool.reserve("job1"), "1024\n");
}
