//! Names and pools.

use cxi_job::pool::{PoolConfig, Timestamp, VniPool, VniRequest};
use cxi_job::{IdSet, JobId, NodeName};

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
        .vnis
        .to_string()
}

pub(crate) fn refusal(
    pool: &mut VniPool,
    name: &str,
    request: &VniRequest,
    at: Timestamp,
) -> String {
    pool.reserve(&job(name), request, at)
        .expect_err("reserved")
        .to_string()
}
