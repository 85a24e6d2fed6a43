//! The errnos that each command can fail with, by release.

use cxi_ioctl::{DriverRelease, Effect, Errno, Opcode, Privilege};

/// A choice of the errnos that a command can return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Errnos {
    /// Those of a correct command on a healthy node: something is full, busy or taken, or the NIC is
    /// gone.
    #[default]
    Likely,
    /// All of them.
    All,
}

/// Errnos of a command beyond those that follow from its kind.
struct Line {
    opcode: Opcode,
    /// Those that a correct command can meet.
    likely: &'static [Errno],
    /// Those that need a wrong command, or an object that is gone.
    other: &'static [Errno],
    /// Errnos that not all releases of the command return, with the first and the last one that do.
    limited: &'static [(Errno, DriverRelease, DriverRelease)],
}

macro_rules! lines {
    ($($opcode:ident: [$($likely:ident)*] $($other:ident)*
        $(, $limited:ident $since:ident $until:ident)*;)*) => {
        const LINES: &[Line] = &[ $(
            Line {
                opcode: Opcode::$opcode,
                likely: &[$(Errno::$likely),*],
                other: &[$(Errno::$other),*],
                limited: &[$((Errno::$limited, DriverRelease::$since, lines!(@until $until))),*],
            },
        )* ];
    };
    (@until on) => { DriverRelease::NEWEST };
    (@until $until:ident) => { DriverRelease::$until };
}

// The likely ones in brackets, then the others, then those of some releases, to the newest (`on`) or
// to one. Not here: EIO of a NIC that is gone, and what follows from the kind of the command (see
// `Errnos::of`).
lines! {
    LNI_ALLOC: [EKEYREVOKED ENOSPC EPERM] EINVAL;
    LNI_FREE: [EBUSY] EINVAL;
    DOMAIN_RESERVE: [EEXIST ENOSPC] EINVAL, EEXIST Shs12_0 Shs12_0, EEXIST Shs13_1 on;
    DOMAIN_ALLOC: [EEXIST ENOSPC] EINVAL, EPERM Shs13_1 on, ENOENT Shs13_1 on;
    DOMAIN_FREE: [EBUSY] EINVAL;
    CP_ALLOC: [ENOSPC EPERM] EINVAL, ENOENT Shs13_0 on, EEXIST Shs13_0 Shs13_0;
    CP_FREE: [] EINVAL;
    CP_MODIFY: [] EINVAL;
    TRIG_CP_ALLOC: [ENOSPC EPERM] EINVAL ENOENT;
    CQ_ALLOC: [ENOSPC] E2BIG EBADR EINVAL EPERM;
    CQ_ALLOC_BUF: [ENOSPC] E2BIG EINVAL EOPNOTSUPP EOVERFLOW;
    CQ_FREE: [] EINVAL;
    CQ_ACK_COUNTER: [] EINVAL;
    ATU_MAP: [ENOSPC] EBADR EFAULT EINVAL EOPNOTSUPP, EOVERFLOW Main2026_07 on;
    ATU_UNMAP: [EBUSY] EINVAL;
    ATU_UPDATE_MD: [] EINVAL, EOPNOTSUPP Main2026_07 on, EOVERFLOW Main2026_07 on;
    EQ_ALLOC: [ENOSPC] EBADR EEXIST EINVAL EPERM;
    EQ_FREE: [EBUSY] EINVAL;
    EQ_RESIZE: [] EINVAL;
    EQ_RESIZE_COMPLETE: [] EINVAL;
    EQ_ADJUST_RESERVED_FC: [ENOSPC] EINVAL;
    PTE_ALLOC: [ENOSPC] EBADR EINVAL EPERM;
    PTE_FREE: [EBUSY] EINVAL;
    PTE_MAP: [ENOSPC] EINVAL;
    PTE_UNMAP: [] EINVAL;
    PTE_LE_INVALIDATE: [] EINVAL;
    PTE_TRANSITION_SM: [EAGAIN] EINVAL, EOPNOTSUPP Main2026_07 on;
    WAIT_ALLOC: [] EINVAL;
    WAIT_FREE: [EBUSY] EINVAL;
    CT_ALLOC: [ENOSPC] EBADR EINVAL;
    CT_FREE: [] EINVAL;
    CT_WB_UPDATE: [] EINVAL, EOPNOTSUPP Main2026_07 on;
    SVC_ALLOC: [ENOSPC] EINVAL, EEXIST Shs13_0 on, EBADR Shs13_0 on;
    SVC_ALLOC_PARENT: [ENOSPC] EINVAL EEXIST EBADR;
    SVC_DESTROY: [EBUSY] EINVAL;
    SVC_UPDATE: [EBUSY ENOSPC] EINVAL;
    SVC_ENABLE: [EBUSY ENOSPC] EINVAL;
    SVC_GET: [] EINVAL;
    SVC_RSRC_GET: [] EINVAL;
    SVC_RSRC_LIST_GET: [], EINVAL Main2026_07 on;
    SVC_SET_LPR: [EBUSY] EINVAL;
    SVC_SET_EXCLUSIVE_CP: [EBUSY] EINVAL;
    SVC_GET_EXCLUSIVE_CP: [] EINVAL ENOENT;
    SVC_IS_PARENT_GET: [] EINVAL;
    SVC_SET_VNI_RANGE: [EEXIST] EINVAL, EBADR Shs14_0_1 on;
    SVC_GET_VNI_RANGE: [] EINVAL ENOENT EOPNOTSUPP;
    SVC_SET_NETNS: [EBUSY EEXIST] EBADR EINVAL ENODATA;
    SVC_GET_NETNS: [] EINVAL;
    MAP_CSRS: [EALREADY];
}

impl Errnos {
    /// The errnos that a driver of this release can return for a command, in the order of their
    /// numbers; EINVAL alone if it has no such command, and EOPNOTSUPP if it has no handler for it.
    ///
    /// ```
    /// use cxi_ioctl::{DriverRelease, Errno, Opcode};
    /// use cxi_mock::Errnos;
    ///
    /// let likely = Errnos::Likely.of(Opcode::SVC_DESTROY, DriverRelease::Shs14_0_1);
    /// assert_eq!(likely, [Errno::EIO, Errno::EBUSY]);
    /// let all = Errnos::All.of(Opcode::SVC_ALLOC, DriverRelease::Shs12_0);
    /// // That release lets several services have the same VNI.
    /// assert!(all.contains(&Errno::EFAULT) && !all.contains(&Errno::EEXIST));
    /// ```
    #[must_use]
    pub fn of(self, opcode: Opcode, release: DriverRelease) -> Vec<Errno> {
        let Some(info) = opcode.info().filter(|info| info.since <= release) else {
            return vec![Errno::EINVAL];
        };
        let Some(handler) = info.handler else { return vec![Errno::EOPNOTSUPP] };
        let mut errnos = vec![Errno::EIO];
        let line = LINES.iter().find(|line| line.opcode == opcode);
        // What only some releases return is listed for those alone, even if it is likely.
        let limited = |errno: &Errno| {
            line.is_some_and(|line| line.limited.iter().any(|(limited, ..)| limited == errno))
        };
        let returns = |(_, since, until): &&(Errno, DriverRelease, DriverRelease)| {
            (*since..=*until).contains(&release)
        };
        if let Some(line) = line {
            errnos.extend(line.likely.iter().filter(|errno| !limited(errno)));
            let some = line.limited.iter().filter(returns).map(|(errno, ..)| *errno);
            let wanted = |errno: &Errno| self == Self::All || line.likely.contains(errno);
            errnos.extend(some.filter(wanted));
            if self == Self::All {
                errnos.extend(line.other.iter().filter(|errno| !limited(errno)));
            }
        }
        if self == Self::All {
            if handler.privilege == Privilege::Admin {
                errnos.push(Errno::EPERM);
            }
            // The response does not reach the caller.
            if handler.response_len > 0 {
                errnos.push(Errno::EFAULT);
            }
            let takes_memory = matches!(handler.effect, Effect::Makes(_))
                || matches!(opcode, Opcode::SVC_LIST_GET | Opcode::SVC_RSRC_LIST_GET);
            if takes_memory {
                errnos.push(Errno::ENOMEM);
            }
        }
        errnos.sort_unstable_by_key(|errno| errno.raw());
        errnos.dedup();
        errnos
    }
}
