//! A replay of the log takes nothing from whoever works on the pool at the same time, or did since.

use std::fs;
use std::thread::scope;

use crate::common::assert_contains;
use crate::common::vni_pool::Pool;

#[test]
fn a_replay_during_other_commands_loses_none_of_them() {
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
    assert_contains(
        &said.err,
        "the pool has change 3, the log ends with change 2",
    );
    assert_eq!(pool.keep(), before);
    pool.vni(&["replay", &old, "--force"]).done();
    assert_ne!(pool.keep(), before);
}
