//! Acts of the property test of a pool.

use std::time::Duration;

use cxi_site::pool::{PoolConfig, VniRequest};
use cxi_site::{JobId, NodeName, TenantName};
use proptest::prelude::*;

use super::support::ids;

pub(super) const REST: Duration = Duration::from_millis(50);

#[derive(Debug, Clone)]
pub(super) enum Action {
    Reserve {
        job: u8,
        request: u8,
    },
    /// The job does not start: its services were never made.
    Cancel(u8),
    Release(u8),
    /// A node destroys the job's services and says so.
    Destroy {
        job: u8,
        node: u8,
    },
    ConfirmAll(u8),
    /// Services that belong to no job appear on a node.
    Leak {
        node: u8,
        vni: u16,
    },
    /// They disappear.
    Mop(u8),
    Look(u8),
    Reconfigure(u8),
    Wait(u8),
    Save,
}

pub(super) fn action() -> impl Strategy<Value = Action> {
    let (job, node) = (0..6_u8, 0..3_u8);
    prop_oneof![
        6 => (job.clone(), 0..7_u8).prop_map(|(job, request)| Action::Reserve { job, request }),
        1 => job.clone().prop_map(Action::Cancel),
        4 => job.clone().prop_map(Action::Release),
        9 => (job.clone(), node.clone()).prop_map(|(job, node)| Action::Destroy { job, node }),
        2 => job.prop_map(Action::ConfirmAll),
        1 => (node.clone(), 1024..1044_u16).prop_map(|(node, vni)| Action::Leak { node, vni }),
        1 => node.clone().prop_map(Action::Mop),
        2 => node.prop_map(Action::Look),
        1 => (0..3_u8).prop_map(Action::Reconfigure),
        3 => any::<u8>().prop_map(Action::Wait),
        1 => Just(Action::Save),
    ]
}

pub(super) fn blue() -> TenantName {
    TenantName::new("blue").unwrap()
}

/// The first is what every history starts with.
pub(super) fn config(which: u8) -> PoolConfig {
    match which {
        0 => PoolConfig::new(ids("8-11,1024-1039")).tenant(blue(), ids("1036-1039")).rest(REST),
        1 => PoolConfig::new(ids("1024-1031")).rest(REST),
        _ => PoolConfig::new(ids("0-11,1026-1043"))
            .exclude(&ids("1030"))
            .tenant(blue(), ids("1040-1043"))
            .rest(REST),
    }
}

pub(super) fn request(which: u8) -> VniRequest {
    match which {
        5 => VniRequest::vnis(1).for_tenant(blue()),
        6 => VniRequest::block(4),
        count => VniRequest::vnis(count),
    }
}

pub(super) fn job(number: u8) -> JobId {
    JobId::new(format!("ƒ{number}")).unwrap()
}

pub(super) fn node(number: u8) -> NodeName {
    NodeName::new(format!("n{number}")).unwrap()
}

/// The nodes a job runs on, from its number.
pub(super) fn nodes(job: u8) -> Vec<NodeName> {
    (0..=job % 3).map(node).collect()
}
