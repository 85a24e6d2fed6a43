//! Virtual functions, as an administrator sees and makes them.

use std::sync::Arc;

use cxi_ioctl::Errno;
use cxi_mock::Nic;
use parking_lot::Mutex;

use super::super::releases::HAS_FUNCTION_SETTINGS;
use super::super::server::Virtualization;
use super::super::tree::Tree;
use super::{VIRTUAL_FUNCTIONS, address_of, number};

pub(super) fn describe(
    tree: &mut Tree,
    nic: &Arc<Nic>,
    physical: u16,
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
        // The kernel's number has 16 bits; of those that do not fit, it says nothing more.
        move |text| {
            let count = number::<u16>(text).map_err(|_| Errno::EINVAL)?;
            target.request(physical, count.into())
        },
    );
    for function in 0..VIRTUAL_FUNCTIONS.into() {
        let address = address_of(nic, Some(function));
        tree.link(&format!("virtfn{function}"), format!("../{address}"));
    }
    if HAS_FUNCTION_SETTINGS.at(nic.config().release) {
        for function in 0..VIRTUAL_FUNCTIONS {
            let directory = format!("cxi/cxi{physical}/vf/{function}");
            settings(tree, &directory, nic, function.into());
        }
    }
}

/// Describes what the physical function decides about a virtual one, whether that is there or not.
fn settings(tree: &mut Tree, directory: &str, nic: &Arc<Nic>, function: u32) {
    let (source, target) = (Arc::clone(nic), Arc::clone(nic));
    tree.writable(
        &format!("{directory}/svc_id"),
        move || source.parent_service(function),
        move |text| target.set_parent_service(function, number(text)?),
    );
    for name in ["msg_rate_limit", "msg_rate_burst"] {
        let value = Arc::new(Mutex::new(0_u32));
        let source = Arc::clone(&value);
        tree.writable(
            &format!("{directory}/{name}"),
            move || *source.lock(),
            move |text| {
                *value.lock() = number(text)?;
                Ok(())
            },
        );
    }
}
