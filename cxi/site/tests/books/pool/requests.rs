//! Allotments, and refusals in words: blocks, tenants, names.

use cxi_site::pool::{Allotment, Changed, PoolConfig, VniPool, VniRequest};
use cxi_site::{JobId, NodeName, TenantName};

use super::support::{gets, ids, job, nodes, pool, refused, reserve, seconds};
use crate::says;

#[test]
fn hands_out_round_robin_and_never_the_default_vnis() {
    let mut pool = pool("0-12");
    let one = VniRequest::vnis(1);
    let mut given = Vec::new();
    for name in ["a", "b", "c"] {
        given.push(reserve(&mut pool, name, &one, seconds(0)));
        let _ = pool.release(&job(name), &[], seconds(1)).unwrap();
        let _ = pool.confirm_all(&[job(name)], seconds(2)).unwrap();
    }
    assert_eq!(given, ["VNI 2", "VNI 3", "VNI 4"]);
    gets(&mut pool, "d", &VniRequest::vnis(4), 3, "VNIs 5,6,7,8");
    gets(&mut pool, "e", &VniRequest::vnis(4), 3, "VNIs 9,11,12,2");
    gets(&mut pool, "f", &VniRequest::vnis(2), 3, "VNIs 3,4");
    assert_eq!(pool.metrics(seconds(3)).free, 0);
}

#[test]
fn a_shortage_says_numbers() {
    let mut pool = pool("1024-1028");
    reserve(&mut pool, "ƒ123", &VniRequest::vnis(3), seconds(0));
    let (four, first, n1) = (VniRequest::vnis(4), job("ƒ123"), nodes(["n1"]));
    let why = "failed to reserve 4 VNIs: 2 available, 3 reserved by jobs";
    refused(&mut pool, "ƒ124", &four, 10, why);
    let _ = pool.release(&first, &n1, seconds(10)).unwrap();
    let why = "failed to reserve 4 VNIs: 2 available, 3 draining (oldest job ƒ123, 40 s)";
    refused(&mut pool, "ƒ124", &four, 50, why);
    let _ = pool.confirm(&first, &n1[0], seconds(50)).unwrap();
    gets(&mut pool, "ƒ124", &four, 50, "VNIs 1027,1028,1024,1025");
}

#[test]
fn impossible_requests_are_refused_with_the_reason() {
    let mut pool = pool("1024-2047");
    let red = TenantName::new("red").unwrap();
    for (request, why) in [
        (VniRequest::vnis(0), "a job can have 1 to 4 VNIs (one service lists no more), not 0"),
        (VniRequest::vnis(5), "a job can have 1 to 4 VNIs (one service lists no more), not 5"),
        (VniRequest::block(12), "invalid block of 12 VNIs: expected a power of two"),
        (
            VniRequest::vnis(1).for_tenant(red),
            "no tenant red in the configuration of the pool (it has none)",
        ),
    ] {
        refused(&mut pool, "a", &request, 0, why);
    }
    assert_eq!(pool.jobs().count(), 0);
}

#[test]
fn the_same_request_again_gets_the_same_and_logs_nothing() {
    let mut pool = pool("1024-2047");
    let (a, two, n1) = (job("a"), VniRequest::vnis(2), nodes(["n1"]));
    let first = pool.reserve(&a, &two, seconds(0)).unwrap();
    let again = pool.reserve(&a, &two, seconds(9)).unwrap();
    assert!(first.event.is_some());
    assert_eq!((again.result, again.event), (first.result, None));
    let why = "job a has VNIs 1024,1025, which is not 3 VNIs: release it first";
    refused(&mut pool, "a", &VniRequest::vnis(3), 9, why);
    let released = pool.release(&a, &n1, seconds(10)).unwrap();
    assert!(released.event.is_some());
    let again = pool.release(&a, &n1, seconds(11)).unwrap();
    assert_eq!(again, Changed::nothing());
    let why = "job a was released and is still draining VNIs 1024,1025 (1 node has not confirmed): \
               confirm that first, or give the new run a different ID";
    refused(&mut pool, "a", &two, 12, why);
}

#[test]
fn blocks_are_aligned_and_step_over_what_is_taken() {
    let mut pool = pool("1000-1100");
    let block = |size| VniRequest::block(size);
    gets(&mut pool, "a", &block(16), 0, "VNIs 1008-1023");
    gets(&mut pool, "b", &VniRequest::vnis(1), 0, "VNI 1024");
    gets(&mut pool, "c", &block(16), 0, "VNIs 1040-1055");
    gets(&mut pool, "d", &block(32), 0, "VNIs 1056-1087");
    gets(&mut pool, "e", &block(8), 0, "VNIs 1088-1095");
    gets(&mut pool, "f", &block(8), 0, "VNIs 1000-1007");
    let why = "failed to reserve a block of 16 VNIs: \
               20 available (no such block among them), 81 reserved by jobs";
    refused(&mut pool, "g", &block(16), 0, why);
    let held = pool.job(&job("d")).unwrap();
    assert_eq!(held.vnis.len(), 32);
    let Allotment::Block(range) = held.vnis else { panic!("a block is a range") };
    assert_eq!((range.first().get(), range.last().get()), (1056, 1087));
}

#[test]
fn large_blocks_span_words() {
    let mut pool = pool("1-65535");
    let half = VniRequest::block(32_768);
    gets(&mut pool, "a", &half, 0, "VNIs 32768-65535");
    gets(&mut pool, "b", &VniRequest::block(256), 0, "VNIs 256-511");
    gets(&mut pool, "c", &VniRequest::block(64), 0, "VNIs 512-575");
    let why = "failed to reserve a block of 32768 VNIs: \
               32445 available (no such block among them), 33088 reserved by jobs";
    refused(&mut pool, "d", &half, 0, why);
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
    let blue = VniRequest::vnis(1).for_tenant(tenant("blue"));
    gets(&mut pool, "a", &blue, 0, "VNI 1024");
    gets(&mut pool, "b", &VniRequest::vnis(1), 0, "VNI 1032");
    gets(&mut pool, "c", &blue, 0, "VNI 1025");
    let why = "failed to reserve 1 VNI for tenant blue: 0 available, 2 reserved by jobs";
    refused(&mut pool, "d", &blue, 0, why);
    let why = "job a has VNI 1024 of tenant blue, which is not 1 VNI: release it first";
    refused(&mut pool, "a", &VniRequest::vnis(1), 0, why);
    let red = tenant("red");
    assert_eq!(pool.part_metrics(Some(&red), seconds(0)).unwrap().free, 6);
    assert_eq!(pool.part_metrics(None, seconds(0)).unwrap().total, 8);
    assert_eq!(pool.part_metrics(Some(&tenant("green")), seconds(0)), None);

    let overlap = base
        .clone()
        .tenant(tenant("blue"), ids("1024-1030"))
        .tenant(tenant("red"), ids("1028-1039"));
    for (config, why) in [
        (overlap, "tenants blue and red must not share VNIs: both have 1028-1030"),
        (
            base.tenant(tenant("blue"), ids("1000-1030")),
            "the part of tenant blue has VNIs that the pool does not have: 1000-1023",
        ),
        (
            PoolConfig::new(ids("0-1,10")),
            "no VNI to assign: the set is \"0-1,10\", of which \"0-1,10\" are excluded",
        ),
    ] {
        says(VniPool::new(config), why);
    }
}

#[test]
fn names_are_checked() {
    for good in ["ƒ3WqKLhmP", "4711.0", "cluster-4711_3", "4711+1", "ƒab/ƒcd", "4711#2"] {
        assert_eq!(JobId::new(good).unwrap().to_string(), good);
    }
    says(
        JobId::new("47'11"),
        "job id \"47'11\" has '\\'' at byte 2: allowed are letters and digits of ASCII, 'ƒ' and . _ - + : / # @",
    );
    says(JobId::new(""), "job id is empty");
    let long = NodeName::new("n".repeat(256));
    says(long, "node name has 256 bytes, the most is 255");
}
