//! Services: who may use which VNIs, traffic classes and how much of the NIC.

use super::profile::TC_COUNT;
use crate::layout::{abi, commands, constants};

constants! {
    /// Resource type: portal table entries.
    RSRC_PTE: usize = 0, "CXI_RSRC_TYPE_PTE";
    /// Resource type: transmit command queues.
    RSRC_TXQ: usize = 1, "CXI_RSRC_TYPE_TXQ";
    /// Resource type: target command queues.
    RSRC_TGQ: usize = 2, "CXI_RSRC_TYPE_TGQ";
    /// Resource type: event queues.
    RSRC_EQ: usize = 3, "CXI_RSRC_TYPE_EQ";
    /// Resource type: counting events.
    RSRC_CT: usize = 4, "CXI_RSRC_TYPE_CT";
    /// Resource type: list entries.
    RSRC_LE: usize = 5, "CXI_RSRC_TYPE_LE";
    /// Resource type: trigger list entries.
    RSRC_TLE: usize = 6, "CXI_RSRC_TYPE_TLE";
    /// Resource type: address contexts.
    RSRC_AC: usize = 7, "CXI_RSRC_TYPE_AC";
    /// Number of resource types.
    RSRC_COUNT: usize = 8, "CXI_RSRC_TYPE_MAX";
    /// Members a service can name.
    SVC_MAX_MEMBERS: usize = 2, "CXI_SVC_MAX_MEMBERS";
    /// VNIs a service can list.
    SVC_MAX_VNIS: usize = 4, "CXI_SVC_MAX_VNIS";
    /// Id of the default service.
    DEFAULT_SVC_ID: u32 = 1, "CXI_DEFAULT_SVC_ID";
    /// Unused member slot.
    MEMBER_IGNORE: u32 = 0, "CXI_SVC_MEMBER_IGNORE";
    /// Member by effective user id.
    MEMBER_UID: u32 = 1, "CXI_SVC_MEMBER_UID";
    /// Member by effective group id.
    MEMBER_GID: u32 = 2, "CXI_SVC_MEMBER_GID";
    /// Member by network namespace (from 14.0).
    MEMBER_NET_NS: u32 = 3, "CXI_SVC_MEMBER_NET_NS", since Shs14_0_0;
}

bitflags::bitflags! {
    /// The flag bits of [`SvcDesc::flags`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct SvcFlags: u8 {
        /// Only `members` may use the service.
        const RESTRICTED_MEMBERS = 1 << 0;
        /// Only `vnis` may be used.
        const RESTRICTED_VNIS = 1 << 1;
        /// Only the classes in `tcs` may be used.
        const RESTRICTED_TCS = 1 << 2;
        /// `limits` applies.
        const RESOURCE_LIMITS = 1 << 3;
        /// The service is enabled.
        const ENABLE = 1 << 4;
        /// The service belongs to the system.
        const IS_SYSTEM_SVC = 1 << 5;
    }
}

/// Names of the resource types, in the order of `RSRC_*`.
pub const RSRC_NAMES: [&str; RSRC_COUNT] =
    ["PTEs", "TXQs", "TGQs", "EQs", "CTs", "LEs", "TLEs", "ACs"];

/// The resource type with this name, in any case, with or without the plural s.
#[must_use]
pub fn rsrc_by_name(name: &str) -> Option<usize> {
    let singular = |name: &str| name.to_ascii_lowercase().trim_end_matches('s').to_owned();
    let wanted = singular(name);
    RSRC_NAMES.into_iter().position(|known| singular(known) == wanted)
}

abi! {
    /// Limits of one resource type for a service.
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    struct Limits = "cxi_limits", 4 {
        /// Most the service may have.
        max: u16 = 0,
        /// Reserved for the service alone.
        res: u16 = 2,
    }

    /// Limits for each resource type.
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    struct RsrcLimits = "cxi_rsrc_limits", 32 {
        /// One entry for each type, order of `RSRC_*`.
        types: [Limits; RSRC_COUNT] = 0,
    }

    /// Resources that a service has in use.
    struct RsrcUse = "cxi_rsrc_use", 24 {
        /// Service id.
        svc_id: u32 = 0,
        /// TLE pool of the service, 0 when it has none of its own.
        tle_pool_id: u32 = 4,
        /// Amount in use per resource type (order of `RSRC_*`); 0xFFFF means not applicable.
        in_use: [u16; RSRC_COUNT] = 8,
    }

    /// Reason for which SVC_ALLOC failed: availability up to the first short resource, and pools
    /// that ran out.
    struct SvcFailInfo = "cxi_svc_fail_info", 20 {
        /// Amount still available per resource type (order of `RSRC_*`), meaningful up to the first short one.
        rsrc_avail: [u16; RSRC_COUNT] = 0,
        /// Non-zero: all LE pools are taken.
        no_le_pools: u8 = 16,
        /// Non-zero: all TLE pools are taken.
        no_tle_pools: u8 = 17,
        /// Never set by any driver release.
        no_cntr_pools: u8 = 18 + 1,
    }

    /// One member of a service.
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    struct SvcMember = "cxi_svc_desc.members", 8 {
        /// uid, gid or namespace; by `kind`.
        id: u32 = 0,
        /// Kind of member, see `MEMBER_*`.
        kind: u32 = 4,
    }

    /// A service.
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    struct SvcDesc = "cxi_svc_desc", 68 {
        /// Flags, see [`SvcFlags`] and `cntr_pool_id` in bits 6 and 7.
        flags: u8 = 0,
        /// Number of entries of `vnis` that apply.
        num_vld_vnis: u8 = 1,
        /// VNIs of the service.
        vnis: [u16; SVC_MAX_VNIS] = 2,
        /// Non-zero: the traffic class of that number is allowed.
        tcs: [u8; TC_COUNT] = 10 + 1,
        /// Users, groups and namespaces that may use the service.
        members: [SvcMember; SVC_MAX_MEMBERS] = 16,
        /// Limits per resource type (order of `RSRC_*`).
        limits: RsrcLimits = 32,
        /// Service id.
        svc_id: u32 = 64,
    }

    /// Creates a service. The response is written even on errors and says what was short:
    /// [`CommandError::Refused`](crate::CommandError::Refused) has it.
    ///
    /// Request of SVC_ALLOC; privilege: CAP_SYS_ADMIN on a physical function. libcxi:
    /// `cxil_alloc_svc`.
    ///
    /// Errors:
    /// - EINVAL: more than 4 VNIs or one out of range, unknown member type, a limit with more
    ///   reserved than allowed or above the device
    /// - EEXIST: a member twice, or VNIs in conflict with those of another service
    /// - EBADR: a member id of all ones
    /// - ENOSPC: a reservation that cannot be met, or no pool for it
    /// - EFAULT: the response could not be delivered; the service exists all the same
    @answered struct SvcAllocCmd = "cxi_svc_alloc_cmd", 88 {
        /// The service.
        svc_desc: SvcDesc = 16 + 4,
    }

    /// Response of SVC_ALLOC; written on errors too.
    struct SvcAllocResp = "cxi_svc_alloc_resp", 24 {
        /// Service id.
        svc_id: u32 = 0,
        /// Reason for which the allocation failed.
        fail_info: SvcFailInfo = 4,
    }

    /// Destroys a service.
    ///
    /// Request of SVC_DESTROY; privilege: CAP_SYS_ADMIN on a physical function. libcxi:
    /// `cxil_destroy_svc`.
    ///
    /// Errors:
    /// - EINVAL: no such service, or the default service
    /// - EBUSY: an LNI of it exists, or is being cleaned up
    @command struct SvcDestroyCmd = "cxi_svc_destroy_cmd", 8 {
        /// Service id.
        svc_id: u32 = 4,
    }

    /// Stores a changed descriptor and enables or disables the service; members, VNIs and limits
    /// in force stay.
    ///
    /// Request of SVC_UPDATE; privilege: CAP_SYS_ADMIN on a physical function. libcxi:
    /// `cxil_update_svc`.
    ///
    /// Errors:
    /// - EINVAL: as SVC_ALLOC; no such service; `RESOURCE_LIMITS` changed
    /// - EBUSY: an LNI of it exists
    /// - ENOSPC: no room in the VNI table
    @answered struct SvcUpdateCmd = "cxi_svc_update_cmd", 88 {
        /// The service.
        svc_desc: SvcDesc = 16 + 4,
    }

    /// Response of SVC_UPDATE; written on errors too, always zeros.
    struct SvcUpdateResp = "cxi_svc_update_resp", 20 {
        /// Reason for which the allocation failed.
        fail_info: SvcFailInfo = 0,
    }

    /// Returns the descriptor of a service.
    ///
    /// Request of SVC_GET; open to everyone. libcxi: `cxil_get_svc`.
    ///
    /// Errors:
    /// - EINVAL: no such service
    @answered struct SvcGetCmd = "cxi_svc_get_cmd", 24 {
        /// Service id.
        svc_id: u32 = 16 + 4,
    }

    /// Returns the descriptors of all services, if there is room for all of them: use
    /// [`fetch_list`](crate::fetch_list).
    ///
    /// Request of SVC_LIST_GET; open to everyone. libcxi: `cxil_get_svc_list`.
    ///
    /// Errors:
    /// - EFAULT: an array that is not there
    @answered struct SvcListGetCmd = "cxi_svc_list_get_cmd", 32 {
        /// Number of entries.
        count: u32 = 16 + 4,
        /// Address of the service array; the transport fills it in.
        svc_list: u64 = 24,
    }

    /// Response of SVC_LIST_GET.
    struct SvcListGetResp = "cxi_svc_list_get_resp", 4 {
        /// Number of entries.
        count: u32 = 0,
    }

    /// Returns what a service has in use; `svc_id` of the response stays zero.
    ///
    /// Request of SVC_RSRC_GET; open to everyone. libcxi: `cxil_get_svc_rsrc_use`.
    ///
    /// Errors:
    /// - EINVAL: no such service
    @answered struct SvcRsrcGetCmd = "cxi_svc_rsrc_get_cmd", 24 {
        /// Service id.
        svc_id: u32 = 16 + 4,
    }

    /// Returns what all services have in use, if there is room for all of them: use
    /// [`fetch_list`](crate::fetch_list).
    ///
    /// Request of SVC_RSRC_LIST_GET; open to everyone. libcxi: `cxil_get_svc_rsrc_list`.
    ///
    /// Errors:
    /// - EFAULT: an array that is not there
    @answered struct SvcRsrcListGetCmd = "cxi_svc_rsrc_list_get_cmd", 32 {
        /// Number of entries.
        count: u32 = 16 + 4,
        /// Address of the usage array; the transport fills it in.
        rsrc_list: u64 = 24,
    }

    /// Response of SVC_RSRC_LIST_GET.
    struct SvcRsrcListGetResp = "cxi_svc_rsrc_list_get_resp", 4 {
        /// Number of entries.
        count: u32 = 0,
    }

    /// Enables or disables a service. From SHS 13.1.
    ///
    /// Request of SVC_ENABLE; privilege: CAP_SYS_ADMIN on a physical function. libcxi:
    /// `cxil_svc_enable`.
    ///
    /// Errors:
    /// - EINVAL: no such service; a VNI without its profile
    /// - EBUSY: an LNI of it exists
    /// - ENOSPC: no room in the VNI table
    @answered struct SvcEnableCmd = "cxi_svc_enable_cmd", 24 {
        /// Service id.
        svc_id: u32 = 16,
        /// Non-zero: enable, zero: disable.
        enable: u8 = 20 + 3,
    }

    /// Tells how many LNIs may share an RGID. Hides its error in the value: use
    /// [`svc_get_lpr`](crate::svc_get_lpr).
    ///
    /// Request of SVC_GET_LPR; open to everyone. libcxi: `cxil_get_svc_lpr`.
    @answered struct SvcGetLprCmd = "cxi_svc_lpr_cmd", 24 {
        /// Service id.
        svc_id: u32 = 16,
        /// LNIs that may share one RGID, at most 8; not looked at when getting.
        lnis_per_rgid: u32 = 20,
    }

    /// Sets how many LNIs may share an RGID. Does nothing, successfully, where the driver has
    /// `enable_rgid_sharing=N`.
    ///
    /// Request of SVC_SET_LPR; privilege: CAP_SYS_ADMIN on a physical function. libcxi:
    /// `cxil_set_svc_lpr`.
    ///
    /// Errors:
    /// - EINVAL: more than 8, or no such service
    /// - EBUSY: an LNI of it exists
    @answered struct SvcSetLprCmd = "cxi_svc_lpr_cmd", 24 {
        /// Service id.
        svc_id: u32 = 16,
        /// LNIs that may share one RGID, at most 8; not looked at when getting.
        lnis_per_rgid: u32 = 20,
    }

    /// Response of SVC_GET_LPR, SVC_GET_NETNS.
    struct SvcGetValueResp = "cxi_svc_get_value_resp", 4 {
        /// The value; see the command.
        value: u32 = 0,
    }

    /// Sets whether each LNI gets its own communication profile. From SHS 13.1.
    ///
    /// Request of SVC_SET_EXCLUSIVE_CP; privilege: CAP_SYS_ADMIN on a physical function. libcxi:
    /// `cxil_svc_set_exclusive_cp`.
    ///
    /// Errors:
    /// - EINVAL: no such service, one with restricted VNIs, or without a range
    /// - EBUSY: the service is enabled
    @command struct SvcSetExclusiveCpCmd = "cxi_svc_set_exclusive_cp_cmd", 12 {
        /// Service id.
        svc_id: u32 = 4,
        /// Non-zero: every LNI gets its own communication profile.
        exclusive_cp: u8 = 8 + 3,
    }

    /// Tells whether each LNI gets its own communication profile. From SHS 13.1.
    ///
    /// Request of SVC_GET_EXCLUSIVE_CP; open to everyone. libcxi: `cxil_svc_get_exclusive_cp`.
    ///
    /// Errors:
    /// - EINVAL: no such service
    /// - ENOENT: it has no VNIs yet
    @answered struct SvcGetExclusiveCpCmd = "cxi_svc_get_exclusive_cp_cmd", 24 {
        /// Service id.
        svc_id: u32 = 16 + 4,
    }

    /// Response of SVC_GET_EXCLUSIVE_CP.
    struct SvcGetExclusiveCpResp = "cxi_svc_get_exclusive_cp_resp", 1 {
        /// Non-zero: every LNI gets its own communication profile.
        exclusive_cp: u8 = 0,
    }

    /// Tells the VNI range of a service. From SHS 13.1.
    ///
    /// Request of SVC_GET_VNI_RANGE; open to everyone. libcxi: `cxil_svc_get_vni_range`.
    ///
    /// Errors:
    /// - EINVAL: no such service, one with restricted VNIs, no range
    /// - ENOENT: the range was lost
    /// - EOPNOTSUPP: a group that the kernel made
    @answered struct SvcGetVniRangeCmd = "cxi_svc_vni_range_cmd", 32 {
        /// Service id.
        svc_id: u32 = 16,
        /// First VNI of the range.
        vni_min: u32 = 20,
        /// Last VNI of the range.
        vni_max: u32 = 24 + 4,
    }

    /// Gives a service without restricted VNIs a range of them: a power of two, on a multiple of
    /// it. From SHS 13.1.
    ///
    /// Request of SVC_SET_VNI_RANGE; privilege: CAP_SYS_ADMIN on a physical function. libcxi:
    /// `cxil_svc_set_vni_range`.
    ///
    /// Errors:
    /// - EINVAL: no such service, one with restricted VNIs, a range of another form
    /// - EEXIST: another service has VNIs of it
    @answered struct SvcSetVniRangeCmd = "cxi_svc_vni_range_cmd", 32 {
        /// Service id.
        svc_id: u32 = 16,
        /// First VNI of the range.
        vni_min: u32 = 20,
        /// Last VNI of the range.
        vni_max: u32 = 24 + 4,
    }

    /// Response of SVC_GET_VNI_RANGE.
    struct SvcGetVniRangeResp = "cxi_svc_get_vni_range_resp", 8 {
        /// First VNI of the range.
        vni_min: u32 = 0,
        /// Last VNI of the range.
        vni_max: u32 = 4,
    }

    /// Makes a network namespace a member of a service. From SHS 14.0.
    ///
    /// Request of SVC_SET_NETNS; privilege: CAP_SYS_ADMIN on a physical function.
    ///
    /// Errors:
    /// - EINVAL: no such service
    /// - EEXIST: it has members by uid or gid or is open to all, or has this one
    /// - EBUSY: the service is enabled
    /// - EBADR: an inode number of all ones
    /// - ENODATA: its VNIs have no profiles
    @command struct SvcSetNetnsCmd = "cxi_svc_set_netns_cmd", 12 {
        /// Service id.
        svc_id: u32 = 4,
        /// Inode number of the network namespace.
        netns: u32 = 8,
    }

    /// Tells the inode number of the network namespace that is a member of a service. From SHS
    /// 14.0.
    ///
    /// Request of SVC_GET_NETNS; open to everyone.
    ///
    /// Errors:
    /// - EINVAL: no such service, or no such member
    @answered struct SvcGetNetnsCmd = "cxi_svc_get_netns_cmd", 24 {
        /// Service id.
        svc_id: u32 = 16 + 4,
    }

    /// Creates a parent service, from which the services of a virtual function get their VNIs and
    /// resources. Not in a released driver: known from the development branch of November 2026.
    ///
    /// Request of SVC_ALLOC_PARENT; needs `CAP_SYS_ADMIN`, on a physical function. libcxi:
    /// `cxil_alloc_parent_svc`.
    ///
    /// Errors: as SVC_ALLOC; also EINVAL with members, or where a maximum is not what is reserved
    /// (inferred from HPE's template).
    @answered struct SvcAllocParentCmd = "cxi_svc_alloc_cmd", 88 {
        /// Descriptor of the service.
        svc_desc: SvcDesc = 16 + 4,
    }

    /// Tells whether a service is a parent service. Not in a released driver, as
    /// [`SvcAllocParentCmd`].
    ///
    /// Request of SVC_IS_PARENT_GET; open to everyone.
    ///
    /// Errors:
    /// - EINVAL: no such service, or no such command
    @answered struct SvcIsParentGetCmd = "cxi_svc_is_parent_get_cmd", 24, since Main2026_11 {
        /// Service id.
        svc_id: u32 = 16 + 4,
    }

    /// Response of SVC_IS_PARENT_GET.
    struct SvcIsParentGetResp = "cxi_svc_is_parent_get_resp", 1, since Main2026_11 {
        /// Non-zero: services of a virtual function may get their VNIs and resources from it.
        is_parent: u8 = 0,
    }
}

commands! {
    SvcAllocCmd: SVC_ALLOC -> SvcAllocResp, of (svc_desc: SvcDesc), response at 8;
    SvcDestroyCmd: SVC_DESTROY -> (), of (svc_id: u32);
    SvcUpdateCmd: SVC_UPDATE -> SvcUpdateResp, of (svc_desc: SvcDesc), response at 8;
    SvcGetCmd: SVC_GET -> SvcDesc, of (svc_id: u32), response at 8;
    SvcListGetCmd: SVC_LIST_GET -> SvcListGetResp, response at 8, list at 24;
    SvcRsrcGetCmd: SVC_RSRC_GET -> RsrcUse, of (svc_id: u32), response at 8;
    SvcRsrcListGetCmd: SVC_RSRC_LIST_GET -> SvcRsrcListGetResp, response at 8, list at 24;
    SvcEnableCmd: SVC_ENABLE -> (), of (svc_id: u32, enable: u8);
    SvcGetLprCmd: SVC_GET_LPR -> SvcGetValueResp, of (svc_id: u32), response at 8;
    SvcSetLprCmd: SVC_SET_LPR -> (), of (svc_id: u32, lnis_per_rgid: u32);
    SvcSetExclusiveCpCmd: SVC_SET_EXCLUSIVE_CP -> (), of (svc_id: u32, exclusive_cp: u8);
    SvcGetExclusiveCpCmd: SVC_GET_EXCLUSIVE_CP -> SvcGetExclusiveCpResp, of (svc_id: u32), response at 8;
    SvcGetVniRangeCmd: SVC_GET_VNI_RANGE -> SvcGetVniRangeResp, of (svc_id: u32), response at 8;
    SvcSetVniRangeCmd: SVC_SET_VNI_RANGE -> (), of (svc_id: u32, vni_min: u32, vni_max: u32);
    SvcSetNetnsCmd: SVC_SET_NETNS -> (), of (svc_id: u32, netns: u32);
    SvcGetNetnsCmd: SVC_GET_NETNS -> SvcGetValueResp, of (svc_id: u32), response at 8;
    SvcAllocParentCmd: SVC_ALLOC_PARENT -> SvcAllocResp, of (svc_desc: SvcDesc), response at 8;
    SvcIsParentGetCmd: SVC_IS_PARENT_GET -> SvcIsParentGetResp, of (svc_id: u32), response at 8;
}
