//! Names and pools.

use cxi_site::pool::{PoolConfig, Timestamp, VniPool, VniRequest};
use cxi_site::{IdSet, JobId, NodeName};

use crate::says;

pub(crate) fn ids(text: &str) -> IdSet {
    text.parse().unwrap()
}

pub(crate) fn pool(vnis: &str) -> VniPool {
    VniPool::new(PoolConfig::new(ids(vnis))).unwrap()
}

pub(crate) fn job(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

pub(crate) fn nodes<const N: usize>(names: [&str; N]) -> [NodeName; N] {
    names.map(|name| NodeName::new(name).unwrap())
}

pub(crate) fn seconds(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

pub(crate) fn reserve(
    pool: &mut VniPool,
    name: &str,
    request: &VniRequest,
    at: Timestamp,
) -> String {
    pool.reserve(&job(name), request, at)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
        .result
        .to_string()
}

/// A job requests VNIs at this second, and gets these.
#[track_caller]
pub(crate) fn gets(pool: &mut VniPool, name: &str, request: &VniRequest, at: u64, vnis: &str) {
    assert_eq!(reserve(pool, name, request, seconds(at)), vnis);
}

/// A job requests VNIs at this second, and is refused for this reason.
#[track_caller]
pub(crate) fn refused(pool: &mut VniPool, name: &str, request: &VniRequest, at: u64, why: &str) {
    says(pool.reserve(&job(name), request, seconds(at)), why);
}
