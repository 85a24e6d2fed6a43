//! The table from an opcode to its handler.

use cxi_ioctl::{Errno, Opcode};

use super::{
    Call, command_queue, counter, device, domain, event_queue, lni, memory, portal, profile,
    service, virtual_function,
};
use crate::nic::device::Device;

/// A handler. Its command has the right length, and its caller the right to send it.
pub(super) type Handle = fn(&mut Device, &mut Call<'_>) -> Result<(), Errno>;

/// Returns the handler of a command, unless that frees an object: those are alike, and
/// `Device::free` knows them by the object.
pub(super) fn handle_of(opcode: Opcode) -> Option<Handle> {
    Some(match opcode {
        Opcode::LNI_ALLOC => lni::lni_alloc,
        Opcode::CP_ALLOC => profile::cp_alloc,
        Opcode::TRIG_CP_ALLOC => profile::trig_cp_alloc,
        Opcode::CP_MODIFY => profile::cp_modify,
        Opcode::DOMAIN_RESERVE => domain::domain_reserve,
        Opcode::DOMAIN_ALLOC => domain::domain_alloc,
        Opcode::CQ_ALLOC => command_queue::cq_alloc,
        Opcode::CQ_ALLOC_BUF => command_queue::cq_alloc_buf,
        Opcode::CQ_ACK_COUNTER => command_queue::cq_ack_counter,
        Opcode::EQ_ALLOC => event_queue::eq_alloc,
        Opcode::EQ_RESIZE => event_queue::eq_resize,
        Opcode::EQ_RESIZE_COMPLETE => event_queue::eq_resize_complete,
        Opcode::EQ_ADJUST_RESERVED_FC => event_queue::eq_adjust_reserved_fc,
        Opcode::WAIT_ALLOC => event_queue::wait_alloc,
        Opcode::PTE_ALLOC => portal::pte_alloc,
        Opcode::PTE_MAP => portal::pte_map,
        Opcode::PTE_LE_INVALIDATE => portal::pte_le_invalidate,
        Opcode::PTE_STATUS => portal::pte_status,
        Opcode::PTE_TRANSITION_SM => portal::pte_transition_sm,
        Opcode::CT_ALLOC => counter::ct_alloc,
        Opcode::CT_WB_UPDATE => counter::ct_wb_update,
        Opcode::ATU_MAP => memory::atu_map,
        Opcode::ATU_UPDATE_MD => memory::atu_update_md,
        Opcode::INBOUND_WAIT => memory::inbound_wait,
        Opcode::SVC_ALLOC => service::svc_alloc,
        Opcode::SVC_ALLOC_PARENT => service::svc_alloc_parent,
        Opcode::SVC_UPDATE => service::svc_update,
        Opcode::SVC_ENABLE => service::svc_enable,
        Opcode::SVC_SET_LPR => service::svc_set_lpr,
        Opcode::SVC_SET_EXCLUSIVE_CP => service::svc_set_exclusive_cp,
        Opcode::SVC_SET_VNI_RANGE => service::svc_set_vni_range,
        Opcode::SVC_SET_NETNS => service::svc_set_netns,
        Opcode::SVC_GET => service::svc_get,
        Opcode::SVC_RSRC_GET => service::svc_rsrc_get,
        Opcode::SVC_LIST_GET => service::svc_list_get,
        Opcode::SVC_RSRC_LIST_GET => service::svc_rsrc_list_get,
        Opcode::SVC_GET_LPR => service::svc_get_lpr,
        Opcode::SVC_GET_EXCLUSIVE_CP => service::svc_get_exclusive_cp,
        Opcode::SVC_IS_PARENT_GET => service::svc_is_parent_get,
        Opcode::SVC_GET_VNI_RANGE => service::svc_get_vni_range,
        Opcode::SVC_GET_NETNS => service::svc_get_netns,
        Opcode::DEV_INFO_GET => device::dev_info_get,
        Opcode::GET_DEV_PROPERTIES => device::get_dev_properties,
        Opcode::MAP_CSRS => device::map_csrs,
        Opcode::PHYS_LAC_ALLOC => virtual_function::phys_lac_alloc,
        Opcode::PHYS_LAC_FREE => virtual_function::phys_lac_free,
        Opcode::ETH_LINK_STATE_GET => virtual_function::eth_link_state_get,
        Opcode::ETH_MAX_RXSIZE_GET => virtual_function::eth_max_rxsize_get,
        Opcode::ETH_PAUSE_GET => virtual_function::eth_pause_get,
        Opcode::RMU_ETH_HASH_KEY_GET => virtual_function::rmu_eth_hash_key_get,
        Opcode::VF_GET_TOKEN => virtual_function::vf_get_token,
        Opcode::ETH_TC_REQ_PCP_GET => virtual_function::eth_tc_req_pcp_get,
        Opcode::ETH_DEV_INFO_GET => virtual_function::eth_dev_info_get,
        Opcode::RMU_ETH_ALLOC => virtual_function::rmu_eth_alloc,
        Opcode::RMU_ETH_FREE
        | Opcode::RMU_ETH_ADD_MAC_FILTER
        | Opcode::RMU_ETH_REMOVE_FILTER
        | Opcode::RMU_ETH_ADD_PROMISC_FILTER
        | Opcode::RMU_ETH_SET_RSS_QUEUES
        | Opcode::RMU_ETH_SET_INDIR_TABLE
        | Opcode::RMU_ETH_ADD_ALL_MCAST_FILTER => virtual_function::no_such_handle,
        _ => return None,
    })
}
