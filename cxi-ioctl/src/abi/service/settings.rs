//! Settings of a service that are not in its descriptor.

use crate::layout::{abi, commands};

abi! {
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

    /// Sets whether each LNI gets a communication profile of its own. From SHS 13.1.
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
        /// Non-zero: every LNI gets a communication profile of its own.
        exclusive_cp: u8 = 8 + 3,
    }

    /// Tells whether each LNI gets a communication profile of its own. From SHS 13.1.
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
        /// Non-zero: every LNI gets a communication profile of its own.
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
}

commands! {
    SvcGetLprCmd: SVC_GET_LPR -> SvcGetValueResp, of svc_id, response at 8;
    SvcSetLprCmd: SVC_SET_LPR -> ();
    SvcSetExclusiveCpCmd: SVC_SET_EXCLUSIVE_CP -> ();
    SvcGetExclusiveCpCmd: SVC_GET_EXCLUSIVE_CP -> SvcGetExclusiveCpResp, of svc_id, response at 8;
    SvcGetVniRangeCmd: SVC_GET_VNI_RANGE -> SvcGetVniRangeResp, of svc_id, response at 8;
    SvcSetVniRangeCmd: SVC_SET_VNI_RANGE -> ();
    SvcSetNetnsCmd: SVC_SET_NETNS -> ();
    SvcGetNetnsCmd: SVC_GET_NETNS -> SvcGetValueResp, of svc_id, response at 8;
}
