//! From a job to its next: release, confirmation, ranges that change, what nodes show.

use std::time::Duration;

use cxi::Vni;
use cxi_site::IdSet;
use cxi_site::pool::{Changed, PoolConfig, PoolConfigError, PoolError, VniPool, VniRequest};

use super::support::{gets, ids, job, nodes, pool, refused, reserve, seconds};
use crate::says;

#[test]
fn every_node_must_confirm() {
    let mut pool = pool("1024");
    let all = nodes(["n1", "n2", "n3"]);
    reserve(&mut pool, "a", &VniRequest::vnis(1), seconds(0));
    assert_eq!(
        pool.confirm(&job("a"), &all[0], seconds(1)).unwrap_err(),
        PoolError::NotReleased { job: job("a") }
    );
    let _ = pool.release(&job("a"), &all, seconds(1)).unwrap();
    for node in &all[..2] {
        let _ = pool.confirm(&job("a"), node, seconds(2)).unwrap();
        let reserved = pool.reserve(&job("b"), &VniRequest::vnis(1), seconds(2));
        assert!(reserved.is_err());
    }
    says(
        pool.confirm(&job("a"), &all[0], seconds(2)),
        "job a does not wait for node n1 (1 node has not confirmed)",
    );
    let _ = pool.confirm(&job("a"), &all[2], seconds(3)).unwrap();
    let again = pool.confirm(&job("a"), &all[2], seconds(3));
    says(again, "job a has no VNIs in the pool");
    gets(&mut pool, "b", &VniRequest::vnis(1), 3, "VNI 1024");
}

#[test]
fn without_known_nodes_only_a_word_for_all_frees() {
    let mut pool = pool("1024-1025");
    let [n1] = nodes(["n1"]);
    for name in ["a", "b"] {
        reserve(&mut pool, name, &VniRequest::vnis(1), seconds(0));
        let _ = pool.release(&job(name), &[], seconds(1)).unwrap();
    }
    says(
        pool.confirm(&job("a"), &n1, seconds(1)),
        "job a does not wait for node n1 (its nodes are not known: confirm all at once)",
    );
    let _ = pool.confirm_all(&[job("a")], seconds(2)).unwrap();
    assert_eq!(pool.metrics(seconds(2)).free, 1);
}

#[test]
fn a_cancelled_reservation_is_free_at_once() {
    let config = PoolConfig::new(ids("1024-1025")).rest(Duration::from_secs(30));
    let mut pool = VniPool::new(config.clone()).unwrap();
    let mut log = Vec::new();
    for name in ["a", "b"] {
        let reserved = pool.reserve(&job(name), &VniRequest::vnis(1), seconds(0));
        log.extend(reserved.unwrap().event);
    }
    log.extend(pool.cancel(&job("a"), seconds(0)).unwrap().event);
    assert_eq!((pool.metrics(seconds(0)).free, pool.job(&job("a"))), (1, None));
    assert_eq!(VniPool::replay(config, &log).unwrap(), pool);
    gets(&mut pool, "c", &VniRequest::vnis(1), 0, "VNI 1024");

    let _ = pool.release(&job("c"), &[], seconds(2)).unwrap();
    let before = pool.clone();
    for (name, refusal) in
        [("a", "job a has no VNIs in the pool"), ("c", "job c is released: its VNIs are draining")]
    {
        says(pool.cancel(&job(name), seconds(3)), refusal);
    }
    assert_eq!(pool, before);
}

#[test]
fn an_operator_cannot_free_what_a_living_job_has() {
    let mut pool = pool("1024-1025");
    reserve(&mut pool, "a", &VniRequest::vnis(1), seconds(0));
    let before = pool.clone();
    assert!(pool.confirm_all(&[job("a")], seconds(1)).is_err());
    let vni = Vni::new(1024).unwrap();
    assert_eq!(
        pool.operator_release_stray(vni, seconds(1)).unwrap_err(),
        PoolError::NotStray { vni }
    );
    assert_eq!(pool, before);
}

#[test]
fn confirmed_vnis_rest() {
    let config = PoolConfig::new(ids("1024-1025")).rest(Duration::from_secs(30));
    let mut pool = VniPool::new(config).unwrap();
    reserve(&mut pool, "a", &VniRequest::vnis(2), seconds(0));
    let _ = pool.release(&job("a"), &[], seconds(10)).unwrap();
    let _ = pool.confirm_all(&[job("a")], seconds(20)).unwrap();
    let why = "failed to reserve 1 VNI: 0 available, 2 resting";
    refused(&mut pool, "b", &VniRequest::vnis(1), 49, why);
    assert_eq!(pool.metrics(seconds(49)).resting, 2);
    assert_eq!(pool.metrics(seconds(50)).free, 2);
    gets(&mut pool, "b", &VniRequest::vnis(1), 50, "VNI 1024");
}

#[test]
fn a_new_range_keeps_what_is_out_and_does_not_hand_it_out_again() {
    let mut pool = pool("1024-1027");
    reserve(&mut pool, "a", &VniRequest::vnis(2), seconds(0));
    reserve(&mut pool, "b", &VniRequest::vnis(1), seconds(0));
    let _ = pool.release(&job("b"), &[], seconds(1)).unwrap();
    let changed = PoolConfig::new(ids("1025-1026,2000"));
    let _ = pool.reconfigure(changed, seconds(2)).unwrap();
    let metrics = pool.metrics(seconds(2));
    assert_eq!((metrics.total, metrics.free, metrics.reserved), (3, 1, 1));
    assert_eq!((metrics.draining, metrics.outside), (1, 1));

    let _ = pool.release(&job("a"), &[], seconds(3)).unwrap();
    let _ = pool.confirm_all(&[job("a")], seconds(3)).unwrap();
    let _ = pool.confirm_all(&[job("b")], seconds(3)).unwrap();
    let three = VniRequest::vnis(3);
    gets(&mut pool, "c", &three, 4, "VNIs 2000,1025,1026");
    let metrics = pool.metrics(seconds(4));
    assert_eq!((metrics.total, metrics.reserved, metrics.outside), (3, 3, 0));

    let before = pool.clone();
    let empty = pool.reconfigure(PoolConfig::new(IdSet::new()), seconds(5));
    assert!(matches!(empty, Err(PoolError::Config(PoolConfigError::Empty { .. }))));
    assert_eq!(pool, before);
    let same = pool.reconfigure(before.config().clone(), seconds(5));
    assert_eq!(same.unwrap(), Changed::nothing());
}

#[test]
fn what_a_node_still_shows_is_not_handed_out() {
    let mut pool = pool("1024-1027");
    let [n1, n2] = nodes(["n1", "n2"]);
    reserve(&mut pool, "a", &VniRequest::vnis(1), seconds(0));
    reserve(&mut pool, "b", &VniRequest::vnis(1), seconds(0));
    let _ = pool.release(&job("a"), std::slice::from_ref(&n1), seconds(1)).unwrap();
    let _ = pool.confirm(&job("a"), &n1, seconds(2)).unwrap();

    let seen = pool.reconcile(&n1, &ids("10,1024-1025,3000"), seconds(3));
    let (strays, outside) = (seen.result.strays, seen.result.outside);
    assert_eq!((strays, outside), (ids("1024"), ids("3000")));
    assert!(seen.event.is_some());
    let seen = pool.reconcile(&n2, &ids("1024"), seconds(4));
    assert_eq!(seen.result.strays.len(), 0);
    let why = "failed to reserve 4 VNIs: 2 available, \
               1 draining (oldest VNI 1024 of no known job, 20 s)";
    refused(&mut pool, "c", &VniRequest::vnis(4), 23, why);
    let seen = pool.reconcile(&n1, &ids("1024-1025"), seconds(24));
    assert_eq!(seen.event, None);
    let stray = pool.strays().next().unwrap();
    assert_eq!((stray.0.get(), stray.1.nodes.len()), (1024, 2));

    for (node, shown, at, strays) in [(&n1, "1025", 25, 1), (&n2, "", 26, 0)] {
        let seen = pool.reconcile(node, &ids(shown), seconds(at));
        assert!(seen.event.is_some(), "{node} shows {shown:?}");
        assert_eq!(pool.strays().count(), strays, "{node} shows {shown:?}");
    }
    assert_eq!(pool.metrics(seconds(26)).free, 3);
}

#[test]
fn a_released_job_that_is_seen_again_waits_for_that_node() {
    let mut pool = pool("1024-1027");
    let [n1, n2, n3] = nodes(["n1", "n2", "n3"]);
    let a = job("a");
    reserve(&mut pool, "a", &VniRequest::vnis(2), seconds(0));
    let _ = pool.release(&a, &[n1.clone(), n2.clone()], seconds(1)).unwrap();
    let _ = pool.confirm(&a, &n1, seconds(2)).unwrap();
    let seen = pool.reconcile(&n3, &ids("1025"), seconds(3));
    assert_eq!(seen.result.waiting_again, std::slice::from_ref(&a));
    let seen = pool.reconcile(&n2, &ids(""), seconds(3));
    assert_eq!((seen.event, seen.result.unseen), (None, vec![a.clone()]));
    let _ = pool.confirm(&a, &n2, seconds(4)).unwrap();
    assert_eq!(pool.metrics(seconds(4)).draining, 2);
    let _ = pool.confirm(&a, &n3, seconds(5)).unwrap();
    assert_eq!(pool.metrics(seconds(5)).draining, 0);
}
