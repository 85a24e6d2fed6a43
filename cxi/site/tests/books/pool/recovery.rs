//! A VNI pool from its log or a snapshot: what is refused, and why.

use cxi::Vni;
use cxi_site::NodeName;
use cxi_site::pool::{Allotment, Change, Event, PoolConfig, VniPool, VniRequest};

use super::support::{gets, ids, job, pool, reserve, seconds};
use crate::says;

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

/// The log of these changes.
fn log(changes: impl IntoIterator<Item = Change>) -> Vec<Event> {
    let numbered = (1..).zip(changes);
    numbered.map(|(sequence, change)| Event::new(sequence, seconds(sequence), change)).collect()
}

fn reserved(name: &str, vnis: &[u16]) -> Change {
    let list = vnis.iter().map(|vni| Vni::new(*vni).unwrap()).collect();
    Change::Reserved { job: job(name), tenant: None, vnis: Allotment::List(list) }
}

#[test]
fn a_log_that_contradicts_itself_is_refused_with_the_event_and_the_reason() {
    let released = Change::Released { job: job("a"), nodes: Vec::new() };
    for (changes, message) in [
        (
            vec![reserved("a", &[1024]), reserved("b", &[1024])],
            "event 1 (reserve VNI 1024 for job b): VNI 1024 is reserved by job a",
        ),
        (
            vec![reserved("a", &[1024]), released.clone(), reserved("b", &[1025, 1024])],
            "event 2 (reserve VNIs 1025,1024 for job b): VNI 1024 is draining (job a) and not confirmed on every node",
        ),
        (
            vec![released.clone()],
            "event 0 (release job a on 0 nodes): job a has no VNIs in the pool",
        ),
        (
            vec![reserved("a", &[1024]), released.clone(), released],
            "event 2 (release job a on 0 nodes): job a is released: its VNIs are draining",
        ),
        (
            vec![reserved("a", &[1024, 1024])],
            "event 0 (reserve VNIs 1024,1024 for job a): job a cannot have VNIs 1024,1024: 1 to 4 different VNIs or one block",
        ),
        (
            vec![reserved("a", &[1024]), reserved("a", &[1025])],
            "event 1 (reserve VNI 1025 for job a): job a has VNI 1024",
        ),
    ] {
        let config = PoolConfig::new(ids("1024-65535"));
        says(VniPool::replay(config, &log(changes)), message);
    }
}

#[test]
fn a_log_with_a_gap_or_a_repetition_is_refused() {
    let whole = log([reserved("a", &[1024]), reserved("b", &[1025]), reserved("c", &[1026])]);
    let config = PoolConfig::new(ids("1024-65535"));
    let replay = |log: &[Event]| VniPool::replay(config.clone(), log);
    let good = replay(&whole).unwrap();
    assert_eq!(good.sequence(), 3);
    for (order, found) in [
        (&[0, 2][..], "expected event number 2, found 3"),
        (&[0, 1, 1, 2], "expected event number 3, found 2"),
        (&[0, 0], "expected event number 2, found 1"),
    ] {
        let changed: Vec<Event> = order.iter().map(|index| whole[*index].clone()).collect();
        let error = replay(&changed).unwrap_err().to_string();
        assert!(error.ends_with(found), "{error}");
    }
    let mut unnumbered = whole[0].clone();
    unnumbered.sequence = 0;
    assert!(replay(&[unnumbered]).is_err());

    // A pool that was kept takes over what it does not have yet, and only that.
    for kept in 0..=whole.len() {
        let mut pool = replay(&whole[..kept]).unwrap();
        pool = VniPool::restore(pool.snapshot()).unwrap();
        assert_eq!(pool.catch_up(&whole), Ok(whole.len() - kept));
        assert_eq!(pool, good);
        assert_eq!(pool.catch_up(&whole), Ok(0));
    }
    let mut behind = replay(&whole[..1]).unwrap();
    assert!(behind.catch_up(&whole[2..]).is_err());
}

#[test]
fn a_log_may_be_older_than_the_range() {
    let log = log([reserved("a", &[500]), reserved("b", &[1024])]);
    let mut pool = VniPool::replay(PoolConfig::new(ids("1024-1025")), &log).unwrap();
    assert_eq!(pool.metrics(seconds(1)).outside, 1);
    let _ = pool.release(&job("a"), &[], seconds(1)).unwrap();
    let _ = pool.confirm_all(&[job("a")], seconds(2)).unwrap();
    gets(&mut pool, "c", &VniRequest::vnis(1), 3, "VNI 1025");
    assert!(pool.reserve(&job("d"), &VniRequest::vnis(1), seconds(3)).is_err());
}

#[test]
fn vnis_outside_the_range_belong_to_no_job() {
    let seen = Change::Observed { node: node("n1"), vnis: ids("500,1024") };
    let log = log([seen]);
    let pool = VniPool::replay(PoolConfig::new(ids("1024-1025")), &log).unwrap();
    let metrics = pool.metrics(seconds(1));
    assert_eq!((metrics.free, metrics.draining, metrics.outside), (1, 1, 0));
}

#[test]
fn each_job_that_waits_for_a_node_is_named_once() {
    let mut pool = pool("1024-1030");
    for name in ["a", "b"] {
        reserve(&mut pool, name, &VniRequest::vnis(2), seconds(0));
    }
    let _ = pool.release(&job("a"), &[node("n1")], seconds(1)).unwrap();
    // Job b lives: nothing is expected of it. Job a has a service on another node still.
    let seen = pool.reconcile(&node("n2"), &ids("1024,1025,1026"), seconds(2));
    assert_eq!(seen.result.waiting_again, [job("a")]);
    assert!(seen.event.is_some() && seen.result.unseen.is_empty());
    let again = pool.reconcile(&node("n2"), &ids("1024,1025"), seconds(3));
    assert!(again.event.is_none() && again.result.waiting_again.is_empty());
    // One of its VNIs is enough to be seen; a node that it does not wait for proves nothing.
    for (name, shown, unseen) in
        [("n1", "1025", vec![]), ("n1", "1026", vec![job("a")]), ("n3", "", vec![])]
    {
        let result = pool.reconcile(&node(name), &ids(shown), seconds(4)).result;
        assert_eq!(result.unseen, unseen, "{name} shows {shown:?}");
    }
}

#[test]
fn broken_snapshots_are_refused() {
    let mut pool = pool("1024-1030");
    reserve(&mut pool, "a", &VniRequest::vnis(1), seconds(0));
    let good = pool.snapshot();

    let mut newer = good.clone();
    newer.version = 2;
    let why = "snapshot version 2 is unknown, this library reads version 1";
    says(VniPool::restore(newer), why);
    let mut twice = good.clone();
    let same = twice.jobs[&job("a")].clone();
    twice.jobs.insert(job("b"), same);
    let why = "snapshot: VNI 1024 occurs in it twice: a VNI is in one job, or stray, or resting";
    says(VniPool::restore(twice), why);
    let mut empty = good.clone();
    empty.jobs.get_mut(&job("a")).unwrap().vnis = Allotment::List(Vec::new());
    let refused = VniPool::restore(empty).unwrap_err().to_string();
    assert!(refused.starts_with("snapshot: job a cannot have "), "{refused}");
    let mut resting = good.clone();
    resting.resting.push((Vni::new(1024).unwrap(), seconds(1)));
    assert!(VniPool::restore(resting).is_err());
    assert_eq!(VniPool::restore(good).unwrap(), pool);
}
