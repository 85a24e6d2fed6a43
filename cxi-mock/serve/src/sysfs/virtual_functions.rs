//! Virtual functions, as an administrator sees and makes them.

use std::sync::Arc;

use cxi_ioctl::Errno;
use cxi_mock::Nic;
use parking_lot::Mutex;

use super::super::releases::{HAS_FUNCTION_SETTINGS, NEEDS_PARENT_SERVICE};
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
    // HPE's guide to SR-IOV says that a function without a service is rejected; the errno is assumed.
    let needs_parents = NEEDS_PARENT_SERVICE.at(nic.config().release);
    let needy = Arc::clone(nic);
    tree.writable(
        "sriov_numvfs",
        move || source.virtual_functions(),
        move |text| {
            let count = text.trim().parse().map_err(|_| Errno::EINVAL)?;
            let is_alone = |function| needy.parent_service(function) == 0;
            if needs_parents && (0..count).any(is_alone) {
                return Err(Errno::EINVAL);
            }
            target.request(number, count)
        },
    );
    for function in 0..VIRTUAL_FUNCTIONS.into() {
        let address = address_of(nic, Some(function));
        tree.link(&format!("virtfn{function}"), format!("../{address}"));
    }
    if HAS_FUNCTION_SETTINGS.at(nic.config().release) {
        for function in 0..VIRTUAL_FUNCTIONS {
            let directory = format!("cxi/cxi{number}/vf/{function}");
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
        move |text| {
            let service = text.trim().parse().map_err(|_| Errno::EINVAL)?;
            target.set_parent_service(function, service)
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
