//! Requests of a virtual function's kernel driver to that of the physical function.

use cxi_ioctl::{Errno, Opcode};

use super::Call;
use crate::HazardKind;
use crate::nic::device::Device;

/// Position of the LNI in PHYS_LAC_ALLOC, which has no layout here, as PHYS_LAC_FREE; the LAC is at
/// another.
const LNI_OF_ALLOC: usize = 16;
const LNI_OF_FREE: usize = 4;
const LAC_OF_FREE: usize = 8;
/// The lower half of the address of a response.
const RESPONSE: usize = 8;
/// No Ethernet priority was asked for.
const NO_PRIORITY: i32 = -1;

impl Device {
    /// The commands of virtual functions. Of Ethernet the mock has the link alone: no pause frames,
    /// no receive hashing.
    pub(super) fn virtual_function_command(&mut self, call: &mut Call<'_>) -> Result<(), Errno> {
        let identity = &call.nic.config().identity;
        match call.opcode {
            Opcode::PHYS_LAC_ALLOC => {
                let id = call.word(LNI_OF_ALLOC)?;
                let lni = self.lnis.live.of_mut(call.caller.file, id)?;
                // An LNI of a virtual function has its context already.
                if self.files.is_virtual(call.caller.file) {
                    return Err(Errno::EOPNOTSUPP);
                }
                let lac = self.rgids.take_lac(lni.rgid).ok_or(Errno::ENOSPC)?;
                lni.lacs.push(lac);
                lni.lac_holds += 1;
                self.lnis.live.hold(id);
                call.respond(&u32::from(lac))
            }
            Opcode::PHYS_LAC_FREE => {
                let (id, lac) = (call.word(LNI_OF_FREE)?, call.word(LAC_OF_FREE)?);
                let lni = self.lnis.live.of_mut(call.caller.file, id)?;
                if let Some(at) = lni.lacs.iter().position(|held| u32::from(*held) == lac) {
                    self.rgids.give_lac(lni.rgid, lni.lacs.remove(at));
                }
                // The driver drops a reference for any number, whether it was held or not. If there
                // were none to drop, it would free an LNI that is in use.
                if lni.lac_holds == 0 {
                    self.hazard(HazardKind::LniReferenceDropped { lni: id });
                    return Ok(());
                }
                lni.lac_holds -= 1;
                self.lnis.live.release(id);
                Ok(())
            }
            Opcode::ETH_LINK_STATE_GET => call.respond(&u8::from(identity.link_up)),
            Opcode::ETH_MAX_RXSIZE_GET => {
                let mtu = u32::try_from(identity.link_mtu).map_err(|_| Errno::EINVAL)?;
                call.respond(&mtu)
            }
            Opcode::ETH_PAUSE_GET => call.respond(&[0u8; 8]),
            Opcode::RMU_ETH_HASH_KEY_GET => call.respond(&[0u8; 44]),
            Opcode::VF_GET_TOKEN => call.respond(&0u32),
            Opcode::ETH_TC_REQ_PCP_GET => call.respond(&NO_PRIORITY),
            // Without an address for the response; with one, what they answer is not known.
            Opcode::ETH_DEV_INFO_GET if call.word(RESPONSE)? == 0 => Err(Errno::EINVAL),
            Opcode::RMU_ETH_ALLOC
                if call.caller.credentials.net_raw && call.word(RESPONSE)? == 0 =>
            {
                Err(Errno::EFAULT)
            }
            // No handle exists: nothing was allocated.
            Opcode::RMU_ETH_FREE
            | Opcode::RMU_ETH_ADD_MAC_FILTER
            | Opcode::RMU_ETH_REMOVE_FILTER
            | Opcode::RMU_ETH_ADD_PROMISC_FILTER
            | Opcode::RMU_ETH_SET_RSS_QUEUES
            | Opcode::RMU_ETH_SET_INDIR_TABLE
            | Opcode::RMU_ETH_ADD_ALL_MCAST_FILTER => Err(Errno::EINVAL),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }
}
