//! Requests to a pool, granted before or impossible, and the times of its events.

use std::time::{Duration, SystemTime};

use cxi_site::JobId;
use cxi_site::pool::{Allotment, PoolConfig, Timestamp, VniPool, VniRequest};

use crate::says;

fn pool(vnis: &str) -> VniPool {
    VniPool::new(PoolConfig::new(vnis.parse().unwrap())).unwrap()
}

const NOW: Timestamp = Timestamp::from_millis(0);

#[test]
fn the_same_block_again_is_the_same_and_another_is_refused() {
    let mut pool = pool("1024-1055");
    let job = JobId::new("a").unwrap();
    let first = pool.reserve(&job, &VniRequest::block(8), NOW).unwrap();
    assert!(first.event.is_some() && !first.result.is_empty());
    let again = pool.reserve(&job, &VniRequest::block(8), NOW).unwrap();
    assert!(again.event.is_none());
    assert_eq!(again.result, first.result);
    for (other, what) in
        [(VniRequest::block(4), "a block of 4 VNIs"), (VniRequest::vnis(4), "4 VNIs")]
    {
        let why = format!("job a has VNIs 1024-1031, which is not {what}: release it first");
        says(pool.reserve(&job, &other, NOW), &why);
    }
    assert!(Allotment::List(Vec::new()).is_empty());
}

#[test]
fn a_missing_block_is_distinguished_from_no_vnis() {
    let mut pool = pool("1024-1027");
    let mut reserve = |name: &str, request| pool.reserve(&JobId::new(name).unwrap(), &request, NOW);
    for (name, taken, available, reserved) in
        [("a", 3, "1 available (no such block among them)", 3), ("c", 1, "0 available", 4)]
    {
        let _vnis = reserve(name, VniRequest::vnis(taken)).unwrap();
        let refused = reserve("b", VniRequest::block(2));
        let why = format!(
            "failed to reserve a block of 2 VNIs: {available}, {reserved} reserved by jobs"
        );
        says(refused, &why);
    }
}

#[test]
fn times_are_milliseconds_since_1970() {
    let after = SystemTime::UNIX_EPOCH + Duration::from_micros(1_500_999);
    assert_eq!(Timestamp::from(after), Timestamp::from_millis(1500));
    let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
    assert_eq!(Timestamp::from(before).as_millis(), 0);
    let later = Timestamp::from_millis(1) + Duration::from_millis(2);
    assert_eq!(later.as_millis(), 3);
    assert_eq!(later + Duration::MAX, Timestamp::from_millis(u64::MAX));
}
