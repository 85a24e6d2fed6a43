//! Logs of a pool, and pools on a shared log.

use std::collections::HashMap;
use std::slice;

use cxi_site::JobId;
use cxi_site::pool::log::{AppendError, EventLog, LogError, MemoryLog, Record, SharedPool, check};
use cxi_site::pool::{Change, PoolConfig, PoolError, Timestamp, VniPool, VniRequest};

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

#[test]
fn a_log_in_a_file_conforms() {
    let directory = tempfile::tempdir().unwrap();
    let open = |number: u32| directory.path().join(number.to_string());
    check(|number| cxi_site::pool::log::FileLog::new(&open(number))).unwrap();
}

/// Mistake of an implementer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    TakesAnyNumber,
    IgnoresEpochs,
    LosesTheFirst,
    RemovesTheBeginning,
}

#[derive(Debug)]
struct Wrong(MemoryLog, Mistake);

impl EventLog for Wrong {
    fn load(&mut self, after: u64) -> Result<Vec<Record>, LogError> {
        let mut records = self.0.load(after)?;
        if self.1 == Mistake::LosesTheFirst && after > 0 && !records.is_empty() {
            records.remove(0);
        }
        if self.1 == Mistake::RemovesTheBeginning {
            records.retain(|record| !record.is_beginning());
        }
        Ok(records)
    }

    fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        let mut record = record.clone();
        let records = self.0.load(0).unwrap();
        match self.1 {
            Mistake::TakesAnyNumber => record.event.sequence = records.len() as u64 + 1,
            Mistake::IgnoresEpochs => {
                record.epoch = records.last().map_or(0, |last| last.epoch).max(record.epoch);
            }
            Mistake::LosesTheFirst | Mistake::RemovesTheBeginning => {}
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
        (Mistake::RemovesTheBeginning, "a saved pool is not in the log"),
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
    let late = old.reserve(&job, &VniRequest::vnis(1), at(2));
    assert!(late.unwrap_err().is_deposed());
    assert_eq!(new.pool().jobs().count(), 0);
    let error = SharedPool::open(log, config(), "older", 1, at(3)).unwrap_err();
    assert!(error.to_string().contains("epoch 2"), "{error}");
}

#[test]
fn each_leader_has_an_epoch_of_its_own() {
    let log = MemoryLog::new();
    let mut one = SharedPool::open(log.clone(), config(), "one", 0, at(0)).unwrap();
    let open = |epoch| SharedPool::open_existing(log.clone(), "two", epoch).unwrap();
    let mut two = open(0).unwrap();
    assert_eq!((one.lead(at(1)).unwrap(), two.lead(at(2)).unwrap()), (1, 2));
    let job = JobId::new("1").unwrap();
    let late = one.reserve(&job, &VniRequest::vnis(1), at(3));
    assert!(late.unwrap_err().is_deposed());
    // Another process of the leader.
    let vnis = open(2).unwrap().reserve(&job, &VniRequest::vnis(1), at(3));
    assert_eq!(vnis.unwrap().to_string(), "VNI 1024");
    assert_eq!(one.lead(at(4)).unwrap(), 3);
    assert!(one.pool().job(&job).is_some());
}

#[test]
fn a_refusal_leaves_no_trace() {
    let mut log = MemoryLog::new();
    let mut pool = SharedPool::open(log.clone(), config(), "one", 0, at(0)).unwrap();
    let job = JobId::new("1").unwrap();
    let before = pool.pool().clone();
    let refused = pool.change(at(1), |pool, now| pool.confirm_all(slice::from_ref(&job), now));
    assert!(refused.is_err());
    assert_eq!(pool.pool(), &before);
    assert_eq!(log.load(0).unwrap().len(), 1);
}

/// Makes this many changes without effect.
fn change<L: EventLog>(pool: &mut SharedPool<L>, count: u32) {
    for _ in 0..count {
        let _ = pool.change(at(1), VniPool::record_config).unwrap();
    }
}

#[test]
fn a_log_begins_anew_after_many_changes() {
    let log = MemoryLog::new();
    let open = |name| SharedPool::open(log.clone(), config(), name, 0, at(0)).unwrap();
    let (mut one, mut behind) = (open("one"), open("behind"));
    change(&mut one, 4_998);
    assert_eq!(log.clone().load(0).unwrap().len(), 4_999);
    change(&mut one, 3);
    let records = log.clone().load(0).unwrap();
    let numbers: Vec<_> = records.iter().map(|it| it.event.sequence).collect();
    assert_eq!(numbers, [5_001, 5_002, 5_003]);
    assert!(records[0].is_beginning());
    // One that had read some of it, and one that comes later.
    change(&mut behind, 1);
    one.catch_up::<PoolError>().unwrap();
    assert_eq!(behind.pool(), one.pool());
    assert_eq!(open("late").pool(), one.pool());
}

#[test]
fn a_saved_pool_stands_where_it_was_saved() {
    let mut pool = VniPool::new(config()).unwrap();
    let saved = pool.save(at(0)).unwrap().event.unwrap();
    let refused = |pool: &mut VniPool, event, expected: &str| {
        let before = pool.clone();
        let error = pool.apply(event).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(*pool, before);
    };
    refused(&mut pool, &saved, "expected event number 2, found 1");
    let mut moved = saved.clone();
    moved.sequence = 2;
    refused(&mut pool, &moved, "expected event number 1, found 2");
    let mut unknown = pool.save(at(0)).unwrap().event.unwrap();
    let Change::Saved { pool: snapshot } = &mut unknown.change else { panic!("{unknown:?}") };
    snapshot.version = 9;
    let mut fresh = VniPool::new(config()).unwrap();
    refused(&mut fresh, &unknown, "snapshot version 9 is unknown");
}

/// A log whose answer is lost, and that begins anew before anyone looks.
#[derive(Debug)]
struct Overtaken(MemoryLog);

impl EventLog for Overtaken {
    fn load(&mut self, after: u64) -> Result<Vec<Record>, LogError> {
        self.0.load(after)
    }

    fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        self.0.append(record)?;
        let mut other = SharedPool::open(self.0.clone(), config(), "other", 0, at(0)).unwrap();
        other.save(at(1)).unwrap();
        Err(AppendError::Unknown("lost".into()))
    }
}

#[test]
fn whether_an_event_before_the_beginning_was_logged_is_not_known() {
    let log = MemoryLog::new();
    SharedPool::open(log.clone(), config(), "first", 0, at(0)).unwrap();
    let mut pool = SharedPool::open(Overtaken(log), config(), "one", 0, at(0)).unwrap();
    let job = JobId::new("1").unwrap();
    let mut reserve = || pool.reserve(&job, &VniRequest::vnis(1), at(1));
    let error = reserve().unwrap_err().to_string();
    assert!(error.contains("the log now begins behind it"), "{error}");
    // The same again finds out.
    assert_eq!(reserve().unwrap().to_string(), "VNI 1024");
}

#[test]
fn a_log_in_a_file_begins_anew_with_the_pool() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let open = || cxi_site::pool::log::FileLog::new(&path);
    assert!(SharedPool::open_existing(open(), "", 0).unwrap().is_none());
    assert!(!path.exists());
    let mut pool = SharedPool::open(open(), config(), "one", 0, at(0)).unwrap();
    change(&mut pool, 300);
    assert_eq!(open().load(0).unwrap().len(), 301);
    assert_eq!(open().load(299).unwrap().len(), 2);
    pool.save(at(1)).unwrap();
    change(&mut pool, 1);
    let records = open().load(0).unwrap();
    assert_eq!(records.len(), 2);
    assert!(records[0].is_beginning());
    assert_eq!(open().load(302).unwrap(), records[1..]);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 2);
    let again = SharedPool::open_existing(open(), "two", 0).unwrap().unwrap();
    assert_eq!(again.pool(), pool.pool());
    // The target of a link is replaced, not the link.
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let linked = cxi_site::pool::log::FileLog::new(&link);
    let mut linked = SharedPool::open_existing(linked, "three", 0).unwrap().unwrap();
    linked.save(at(2)).unwrap();
    assert_eq!(open().load(0).unwrap().len(), 1);
}

/// Whoever owns the directory of a pool must not have root write to a file of somebody else.
#[test]
fn a_log_is_not_appended_through_a_link_of_somebody_else() {
    use std::fs;
    use std::os::unix::fs::{chown, lchown, symlink};
    use std::path::Path;
    if !cxi_test_kit::root("give a file to another user") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (theirs, victims) = (directory.path().join("theirs"), directory.path().join("victims"));
    for (place, owner) in [(&theirs, 4711), (&victims, 4712)] {
        fs::create_dir(place).unwrap();
        chown(place, Some(owner), None).unwrap();
    }
    let victim = victims.join("pool.json");
    let log = |path| cxi_site::pool::log::FileLog::new(path);
    drop(SharedPool::open(log(&victim), config(), "one", 0, at(0)).unwrap());
    let before = fs::read(&victim).unwrap();
    let link = theirs.join("pool.json");
    let links: [fn(&Path, &Path) -> std::io::Result<()>; 2] =
        [|from, to| symlink(from, to), |from, to| fs::hard_link(from, to)];
    for how in links {
        how(&victim, &link).unwrap();
        lchown(&link, Some(4711), None).unwrap();
        let pool = SharedPool::open_existing(log(&link), "two", 0);
        let reserved = pool.map_err(|error| error.to_string()).and_then(|pool| {
            let (job, request) = (JobId::new("1").unwrap(), VniRequest::vnis(1));
            pool.unwrap().reserve(&job, &request, at(1)).map_err(|error| error.to_string())
        });
        assert!(reserved.is_err(), "{reserved:?}");
        assert_eq!(fs::read(&victim).unwrap(), before);
        fs::remove_file(&link).unwrap();
        chown(&victim, Some(4712), None).unwrap();
    }
}

#[test]
fn a_process_that_keeps_the_lock_is_alone() {
    use std::time::Duration;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let open = || cxi_site::pool::log::FileLog::new(&path).wait(Duration::from_millis(1));
    let locked = open().locked().unwrap();
    let mut alone = SharedPool::open(locked, config(), "alone", 0, at(0)).unwrap();
    let mut other = SharedPool::open_existing(open(), "other", 0).unwrap().unwrap();
    let job = JobId::new("1").unwrap();
    let error = other.reserve(&job, &VniRequest::vnis(1), at(1)).unwrap_err();
    assert!(error.to_string().contains("locked by another process"), "{error}");
    assert!(open().locked().unwrap_err().is_busy());
    alone.reserve(&job, &VniRequest::vnis(1), at(1)).unwrap();
    drop(alone);
    // It finds what was changed in the meantime.
    let again = other.change(at(2), |pool, now| pool.reserve(&job, &VniRequest::vnis(1), now));
    assert_eq!(again.unwrap().event, None);
}
