//! The directory `properties`: what the driver says about a NIC.

use std::sync::Arc;

use cxi_ioctl::Errno;
use cxi_ioctl::abi::device::{CASSINI_1_0, CASSINI_1_1, CASSINI_2_0, DevInfoUse};

use super::super::releases::{SETS_NID, SHOWS_ATS, SHOWS_RGIDS};
use super::super::tree::Tree;
use super::{number, switch};
use cxi_mock::Nic;

/// RGIDs that LNIs may have. One more belongs to the driver.
const USER_RGIDS: usize = 255;

pub(super) fn describe(tree: &mut Tree, nic: &Arc<Nic>, virtual_function: Option<u32>) {
    let mut add = |name: &str, value: fn(&DevInfoUse) -> String| {
        let nic = Arc::clone(nic);
        tree.value(&format!("properties/{name}"), move || value(&nic.device_info()));
    };
    add("nic_addr", |info| format!("{:#x}", info.nid));
    add("pid_bits", |info| info.pid_bits.to_string());
    add("pid_count", |info| info.pid_count.to_string());
    add("pid_granule", |info| info.pid_granule.to_string());
    add("min_free_shift", |info| info.min_free_shift.to_string());
    add("rdzv_get_idx", |info| info.rdzv_get_idx.to_string());
    add("rev", |info| info.device_rev.to_string());
    add("proto", |info| info.device_proto.to_string());
    add("platform", |info| info.device_platform.to_string());
    add("pct_eq", |info| info.pct_eq.to_string());
    add("uc_nic", |info| info.uc_nic.to_string());
    add("hpc_mtu", |info| info.link_mtu.to_string());
    add("speed", |info| info.link_speed.to_string());
    add("link", |info| u8::from(info.link_state != 0).to_string());
    add("num_ptes", |info| info.num_ptes.to_string());
    add("num_txqs", |info| info.num_txqs.to_string());
    add("num_tgqs", |info| info.num_tgqs.to_string());
    add("num_eqs", |info| info.num_eqs.to_string());
    add("num_cts", |info| info.num_cts.to_string());
    add("num_acs", |info| info.num_acs.to_string());
    add("num_tles", |info| info.num_tles.to_string());
    add("num_les", |info| info.num_les.to_string());
    add("cassini_version", |info| {
        let version = match info.cassini_version {
            CASSINI_1_0 => "1.0",
            CASSINI_1_1 => "1.1",
            CASSINI_2_0 => "2.0",
            _ => "unknown",
        };
        version.to_owned()
    });
    add("system_type_identifier", |info| info.system_type_identifier.to_string());
    let config = nic.config();
    nid(tree, nic);
    settings(tree, nic);
    tree.value("properties/driver_rev", || "[unknown]");
    tree.value("properties/current_esm_link_speed", || "Disabled");
    tree.value("properties/pcie_corr_err", || 0);
    tree.value("properties/pcie_uncorr_err", || 0);
    if SHOWS_ATS.at(config.release) {
        tree.value("properties/ats_enabled", || 0);
    }
    if virtual_function.is_none() && SHOWS_RGIDS.at(config.release) {
        let nic = Arc::clone(nic);
        tree.value("properties/rgids_avail", move || {
            USER_RGIDS.saturating_sub(nic.state().rgids.len())
        });
    }
}

/// The settings that an administrator may change.
fn settings(tree: &mut Tree, nic: &Arc<Nic>) {
    let (source, target) = (Arc::clone(nic), Arc::clone(nic));
    tree.writable(
        "properties/amo_remap_to_pcie_fadd",
        move || source.hardware().amo_remap_to_pcie_fadd(),
        move |text| {
            target.hardware().set_amo_remap_to_pcie_fadd(number(text)?);
            Ok(())
        },
    );
    let (source, target) = (Arc::clone(nic), Arc::clone(nic));
    tree.writable(
        "properties/rdzv_get_en",
        move || u8::from(source.hardware().rdzv_get_en()),
        move |text| {
            let enabled = switch(text).ok_or(Errno::EINVAL)?;
            target.hardware().set_rdzv_get_en(enabled);
            Ok(())
        },
    );
}

/// The NIC address, which an administrator sets with newer drivers.
fn nid(tree: &mut Tree, nic: &Arc<Nic>) {
    let path = "properties/nid";
    let source = Arc::clone(nic);
    let read = move || format!("{:#x}", source.hardware().nid());
    if !SETS_NID.at(nic.config().release) {
        return tree.value(path, read);
    }
    let target = Arc::clone(nic);
    tree.writable(path, read, move |text| {
        target.hardware().set_nid(number(text)?);
        Ok(())
    });
}
