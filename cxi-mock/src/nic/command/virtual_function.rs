//! What the kernel's driver of a virtual function asks the one of the physical function for.

use cxi_ioctl::{Errno, Opcode};

use super::Call;
use crate::nic::device::Device;

/// Where PHYS_LAC_ALLOC, which has no layout, has its LNI.
const LNI_OF_LAC: usize = 16;
/// The lower half of the address of a response.
const RESPONSE: usize = 8;
/// No Ethernet priority was asked for.
const NO_PRIORITY: i32 = -1;

impl Device {
    /// The commands of virtual functions. Of Ethernet the mock has the link alone: no pause frames,
    /// no receive hashing.
    pub(super) fn virtual_function_command(
        &mut self,
        opcode: Opcode,
        call: &mut Call<'_>,
    ) -> Result<(), Errno> {
        let identity = &call.nic.config().identity;
        match opcode {
            Opcode::PHYS_LAC_ALLOC => {
                let lni = call.word(LNI_OF_LAC)?;
                // It takes a virtual function, which gets its context with the LNI.
                self.lni_of(call.caller.file, lni)?;
                Err(Errno::EOPNOTSUPP)
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
            Opcode::PHYS_LAC_FREE
            | Opcode::RMU_ETH_FREE
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
