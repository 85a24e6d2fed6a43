//! Rendezvous gets, which a job may want off while it runs: `--network=disable_rdzv_get`.

use cxi::Device;
use cxi_job::{Grant, NodeNic};

use super::job_node::JobNode;
use crate::exit::{Failure, of_device};
use crate::options::Common;
use crate::records::node::{NodeRecord, NodeRecords};

/// Turns them off on a job's NICs, where the driver has turned them on; returns what did not work,
/// as warnings: the job runs all the same.
pub(super) fn disable(node: &JobNode, grant: &Grant) -> Vec<String> {
    let nics = grant
        .services
        .iter()
        .map(|entry| node.nics.nic(entry.device));
    let devices = nics.flatten().filter_map(NodeNic::device);
    let failed = |device: &Device| match device.rdzv_get_default() {
        Some(true) => device
            .set_rdzv_get_enabled(false)
            .err()
            .map(|error| error.to_string()),
        Some(false) => None,
        None => Some(format!(
            "{}: sysfs does not say whether they are on",
            device.id()
        )),
    };
    let failed = devices.filter_map(failed);
    failed
        .map(|why| format!("rendezvous gets stay as they are: {why}"))
        .collect()
}

/// Turns them on again after a job, unless another one on this node wants them off.
pub(super) fn restore(
    records: &NodeRecords,
    ended: &NodeRecord,
    common: &Common,
) -> Result<(), Failure> {
    let off = |record: &NodeRecord| record.disable_rdzv_get && record.job != ended.job;
    if !ended.disable_rdzv_get || records.all()?.iter().any(off) {
        return Ok(());
    }
    let node = JobNode::open(common, false)?;
    let devices = node.nics.nics().iter().filter_map(NodeNic::device);
    for device in devices.filter(|device| device.rdzv_get_default() == Some(true)) {
        device
            .set_rdzv_get_enabled(true)
            .map_err(|error| of_device(&error))?;
    }
    Ok(())
}
