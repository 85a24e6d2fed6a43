//! Logs of a pool, and pools on a shared log.

use std::collections::HashMap;

use cxi_job::JobId;
use cxi_job::pool::log::{AppendError, EventLog, LogError, MemoryLog, Record, SharedPool, check};
use cxi_job::pool::{PoolConfig, PoolError, ReserveError, Timestamp, VniRequest};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn config() -> PoolConfig {
    PoolConfig::new("1024-2047".parse().unwrap())
}

#[test]
fn a_log_in_memory_conforms() {
    let mut logs = HashMap::<u32, MemoryLog>::new();
    check(|number| logs.entry(number).or_default().clone()).unwrap();
}

#[cfg(feature = "file-log")]
#[test]
fn a_log_in_a_file_conforms() {
    let directory = tempfile::tempdir().unwrap();
    let open = |number: u32| directory.path().join(number.to_string());
    check(|number| cxi_job::pool::log::FileLog::open(&open(number)).unwrap()).unwrap();
}

/// What an implementer may get wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    TakesAnyNumber,
    IgnoresEpochs,
    LosesTheFirst,
}

#[derive(Debug)]
struct Wrong(MemoryLog, Mistake);

impl EventLog for Wrong {
    fn load(&mut self, after: u64) -> Result<Vec<Record>, LogError> {
        let mut records = self.0.load(after)?;
        if self.1 == Mistake::LosesTheFirst && after > 0 && !records.is_empty() {
            records.remove(0);
        }
        Ok(records)
    }

    fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        let mut record = record.clone();
        let records = self.0.load(0).unwrap();
        match self.1 {
            Mistake::TakesAnyNumber => record.event.sequence = records.len() as u64 + 1,
            Mistake::IgnoresEpochs => {
                record.epoch = records
                    .last()
                    .map_or(0, |last| last.epoch)
                    .max(record.epoch);
            }
            Mistake::LosesTheFirst => {}
        }
        self.0.append(&record)
    }
}

#[test]
fn the_check_finds_mistakes() {
    for (mistake, said) in [
        (Mistake::TakesAnyNumber, "an empty log took event 2"),
        (Mistake::IgnoresEpochs, "was not refused behind epoch 2"),
        (Mistake::LosesTheFirst, "load(1) is not event 2"),
    ] {
        let mut logs = HashMap::<u32, MemoryLog>::new();
        let open = |number| Wrong(logs.entry(number).or_default().clone(), mistake);
        let error = check(open).unwrap_err().to_string();
        assert!(error.contains(said), "{mistake:?}: {error}");
    }
}

#[test]
fn a_new_leader_ends_the_old_one_before_it_changes_anything() {
    let log = MemoryLog::new();
    let mut old = SharedPool::open(log.clone(), config(), "old", 1, at(0)).unwrap();
    let new = SharedPool::open(log.clone(), config(), "new", 2, at(1)).unwrap();
    let job = JobId::new("1").unwrap();
    let late = old.change(at(2), |pool, now| {
        let reserved = pool.reserve(&job, &VniRequest::vnis(1), now)?;
        Ok::<_, ReserveError>(((), reserved.event))
    });
    assert!(late.unwrap_err().is_deposed());
    assert_eq!(new.pool().jobs().count(), 0);
    let error = SharedPool::open(log, config(), "older", 1, at(3)).unwrap_err();
    assert!(error.to_string().contains("epoch 2"), "{error}");
}

#[test]
fn a_refusal_leaves_no_trace() {
    let mut log = MemoryLog::new();
    let mut pool = SharedPool::open(log.clone(), config(), "one", 0, at(0)).unwrap();
    let job = JobId::new("1").unwrap();
    let before = pool.pool().clone();
    let refused = pool.change(at(1), |pool, now| {
        Ok::<_, PoolError>(((), Some(pool.confirm_all(&job, now)?)))
    });
    assert!(refused.is_err());
    assert_eq!(pool.pool(), &before);
    assert_eq!(log.load(0).unwrap().len(), 1);
}
