//! The device's description of itself, and its registers. The mock has no SBUS and no SERDES.

use cxi_ioctl::abi::device::{DevInfoGetCmd, DevInfoUse, PropertiesInfo};
use cxi_ioctl::abi::memory::Mminfo;
use cxi_ioctl::abi::service::{
    RSRC_AC, RSRC_CT, RSRC_EQ, RSRC_LE, RSRC_PTE, RSRC_TGQ, RSRC_TLE, RSRC_TXQ,
};
use cxi_ioctl::memory::page_size;
use cxi_ioctl::{Errno, Mapping};
use zerocopy::{FromZeros, IntoBytes};

use super::Call;
use crate::data_path::{Windows, page_bytes, rendezvous_index};
use crate::nic::device::Device;
use crate::{Identity, NicConfig};

/// Shift of the minimum free space of a list entry. libfabric refuses a NIC with any other value.
const MIN_FREE_SHIFT: u32 = 0;
/// Bytes of the part description that are reported.
const FRU_BYTES: usize = 14;

/// Bytes of the register window of MAP_CSRS.
const CSR_BYTES: u64 = 640 << 20;
/// Place of the register C_MB_STS_REV. All others read as zero until they are written.
const REVISION: u64 = 0x1000_4008;

/// Place of the first of the registers C_CQ_STS_MAX_TLE_IN_USE, one for each pool.
const MOST_TLES: u64 = 0x870;
/// The bits of such a register that count.
const COUNT: u64 = 0xfff;

/// Returns the register by which the chip identifies itself: revision, device, vendor, protocol,
/// platform, lowest bits first.
fn revision(identity: &Identity) -> u64 {
    let field = |value: u32, bits: u32, shift: u32| (u64::from(value) & ((1 << bits) - 1)) << shift;
    field(identity.device_rev, 16, 0)
        | field(identity.device_id, 16, 16)
        | field(identity.vendor_id, 16, 32)
        | field(identity.device_proto, 12, 48)
        | field(identity.device_platform, 4, 60)
}

/// The page of a window with a register, and where in it that is.
fn register(windows: &mut Windows, window: Mminfo, at: u64) -> Result<(Mapping, usize), Errno> {
    let place = at % page_bytes();
    let page = windows.map(window.offset + at - place, page_size())?;
    Ok((page, usize::try_from(place).map_err(|_| Errno::EINVAL)?))
}

pub(super) fn dev_info_get(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let _: DevInfoGetCmd = call.command()?;
    let info = device.device_info(call.nic.config());
    call.respond(&info)
}

pub(super) fn get_dev_properties(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    device.get_dev_properties(call)
}

pub(super) fn map_csrs(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let file = device.files.get_mut(call.caller.file)?;
    if file.csrs.is_some() {
        return Err(Errno::EALREADY);
    }
    let window = file.windows.alloc(CSR_BYTES)?;
    let revision = revision(&call.nic.config().identity);
    let page = register(&mut file.windows, window, REVISION);
    let set = page.and_then(|(page, at)| page.write_u64(at, revision));
    set.inspect_err(|_| file.windows.free(window))?;
    file.csrs = Some(window);
    device.files.with_registers.insert(call.caller.file);
    call.made(0, &window)
}

impl Device {
    /// DEV_INFO_GET.
    pub(in crate::nic) fn device_info(&self, config: &NicConfig) -> DevInfoUse {
        let identity = &config.identity;
        let totals = self.services.totals().types;
        let mut info = DevInfoUse::new_zeroed();
        info.nid = self.registers.nid;
        info.pid_bits = self.params.pid_bits;
        info.pid_count = self.domains.pid_count();
        info.pid_granule = self.domains.pid_granule();
        info.min_free_shift = MIN_FREE_SHIFT;
        info.rdzv_get_idx = rendezvous_index(self.params.pid_bits);
        info.vendor_id = identity.vendor_id;
        info.device_id = identity.device_id;
        info.device_rev = identity.device_rev;
        info.device_proto = identity.device_proto;
        info.device_platform = identity.device_platform;
        info.pct_eq = self.eqs.pct.unwrap_or(0);
        info.uc_nic = identity.uc_nic;
        info.link_mtu = identity.link_mtu;
        info.link_speed = identity.link_speed;
        info.link_state = self.registers.link.is_up().into();
        info.num_ptes = totals[RSRC_PTE].max;
        info.num_txqs = totals[RSRC_TXQ].max;
        info.num_tgqs = totals[RSRC_TGQ].max;
        info.num_eqs = totals[RSRC_EQ].max;
        info.num_cts = totals[RSRC_CT].max;
        info.num_acs = totals[RSRC_AC].max;
        info.num_tles = totals[RSRC_TLE].max;
        info.num_les = totals[RSRC_LE].max;
        let text = identity.fru_description.bytes().take(FRU_BYTES);
        for (to, from) in info.fru_description.iter_mut().zip(text) {
            *to = from;
        }
        info.cassini_version = identity.cassini_version;
        info.system_type_identifier = identity.system_type_identifier;
        info
    }

    /// GET_DEV_PROPERTIES, in the length of the release.
    pub(super) fn get_dev_properties(&self, call: &mut Call<'_>) -> Result<(), Errno> {
        let identity = &call.nic.config().identity;
        let mut info = PropertiesInfo::new_zeroed();
        info.nid = self.registers.nid;
        info.nid_configured = identity.nid_configured.into();
        info.pid_bits = self.params.pid_bits;
        info.pid_count = self.domains.pid_count();
        info.pid_granule = self.domains.pid_granule();
        info.min_free_shift = MIN_FREE_SHIFT;
        info.rdzv_get_idx = rendezvous_index(self.params.pid_bits);
        info.rsrcs = self.services.totals();
        info.device_rev = identity.device_rev;
        info.device_proto = identity.device_proto;
        info.device_platform = identity.device_platform;
        info.cassini_version = identity.cassini_version;
        info.rdzv_get_en = self.registers.rdzv_get_en.into();
        info.amo_remap_to_pcie_fadd = self.registers.amo_remap_to_pcie_fadd;
        if self.rules.properties_nid_configured {
            return call.respond(&info);
        }
        // Older releases leave out the word with `nid_configured`.
        let (nid, rest) = info.as_bytes().split_at(4);
        call.memory.response = Some([nid, &rest[4..]].concat());
        Ok(())
    }

    /// Shows in the registers of all files how many TLEs were in use at once in each pool, unless a
    /// register has more. A program that writes 0 to one starts over.
    pub(crate) fn show_registers(&mut self) {
        if self.files.with_registers.is_empty() {
            return;
        }
        let mut most = self.registers.tles_in_use;
        let mut path = self.data_path.state();
        for (pool, most) in (0..).zip(&mut most) {
            *most = path.engine.take_most_triggered(pool).max(*most);
        }
        drop(path);
        for id in self.files.with_registers.clone() {
            let Ok(file) = self.files.get_mut(id) else { continue };
            let Some(window) = file.csrs else { continue };
            let Ok((page, first)) = register(&mut file.windows, window, MOST_TLES) else {
                continue;
            };
            for (at, most) in (first..).step_by(8).zip(most.map(u64::from)) {
                if page.read_u64(at).is_ok_and(|shown| shown & COUNT < most) {
                    // The page is as long as it was asked for.
                    let _ = page.write_u64(at, most);
                }
            }
        }
    }

    /// Frees the window of MAP_CSRS.
    pub(super) fn unmap_csrs(&mut self, file: u32) -> Result<(), Errno> {
        self.files.with_registers.remove(&file);
        let file = self.files.get_mut(file)?;
        if let Some(window) = file.csrs.take() {
            file.windows.free(window);
        }
        Ok(())
    }
}
