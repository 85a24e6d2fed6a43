//! Virtual functions, as an administrator sees and makes them.

use std::sync::Arc;

use cxi_ioctl::{DriverRelease, Errno};
use cxi_mock::Nic;
use parking_lot::Mutex;

use super::super::server::Virtualization;
use super::super::tree::Tree;
use super::{VIRTUAL_FUNCTIONS, address_of};

pub(super) fn describe(
    tree: &mut Tree,
    nic: &Arc<Nic>,
    number: u16,
    virtualization: &Arc<Virtualization>,
) {
    let device = nic.config().identity.device_id;
    tree.value("sriov_totalvfs", || VIRTUAL_FUNCTIONS);
    tree.value("sriov_offset", || 1);
    tree.value("sriov_stride", || 1);
    tree.value("sriov_vf_device", move || format!("{device:x}"));
    tree.value("sriov_vf_total_msix", || 0);
    tree.value("sriov_drivers_autoprobe", || 1);
    let (source, target) = (Arc::clone(nic), Arc::clone(virtualization));
    tree.writable(
        "sriov_numvfs",
        move || source.virtual_functions(),
        move |text| target.request(number, text.trim().parse().map_err(|_| Errno::EINVAL)?),
    );
    for function in 0..VIRTUAL_FUNCTIONS.into() {
        let address = address_of(nic, Some(function));
        tree.link(&format!("virtfn{function}"), format!("../{address}"));
    }
    if nic.config().release >= DriverRelease::Main2026_07 {
        for function in 0..VIRTUAL_FUNCTIONS {
            settings(tree, &format!("cxi/cxi{number}/vf/{function}"));
        }
    }
}

/// Describes what the physical function decides about a virtual one, whether that is there or not.
fn settings(tree: &mut Tree, directory: &str) {
    // No release that the mock has knows parent services, and no other service may be named.
    tree.writable(
        &format!("{directory}/svc_id"),
        || 0,
        |text| {
            if text.trim() == "0" { Ok(()) } else { Err(Errno::EINVAL) }
        },
    );
    for name in ["msg_rate_limit", "msg_rate_burst"] {
        let value = Arc::new(Mutex::new(0_u32));
        let source = Arc::clone(&value);
        tree.writable(
            &format!("{directory}/{name}"),
            move || *source.lock(),
            move |text| {
                *value.lock() = text.trim().parse().map_err(|_| Errno::EINVAL)?;
                Ok(())
            },
        );
    }
}
