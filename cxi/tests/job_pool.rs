//! The VNI pool step by step: states, refusals in words, tenants, blocks, steps, ranges that change, recovery.

use std::time::Duration;

use cxi::Vni;
use cxi::job::pool::{
    Allotment, Phase, PoolConfig, PoolConfigError, PoolError, Request, Timestamp, VniPool,
};
use cxi::job::{IdSet, JobId, NodeName, StepId, TenantName};

fn ids(text: &str) -> IdSet {
    text.parse().unwrap()
}

fn pool(vnis: &str) -> VniPool {
    VniPool::new(PoolConfig::new(ids(vnis))).unwrap()
}

fn job(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

fn nodes<const N: usize>(names: [&str; N]) -> [NodeName; N] {
    names.map(|name| NodeName::new(name).unwrap())
}

fn seconds(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn reserve(pool: &mut VniPool, name: &str, request: &Request, at: Timestamp) -> String {
    pool.reserve(&job(name), request, at)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
        .vnis
        .to_string()
}

fn refusal(pool: &mut VniPool, name: &str, request: &Request, at: Timestamp) -> String {
    pool.reserve(&job(name), request, at)
        .expect_err("reserved")
        .to_string()
}

#[test]
fn hands_out_round_robin_and_never_the_default_vnis() {
    let mut pool = pool("0-12");
    let one = Request::vnis(1);
    let mut given = Vec::new();
    for name in ["a", "b", "c"] {
        given.push(reserve(&mut pool, name, &one, seconds(0)));
        pool.release(&job(name), &[], seconds(1)).unwrap();
        pool.confirm_all(&job(name), seconds(2)).unwrap();
    }
    assert_eq!(given, ["VNI 2", "VNI 3", "VNI 4"]);
    assert_eq!(
        reserve(&mut pool, "d", &Request::vnis(4), seconds(3)),
        "VNIs 5,6,7,8"
    );
    assert_eq!(
        reserve(&mut pool, "e", &Request::vnis(4), seconds(3)),
        "VNIs 9,11,12,2"
    );
    assert_eq!(
        reserve(&mut pool, "f", &Request::vnis(2), seconds(3)),
        "VNIs 3,4"
    );
    assert_eq!(pool.metrics(seconds(3)).free, 0);
}

#[test]
fn a_shortage_says_numbers() {
    let mut pool = pool("1024-1028");
    reserve(&mut pool, "ƒ123", &Request::vnis(3), seconds(0));
    let four = Request::vnis(4);
    assert_eq!(
        refusal(&mut pool, "ƒ124", &four, seconds(10)),
        "failed to reserve 4 VNIs: 2 available, 3 reserved by jobs"
    );
    pool.release(&job("ƒ123"), &nodes(["n1"]), seconds(10))
        .unwrap();
    assert_eq!(
        refusal(&mut pool, "ƒ124", &four, seconds(50)),
        "failed to reserve 4 VNIs: 2 available, 3 draining (oldest job ƒ123, 40 s)"
    );
    let [n1] = nodes(["n1"]);
    pool.confirm(&job("ƒ123"), &n1, seconds(50)).unwrap();
    assert_eq!(
        reserve(&mut pool, "ƒ124", &four, seconds(50)),
        "VNIs 1027,1028,1024,1025"
    );
}

#[test]
fn impossible_requests_are_refused_with_the_reason() {
    let mut pool = pool("1024-2047");
    let now = seconds(0);
    assert_eq!(
        refusal(&mut pool, "a", &Request::vnis(0), now),
        "a job can have 1 to 4 VNIs (one service lists no more), not 0"
    );
    assert_eq!(
        refusal(&mut pool, "a", &Request::vnis(5), now),
        "a job can have 1 to 4 VNIs (one service lists no more), not 5"
    );
    assert_eq!(
        refusal(&mut pool, "a", &Request::block(12), now),
        "a block of 12 VNIs is impossible: range services take powers of two"
    );
    let red = TenantName::new("red").unwrap();
    assert_eq!(
        refusal(&mut pool, "a", &Request::vnis(1).for_tenant(red), now),
        "no tenant red in the configuration of the pool (it has none)"
    );
    assert_eq!(pool.jobs().count(), 0);
}

#[test]
fn the_same_request_again_gets_the_same_and_logs_nothing() {
    let mut pool = pool("1024-2047");
    let first = pool
        .reserve(&job("a"), &Request::vnis(2), seconds(0))
        .unwrap();
    let again = pool
        .reserve(&job("a"), &Request::vnis(2), seconds(9))
        .unwrap();
    assert!(first.event.is_some());
    assert_eq!((again.vnis, again.event), (first.vnis, None));
    assert_eq!(
        refusal(&mut pool, "a", &Request::vnis(3), seconds(9)),
        "job a has VNIs 1024,1025, which is not 3 VNIs: release it first"
    );
    let [n1] = nodes(["n1"]);
    assert!(
        pool.release(&job("a"), std::slice::from_ref(&n1), seconds(10))
            .unwrap()
            .is_some()
    );
    assert_eq!(pool.release(&job("a"), &[n1], seconds(11)).unwrap(), None);
    assert_eq!(
        refusal(&mut pool, "a", &Request::vnis(2), seconds(12)),
        "job a was released and is still draining VNIs 1024,1025 (1 node has not confirmed): \
         confirm that first, or give the new run an id of its own"
    );
}

#[test]
fn every_node_must_confirm() {
    let mut pool = pool("1024");
    let all = nodes(["n1", "n2", "n3"]);
    reserve(&mut pool, "a", &Request::vnis(1), seconds(0));
    assert_eq!(
        pool.confirm(&job("a"), &all[0], seconds(1)).unwrap_err(),
        PoolError::NotReleased { job: job("a") }
    );
    pool.release(&job("a"), &all, seconds(1)).unwrap();
    for node in &all[..2] {
        pool.confirm(&job("a"), node, seconds(2)).unwrap();
        assert!(
            pool.reserve(&job("b"), &Request::vnis(1), seconds(2))
                .is_err()
        );
    }
    assert_eq!(
        pool.confirm(&job("a"), &all[0], seconds(2))
            .unwrap_err()
            .to_string(),
        "job a does not wait for node n1 (1 node has not confirmed)"
    );
    pool.confirm(&job("a"), &all[2], seconds(3)).unwrap();
    assert_eq!(
        pool.confirm(&job("a"), &all[2], seconds(3))
            .unwrap_err()
            .to_string(),
        "job a has no VNIs in the pool"
    );
    assert_eq!(
        reserve(&mut pool, "b", &Request::vnis(1), seconds(3)),
        "VNI 1024"
    );
}

#[test]
fn without_known_nodes_only_a_word_for_all_frees() {
    let mut pool = pool("1024-1025");
    let [n1] = nodes(["n1"]);
    for name in ["a", "b"] {
        reserve(&mut pool, name, &Request::vnis(1), seconds(0));
        pool.release(&job(name), &[], seconds(1)).unwrap();
    }
    assert_eq!(
        pool.confirm(&job("a"), &n1, seconds(1))
            .unwrap_err()
            .to_string(),
        "job a does not wait for node n1 (its nodes are not known: confirm all at once)"
    );
    pool.confirm_all(&job("a"), seconds(2)).unwrap();
    pool.operator_release(&job("b"), seconds(2)).unwrap();
    assert_eq!(pool.metrics(seconds(2)).free, 2);
}

#[test]
fn an_operator_cannot_free_what_a_living_job_has() {
    let mut pool = pool("1024-1025");
    reserve(&mut pool, "a", &Request::vnis(1), seconds(0));
    let before = pool.clone();
    assert!(pool.operator_release(&job("a"), seconds(1)).is_err());
    assert!(pool.confirm_all(&job("a"), seconds(1)).is_err());
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
    reserve(&mut pool, "a", &Request::vnis(2), seconds(0));
    pool.release(&job("a"), &[], seconds(10)).unwrap();
    pool.confirm_all(&job("a"), seconds(20)).unwrap();
    assert_eq!(
        refusal(&mut pool, "b", &Request::vnis(1), seconds(49)),
        "failed to reserve 1 VNI: 0 available, 2 resting"
    );
    assert_eq!(pool.metrics(seconds(49)).resting, 2);
    assert_eq!(pool.metrics(seconds(50)).free, 2);
    assert_eq!(
        reserve(&mut pool, "b", &Request::vnis(1), seconds(50)),
        "VNI 1024"
    );
}

#[test]
fn steps_share_the_vnis_of_their_job() {
    let mut pool = pool("1024-1030");
    let (one, a) = (Request::vnis(1), job("a"));
    let step = |name: &str| StepId::new(name).unwrap();
    let [n1, n2] = nodes(["n1", "n2"]);
    let first = pool.share(&a, &step("0"), &one, seconds(0)).unwrap();
    let second = pool.share(&a, &step("1"), &one, seconds(1)).unwrap();
    assert_eq!(first.vnis, second.vnis);
    assert!(second.event.is_some());
    assert_eq!(
        pool.share(&a, &step("1"), &one, seconds(1)).unwrap().event,
        None
    );

    pool.leave(&a, &step("0"), std::slice::from_ref(&n1), seconds(2))
        .unwrap();
    assert!(matches!(
        pool.job(&a).unwrap().phase,
        Phase::Reserved { .. }
    ));
    assert_eq!(
        pool.leave(&a, &step("0"), &[], seconds(2))
            .unwrap_err()
            .to_string(),
        "step 0 does not share the VNIs of job a"
    );
    pool.leave(&a, &step("1"), std::slice::from_ref(&n2), seconds(3))
        .unwrap();
    // The nodes of both steps have had services with the VNI.
    pool.confirm(&a, &n2, seconds(4)).unwrap();
    assert_eq!(pool.metrics(seconds(4)).draining, 1);
    pool.confirm(&a, &n1, seconds(4)).unwrap();
    assert_eq!(pool.metrics(seconds(4)).draining, 0);
}

#[test]
fn vnis_of_the_job_itself_outlast_its_steps() {
    let mut pool = pool("1024-1030");
    let (one, a) = (Request::vnis(1), job("a"));
    let step = StepId::new("0").unwrap();
    pool.share(&a, &step, &one, seconds(0))
        .unwrap()
        .event
        .unwrap();
    pool.reserve(&a, &one, seconds(0)).unwrap().event.unwrap();
    pool.leave(&a, &step, &[], seconds(1)).unwrap();
    assert_eq!(pool.metrics(seconds(1)).reserved, 1);
    pool.release(&a, &[], seconds(2)).unwrap();
    assert_eq!(pool.metrics(seconds(2)).draining, 1);
}

#[test]
fn blocks_are_aligned_and_step_over_what_is_taken() {
    let mut pool = pool("1000-1100");
    let block = |size| Request::block(size);
    assert_eq!(
        reserve(&mut pool, "a", &block(16), seconds(0)),
        "VNIs 1008-1023"
    );
    assert_eq!(
        reserve(&mut pool, "b", &Request::vnis(1), seconds(0)),
        "VNI 1024"
    );
    assert_eq!(
        reserve(&mut pool, "c", &block(16), seconds(0)),
        "VNIs 1040-1055"
    );
    assert_eq!(
        reserve(&mut pool, "d", &block(32), seconds(0)),
        "VNIs 1056-1087"
    );
    assert_eq!(
        reserve(&mut pool, "e", &block(8), seconds(0)),
        "VNIs 1088-1095"
    );
    assert_eq!(
        reserve(&mut pool, "f", &block(8), seconds(0)),
        "VNIs 1000-1007"
    );
    assert_eq!(
        refusal(&mut pool, "g", &block(16), seconds(0)),
        "failed to reserve a block of 16 VNIs: 20 available (no such block among them), 81 reserved by jobs"
    );
    let held = pool.job(&job("d")).unwrap();
    assert_eq!(held.vnis.len(), 32);
    let Allotment::Block(range) = held.vnis else {
        panic!("a block is a range");
    };
    assert_eq!((range.first().get(), range.last().get()), (1056, 1087));
}

#[test]
fn large_blocks_span_words() {
    let mut pool = pool("1-65535");
    assert_eq!(
        reserve(&mut pool, "a", &Request::block(32_768), seconds(0)),
        "VNIs 32768-65535"
    );
    assert_eq!(
        reserve(&mut pool, "b", &Request::block(256), seconds(0)),
        "VNIs 256-511"
    );
    assert_eq!(
        reserve(&mut pool, "c", &Request::block(64), seconds(0)),
        "VNIs 512-575"
    );
    assert_eq!(
        refusal(&mut pool, "d", &Request::block(32_768), seconds(0)),
        "failed to reserve a block of 32768 VNIs: 32445 available (no such block among them), 33088 reserved by jobs"
    );
}

#[test]
fn tenants_have_parts_of_their_own() {
    let tenant = |name: &str| TenantName::new(name).unwrap();
    let base = PoolConfig::new(ids("1024-1039"));
    let config = base
        .clone()
        .tenant(tenant("blue"), ids("1024-1025"))
        .tenant(tenant("red"), ids("1026-1031"));
    let mut pool = VniPool::new(config).unwrap();
    let blue = Request::vnis(1).for_tenant(tenant("blue"));
    assert_eq!(reserve(&mut pool, "a", &blue, seconds(0)), "VNI 1024");
    assert_eq!(
        reserve(&mut pool, "b", &Request::vnis(1), seconds(0)),
        "VNI 1032"
    );
    assert_eq!(reserve(&mut pool, "c", &blue, seconds(0)), "VNI 1025");
    assert_eq!(
        refusal(&mut pool, "d", &blue, seconds(0)),
        "failed to reserve 1 VNI for tenant blue: 0 available, 2 reserved by jobs"
    );
    assert_eq!(
        refusal(&mut pool, "a", &Request::vnis(1), seconds(0)),
        "job a has VNI 1024 of tenant blue, which is not 1 VNI: release it first"
    );
    let red = tenant("red");
    assert_eq!(pool.part_metrics(Some(&red), seconds(0)).unwrap().free, 6);
    assert_eq!(pool.part_metrics(None, seconds(0)).unwrap().total, 8);
    assert_eq!(pool.part_metrics(Some(&tenant("green")), seconds(0)), None);

    let overlap = base
        .clone()
        .tenant(tenant("blue"), ids("1024-1030"))
        .tenant(tenant("red"), ids("1028-1039"));
    assert_eq!(
        VniPool::new(overlap).unwrap_err().to_string(),
        "tenants blue and red must not share VNIs: both have 1028-1030"
    );
    let outside = base.tenant(tenant("blue"), ids("1000-1030"));
    assert_eq!(
        VniPool::new(outside).unwrap_err().to_string(),
        "the part of tenant blue has VNIs that the pool does not have: 1000-1023"
    );
    assert_eq!(
        VniPool::new(PoolConfig::new(ids("0-1,10")))
            .unwrap_err()
            .to_string(),
        "no VNI to hand out: the set is \"0-1,10\", of which \"0-1,10\" are excluded"
    );
}

#[test]
fn a_new_range_keeps_what_is_out_and_does_not_hand_it_out_again() {
    let mut pool = pool("1024-1027");
    reserve(&mut pool, "a", &Request::vnis(2), seconds(0));
    reserve(&mut pool, "b", &Request::vnis(1), seconds(0));
    pool.release(&job("b"), &[], seconds(1)).unwrap();
    pool.reconfigure(PoolConfig::new(ids("1025-1026,2000")), seconds(2))
        .unwrap();
    let metrics = pool.metrics(seconds(2));
    assert_eq!((metrics.total, metrics.free, metrics.reserved), (3, 1, 1));
    assert_eq!((metrics.draining, metrics.outside), (1, 1));

    pool.release(&job("a"), &[], seconds(3)).unwrap();
    pool.confirm_all(&job("a"), seconds(3)).unwrap();
    pool.confirm_all(&job("b"), seconds(3)).unwrap();
    assert_eq!(
        reserve(&mut pool, "c", &Request::vnis(3), seconds(4)),
        "VNIs 2000,1025,1026"
    );
    let metrics = pool.metrics(seconds(4));
    assert_eq!(
        (metrics.total, metrics.reserved, metrics.outside),
        (3, 3, 0)
    );

    let before = pool.clone();
    let empty = pool.reconfigure(PoolConfig::new(IdSet::new()), seconds(5));
    assert!(matches!(
        empty,
        Err(PoolError::Config(PoolConfigError::Empty { .. }))
    ));
    assert_eq!(pool, before);
    let same = before.config().clone();
    assert_eq!(pool.reconfigure(same, seconds(5)).unwrap(), None);
}

#[test]
fn what_a_node_still_shows_is_not_handed_out() {
    let mut pool = pool("1024-1027");
    let [n1, n2] = nodes(["n1", "n2"]);
    reserve(&mut pool, "a", &Request::vnis(1), seconds(0));
    reserve(&mut pool, "b", &Request::vnis(1), seconds(0));
    pool.release(&job("a"), std::slice::from_ref(&n1), seconds(1))
        .unwrap();
    pool.confirm(&job("a"), &n1, seconds(2)).unwrap();

    let seen = pool.reconcile(&n1, &ids("10,1024-1025,3000"), seconds(3));
    assert_eq!(
        (seen.strays.to_string(), seen.outside.to_string()),
        ("1024".into(), "3000".into())
    );
    assert!(seen.event.is_some());
    assert_eq!(
        pool.reconcile(&n2, &ids("1024"), seconds(4)).strays.len(),
        0
    );
    assert_eq!(
        refusal(&mut pool, "c", &Request::vnis(4), seconds(23)),
        "failed to reserve 4 VNIs: 2 available, 1 draining (oldest VNI 1024 of no known job, 20 s)"
    );
    assert_eq!(
        pool.reconcile(&n1, &ids("1024-1025"), seconds(24)).event,
        None
    );
    let stray = pool.strays().next().unwrap();
    assert_eq!((stray.0.get(), stray.1.nodes.len()), (1024, 2));

    assert!(
        pool.reconcile(&n1, &ids("1025"), seconds(25))
            .event
            .is_some()
    );
    assert_eq!(pool.strays().count(), 1);
    assert!(pool.reconcile(&n2, &ids(""), seconds(26)).event.is_some());
    assert_eq!(pool.strays().count(), 0);
    assert_eq!(pool.metrics(seconds(26)).free, 3);
}

#[test]
fn a_released_job_that_is_seen_again_waits_for_that_node() {
    let mut pool = pool("1024-1027");
    let [n1, n2, n3] = nodes(["n1", "n2", "n3"]);
    let a = job("a");
    reserve(&mut pool, "a", &Request::vnis(2), seconds(0));
    pool.release(&a, &[n1.clone(), n2.clone()], seconds(1))
        .unwrap();
    pool.confirm(&a, &n1, seconds(2)).unwrap();
    let seen = pool.reconcile(&n3, &ids("1025"), seconds(3));
    assert_eq!(seen.waiting_again, std::slice::from_ref(&a));
    let seen = pool.reconcile(&n2, &ids(""), seconds(3));
    assert_eq!((seen.event, seen.unseen), (None, vec![a.clone()]));
    pool.confirm(&a, &n2, seconds(4)).unwrap();
    assert_eq!(pool.metrics(seconds(4)).draining, 2);
    pool.confirm(&a, &n3, seconds(5)).unwrap();
    assert_eq!(pool.metrics(seconds(5)).draining, 0);
}

#[test]
fn names_are_checked() {
    for good in [
        "ƒ3WqKLhmP",
        "4711.0",
        "cluster-4711_3",
        "4711+1",
        "ƒab/ƒcd",
        "4711#2",
    ] {
        assert_eq!(JobId::new(good).unwrap().to_string(), good);
    }
    assert_eq!(
        JobId::new("47'11").unwrap_err().to_string(),
        "job id \"47'11\" has '\\'' at byte 2: allowed are letters and digits of ASCII, 'ƒ' and . _ - + : / # @"
    );
    assert_eq!(JobId::new("").unwrap_err().to_string(), "job id is empty");
    assert_eq!(
        NodeName::new(&"n".repeat(256)).unwrap_err().to_string(),
        "node name has 256 bytes, the most is 255"
    );
}
