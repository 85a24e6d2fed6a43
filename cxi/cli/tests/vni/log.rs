//! A command that is interrupted loses no change, and makes none twice.

use std::fs;

use crate::common::Said;
use crate::common::vni_pool::Pool;

#[test]
fn half_a_line_is_no_change() {
    let pool = Pool::new();
    pool.reserve("job1");
    let before = pool.keep().unwrap();
    assert_eq!(pool.reserve("job2"), "1025\n");
    let whole = pool.keep().unwrap();
    let line = whole.len() - before.len();
    for written in (0..=line).step_by(if cfg!(debug_assertions) { 11 } else { 1 }).chain([line]) {
        // It was killed while it wrote the line, or right afterward.
        pool.put(Some(&whole[..before.len() + written].to_vec()));
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
    // The limit is in blocks of 512 bytes; neither the log nor the pool can grow beyond it.
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
fn a_file_of_another_kind_is_left_as_it_is() {
    let pool = Pool::empty();
    for text in ["precious", "precious\n", "{\"sequence\":1", "{}\n"] {
        fs::write(pool.path("pool.json"), text).unwrap();
        for arguments in ["configure 1024-65535", "reserve job1"] {
            let said = pool.vni(arguments);
            assert_eq!(said.code, 2, "{said:?}");
            assert_eq!(pool.keep().unwrap(), text.as_bytes());
        }
    }
}
