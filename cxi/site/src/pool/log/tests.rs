//! Tests of the properties of a log that a pool relies on.

use std::time::Duration;

use super::{AppendError, BoxError, EventLog, LogError, Record, SharedPool};
use crate::pool::{Change, Event, PoolConfig, Timestamp, VniRequest};
use crate::{JobId, NodeName};
use cxi::Vni;

/// Jobs of each of two writers at the same time.
const JOBS: usize = 20;

/// Checks an implementation of [`EventLog`], for its tests. `open` opens a new log, which must be
/// empty, under the number that it gets, or the same log again for a number that it had before.
///
/// It covers order and gaps, two writers at the same time, a leader that was paused and wakes up,
/// answers that are lost before and after the record was written, a leader whose clock is behind, and
/// writers that are behind the beginning of a log.
///
/// # Errors
/// The first thing that is wrong.
pub fn check<L: EventLog + Send>(mut open: impl FnMut(u32) -> L) -> Result<(), BoxError> {
    order(&mut open(0), &mut open(0))?;
    a_paused_leader(&mut open(1), &mut open(1))?;
    for (number, lost) in [(2, Lost::Request), (3, Lost::Answer)] {
        a_lost_message(open(number), open(number), lost)?;
    }
    a_clock_behind(open(4), open(4))?;
    two_at_once(open(5), open(5))?;
    a_beginning(open(6), open(6), open(6))
}

fn expect(holds: bool, what: &str) -> Result<(), BoxError> {
    if holds { Ok(()) } else { Err(what.into()) }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn config() -> Result<PoolConfig, BoxError> {
    Ok(PoolConfig::new("1024-1123".parse()?).rest(Duration::from_secs(60)))
}

fn record(epoch: u64, writer: &str, sequence: u64) -> Result<Record, BoxError> {
    let change = Change::Reconfigured { config: config()? };
    Ok(Record {
        epoch,
        writer: writer.to_owned(),
        event: Event::new(sequence, at(sequence), change),
    })
}

fn moved(appended: &Result<(), AppendError>) -> bool {
    matches!(appended, Err(AppendError::Moved))
}

fn order<L: EventLog>(one: &mut L, other: &mut L) -> Result<(), BoxError> {
    expect(one.load(0)?.is_empty(), "a new log has records")?;
    let first = record(0, "one", 1)?;
    expect(moved(&one.append(&record(0, "one", 2)?)), "an empty log took event 2")?;
    one.append(&first)?;
    expect(moved(&other.append(&record(0, "other", 1)?)), "two writers appended event 1")?;
    expect(moved(&one.append(&first)), "the same record was appended twice")?;
    expect(moved(&other.append(&record(0, "other", 3)?)), "a log took event 3 behind event 1")?;
    let second = record(0, "other", 2)?;
    other.append(&second)?;
    let all = [first, second];
    expect(one.load(0)? == all, "records are not as they were written")?;
    expect(one.load(1)? == all[1..], "load(1) is not event 2")?;
    expect(other.load(2)?.is_empty(), "load(2) finds something")
}

fn a_paused_leader<L: EventLog>(old: &mut L, new: &mut L) -> Result<(), BoxError> {
    old.append(&record(1, "old", 1)?)?;
    new.append(&record(2, "new", 2)?)?;
    for sequence in [2, 3] {
        let late = old.append(&record(1, "old", sequence)?);
        expect(
            matches!(late, Err(AppendError::Deposed { epoch: 2 })),
            "a leader of epoch 1 was not refused behind epoch 2",
        )?;
    }
    expect(new.load(0)?.len() == 2, "a refused record is in the log")?;
    new.append(&record(2, "new", 3)?)?;
    Ok(())
}

fn reserve<L: EventLog>(
    pool: &mut SharedPool<L>,
    job: &str,
    now: Timestamp,
) -> Result<Vec<Vni>, BoxError> {
    let job = JobId::new(job)?;
    let vnis = pool.reserve(&job, &VniRequest::vnis(1), now)?;
    Ok(vnis.iter().collect())
}

/// Message that gets lost between a writer and its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    Request,
    Answer,
}

/// A log that reports an unknown outcome for every second append.
#[derive(Debug)]
struct Lossy<L> {
    log: L,
    lost: Lost,
    appends: u32,
}

impl<L: EventLog> EventLog for Lossy<L> {
    fn load(&mut self, after: u64) -> Result<Vec<Record>, LogError> {
        self.log.load(after)
    }

    fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        self.appends += 1;
        if self.appends.is_multiple_of(2) {
            if self.lost == Lost::Answer {
                self.log.append(record)?;
            }
            return Err(AppendError::Unknown("lost".into()));
        }
        self.log.append(record)
    }
}

fn a_lost_message<L: EventLog>(log: L, mut other: L, lost: Lost) -> Result<(), BoxError> {
    let log = Lossy { log, lost, appends: 0 };
    let mut pool = SharedPool::open(log, config()?, "one", 0, at(0))?;
    let mut vnis = Vec::new();
    for job in ["1", "2", "3", "4"] {
        vnis.extend(reserve(&mut pool, job, at(1))?);
    }
    vnis.dedup();
    expect(vnis.len() == 4, "a VNI went to two jobs after a lost message")?;
    // The configuration, and each job once.
    expect(
        other.load(0)?.len() == 5,
        "a change is missing or twice in the log after a lost message",
    )
}

fn a_clock_behind<L: EventLog>(old: L, new: L) -> Result<(), BoxError> {
    let small = PoolConfig::new("1024".parse()?).rest(Duration::from_secs(60));
    let mut old = SharedPool::open(old, small.clone(), "old", 1, at(1000))?;
    reserve(&mut old, "1", at(1000))?;
    let mut new = SharedPool::open(new, small, "new", 2, at(10))?;
    let (job, node) = (JobId::new("1")?, NodeName::new("n1")?);
    new.release(&job, std::slice::from_ref(&node), at(11))?;
    new.confirm(&job, &node, at(12))?;
    expect(
        reserve(&mut new, "2", at(1059)).is_err(),
        "a clock that is behind shortens the rest of a VNI",
    )?;
    expect(reserve(&mut new, "2", at(1060)).is_ok(), "a VNI that has rested is not free")
}

fn two_at_once<L: EventLog + Send>(one: L, other: L) -> Result<(), BoxError> {
    let run = |log: L, name: &'static str| {
        let mut pool = SharedPool::open(log, config()?, name, 0, at(0))?;
        let jobs = (0..JOBS).map(|job| reserve(&mut pool, &format!("{name}{job}"), at(1)));
        jobs.collect::<Result<Vec<_>, BoxError>>()
    };
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(move || run(other, "other"));
        (run(one, "one"), other.join())
    });
    let other = other.map_err(|_| "a writer panicked")??;
    let mut vnis: Vec<_> = one?.into_iter().chain(other).flatten().collect();
    vnis.sort_unstable();
    vnis.dedup();
    expect(vnis.len() == 2 * JOBS, "two writers at once gave a VNI to two jobs")
}

fn a_beginning<L: EventLog>(one: L, behind: L, mut late: L) -> Result<(), BoxError> {
    let mut one = SharedPool::open(one, config()?, "one", 0, at(0))?;
    let mut behind = SharedPool::open(behind, config()?, "behind", 0, at(0))?;
    let first = reserve(&mut one, "1", at(1))?;
    one.save(at(2))?;
    let saved = late.load(2)?;
    expect(
        matches!(&saved[..], [saved] if saved.is_beginning()),
        "a saved pool is not in the log",
    )?;
    for sequence in [1, 2, 3, 5] {
        expect(
            moved(&late.append(&record(0, "late", sequence)?)),
            "a log that begins with event 3 took another one than event 4",
        )?;
    }
    let second = reserve(&mut behind, "2", at(3))?;
    expect(first != second, "a writer behind the beginning gave a VNI to a second job")?;
    let late = SharedPool::open(late, config()?, "late", 0, at(4))?;
    expect(late.pool() == behind.pool(), "what a log begins with is not the pool that was saved")
}
