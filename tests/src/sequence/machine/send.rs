//! Commands as bytes, and what comes back.

use crate::device::Buffers;
use cxi_ioctl::abi::counter::{CtAllocCmd, CtAllocResp, CtFreeCmd, CtWbUpdateCmd};
use cxi_ioctl::abi::domain::{
    DomainAllocCmd, DomainAllocResp, DomainFreeCmd, DomainReserveCmd, DomainReserveResp,
};
use cxi_ioctl::abi::lni::{LniAllocCmd, LniAllocCmdV1, LniFreeCmd};
use cxi_ioctl::abi::memory::{AtuMapCmd, AtuMapResp, AtuUnmapCmd, AtuUpdateMdCmd};
use cxi_ioctl::abi::portal::{
    PteAllocCmd, PteAllocResp, PteFreeCmd, PteMapCmd, PteMapResp, PteTransitionSmCmd, PteUnmapCmd,
};
use cxi_ioctl::abi::profile::{CpAllocCmd, CpAllocResp, CpFreeCmd, CpModifyCmd, TrigCpAllocCmd};
use cxi_ioctl::abi::queue::{
    CqAllocCmd, CqAllocResp, CqFreeCmd, EqAdjustReservedFcCmd, EqAdjustReservedFcCmdV1,
    EqAdjustReservedFcResp, EqAllocCmd, EqAllocResp, EqFreeCmd, EqResizeCmd, EqResizeCompleteCmd,
};
use cxi_ioctl::abi::service::{
    SvcAllocCmd, SvcAllocResp, SvcDestroyCmd, SvcEnableCmd, SvcSetExclusiveCpCmd, SvcSetLprCmd,
    SvcSetVniRangeCmd, SvcUpdateCmd,
};
use cxi_ioctl::abi::wait::{WaitAllocCmd, WaitAllocResp, WaitFreeCmd};
use cxi_ioctl::{DriverRelease, Errno};
use cxi_mock::{Client, Credentials};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::descriptor::to_abi;
use crate::sequence::model::{Answer, FailInfo};
use crate::sequence::operation::{Caller, Command};

type Written = (Result<(), Errno>, Option<Vec<u8>>);

pub(super) fn write<C: IntoBytes + Immutable>(
    client: &Client,
    caller: &Credentials,
    command: &C,
) -> Written {
    let mut buffers = Buffers::default();
    let result = client.write(caller, command.as_bytes(), &mut buffers);
    if let Ok(length) = result {
        assert_eq!(length, size_of::<C>());
    }
    (result.map(|_| ()), buffers.response)
}

/// Makes a command, sets the fields, and writes it.
macro_rules! written {
    ($client:ident, $command:ident, $($field:ident $(. $part:ident)? = $value:expr),+) => {{
        let mut command = $command::new();
        $(command.$field $(.$part)? = $value;)+
        write($client.0, &$client.1, &command)
    }};
}

pub(super) fn send(
    client: &Client,
    release: DriverRelease,
    caller: Caller,
    command: &Command,
) -> Answer {
    let mut credentials = Credentials::user(caller.uid, caller.gid);
    credentials.sys_admin = caller.admin;
    credentials.net_raw = caller.admin;
    credentials.netns = caller.netns;
    let to = (client, credentials);
    let (result, response) = match command {
        Command::SvcAlloc(new) => written!(to, SvcAllocCmd, svc_desc = to_abi(new)),
        Command::SvcUpdate(new) => written!(to, SvcUpdateCmd, svc_desc = to_abi(new)),
        Command::SvcDestroy { svc_id } => written!(to, SvcDestroyCmd, svc_id = *svc_id),
        Command::SvcEnable { svc_id, enable } => {
            written!(
                to,
                SvcEnableCmd,
                svc_id = *svc_id,
                enable = (*enable).into()
            )
        }
        Command::SvcSetLpr {
            svc_id,
            lnis_per_rgid,
        } => written!(
            to,
            SvcSetLprCmd,
            svc_id = *svc_id,
            lnis_per_rgid = *lnis_per_rgid
        ),
        Command::SvcSetVniRange { svc_id, min, max } => written!(
            to,
            SvcSetVniRangeCmd,
            svc_id = *svc_id,
            vni_min = *min,
            vni_max = *max
        ),
        Command::SvcSetExclusiveCp { svc_id, exclusive } => written!(
            to,
            SvcSetExclusiveCpCmd,
            svc_id = *svc_id,
            exclusive_cp = (*exclusive).into()
        ),
        Command::LniAlloc { svc_id } if release == DriverRelease::Main => {
            written!(to, LniAllocCmd, svc_id = *svc_id)
        }
        Command::LniAlloc { svc_id } => written!(to, LniAllocCmdV1, svc_id = *svc_id),
        Command::LniFree { lni } => written!(to, LniFreeCmd, lni = *lni),
        Command::EqAdjust { eq, change } if release == DriverRelease::Main => {
            written!(to, EqAdjustReservedFcCmd, eq_hndl = *eq, value = *change)
        }
        Command::EqAdjust { eq, change } => {
            written!(to, EqAdjustReservedFcCmdV1, eq_hndl = *eq, value = *change)
        }
        on_network => network_command(&to, on_network),
    };
    answer(command, result, response)
}

/// CPs and domains.
fn network_command(to: &(&Client, Credentials), command: &Command) -> Written {
    match command {
        Command::CpAlloc {
            lni,
            vni,
            tc,
            tc_type,
            kind: None,
        } => written!(
            to,
            CpAllocCmd,
            lni = *lni,
            vni = *vni,
            tc = *tc,
            tc_type = *tc_type
        ),
        Command::CpAlloc {
            lni,
            vni,
            tc,
            tc_type,
            kind: Some(kind),
        } => written!(
            to,
            TrigCpAllocCmd,
            lni = *lni,
            vni = *vni,
            tc = *tc,
            tc_type = *tc_type,
            cp_type = *kind
        ),
        Command::CpFree { cp } => written!(to, CpFreeCmd, cp_hndl = *cp),
        Command::CpModify { cp, vni } => written!(to, CpModifyCmd, cp_hndl = *cp, vni = *vni),
        Command::DomainReserve {
            lni,
            vni,
            pid,
            count,
        } => written!(
            to,
            DomainReserveCmd,
            lni = *lni,
            vni = *vni,
            pid = *pid,
            count = *count
        ),
        Command::DomainAlloc { lni, vni, pid } => {
            written!(to, DomainAllocCmd, lni = *lni, vni = *vni, pid = *pid)
        }
        Command::DomainFree { domain } => written!(to, DomainFreeCmd, domain = *domain),
        of_lni => object_command(to, of_lni),
    }
}

/// What an LNI has of its own.
fn object_command(to: &(&Client, Credentials), command: &Command) -> Written {
    match command {
        Command::CqAlloc(asked) => written!(
            to,
            CqAllocCmd,
            lni = asked.lni,
            eq = asked.eq,
            opts.count = asked.count,
            opts.policy = asked.policy,
            opts.flags = asked.flags,
            opts.lcid = asked.lcid,
            opts.lpe_cdt_thresh_id = asked.threshold
        ),
        Command::CqFree { cq } => written!(to, CqFreeCmd, cq = *cq),
        Command::EqAlloc(asked) => written!(
            to,
            EqAllocCmd,
            lni = asked.lni,
            queue_md = asked.md,
            event_wait = asked.event_wait,
            status_wait = asked.status_wait,
            attr.queue = asked.queue,
            attr.queue_len = asked.len,
            attr.flags = asked.flags,
            attr.reserved_slots = asked.reserved_slots,
            attr.status_thresh_base = asked.thresholds.0,
            attr.status_thresh_delta = asked.thresholds.1,
            attr.status_thresh_count = asked.thresholds.2
        ),
        Command::EqFree { eq } => written!(to, EqFreeCmd, eq = *eq),
        Command::EqResize { eq, md, queue, len } => written!(
            to,
            EqResizeCmd,
            eq_hndl = *eq,
            queue_md = *md,
            queue = *queue,
            queue_len = *len
        ),
        Command::EqResizeComplete { eq } => written!(to, EqResizeCompleteCmd, eq_hndl = *eq),
        Command::PteAlloc { lni, eq, options } => written!(
            to,
            PteAllocCmd,
            lni_hndl = *lni,
            evtq_hndl = *eq,
            opts.bits = *options
        ),
        Command::PteFree { pte } => written!(to, PteFreeCmd, pte_number = *pte),
        Command::PteMap {
            pte,
            domain,
            offset,
            multicast,
        } => written!(
            to,
            PteMapCmd,
            pte_number = *pte,
            domain_hndl = *domain,
            pid_offset = *offset,
            is_multicast = (*multicast).into()
        ),
        Command::PteTransition { pte, drop_count } => written!(
            to,
            PteTransitionSmCmd,
            pte_index = *pte,
            drop_count = *drop_count
        ),
        Command::PteUnmap { index } => written!(to, PteUnmapCmd, pte_index = *index),
        Command::CtAlloc { lni, writeback } => {
            written!(to, CtAllocCmd, lni = *lni, wb = *writeback)
        }
        Command::CtFree { ct } => written!(to, CtFreeCmd, ctn = *ct),
        Command::AtuMap {
            lni,
            va,
            len,
            flags,
        } => written!(
            to,
            AtuMapCmd,
            lni = *lni,
            va = *va,
            len = *len,
            flags = *flags
        ),
        Command::CtUpdate { ct, writeback } => {
            written!(to, CtWbUpdateCmd, ctn = *ct, wb = *writeback)
        }
        Command::AtuUpdate { md, va, len, flags } => written!(
            to,
            AtuUpdateMdCmd,
            id = *md,
            va = *va,
            len = *len,
            flags = *flags
        ),
        Command::AtuUnmap { md } => written!(to, AtuUnmapCmd, id = *md),
        Command::WaitAlloc { lni } => written!(to, WaitAllocCmd, lni = *lni),
        Command::WaitFree { wait } => written!(to, WaitFreeCmd, wait = *wait),
        other => panic!("{other:?} is not a command for objects"),
    }
}

fn answer(command: &Command, result: Result<(), Errno>, response: Option<Vec<u8>>) -> Answer {
    match (command, response) {
        (Command::SvcAlloc(_), Some(bytes)) => {
            let response: SvcAllocResp = read(&bytes);
            assert_eq!(response.fail_info.no_cntr_pools, 0);
            let info = FailInfo {
                rsrc_avail: response.fail_info.rsrc_avail,
                no_le_pools: response.fail_info.no_le_pools != 0,
                no_tle_pools: response.fail_info.no_tle_pools != 0,
            };
            Answer::Allocated {
                svc_id: response.svc_id,
                result,
                info,
            }
        }
        (Command::SvcUpdate(_), Some(bytes)) => {
            assert_eq!(bytes, [0; 20]);
            Answer::Updated(result)
        }
        (command, Some(bytes)) if result.is_ok() => Answer::Values(values(command, &bytes)),
        (_, Some(bytes)) => panic!("{command:?} wrote a response: {bytes:?} ({result:?})"),
        (_, None) => result.map_or_else(Answer::Failed, |()| Answer::Ok),
    }
}

/// The numbers of a response that the reference knows.
fn values(command: &Command, bytes: &[u8]) -> Vec<u32> {
    match command {
        Command::LniAlloc { .. } => vec![read(bytes)],
        Command::CpAlloc { .. } => {
            let response: CpAllocResp = read(bytes);
            vec![response.cp_hndl, response.lcid]
        }
        Command::DomainReserve { .. } => vec![read::<DomainReserveResp>(bytes).pid],
        Command::DomainAlloc { .. } => {
            let response: DomainAllocResp = read(bytes);
            vec![response.domain, response.vni, response.pid]
        }
        Command::CqAlloc(_) => {
            let response: CqAllocResp = read(bytes);
            vec![response.cq, response.count]
        }
        Command::EqAlloc(_) => vec![read::<EqAllocResp>(bytes).eq],
        Command::EqAdjust { .. } => {
            let response: EqAdjustReservedFcResp = read(bytes);
            vec![u32::try_from(response.reserved_fc).unwrap()]
        }
        Command::PteAlloc { .. } => vec![read::<PteAllocResp>(bytes).pte_number],
        Command::PteMap { .. } => vec![read::<PteMapResp>(bytes).pte_index],
        Command::CtAlloc { .. } => vec![read::<CtAllocResp>(bytes).ctn],
        Command::AtuMap { .. } => {
            let response: AtuMapResp = read(bytes);
            vec![response.id, u32::from(response.md.lac)]
        }
        Command::WaitAlloc { .. } => {
            let response: WaitAllocResp = read(bytes);
            vec![response.client_id, response.wait]
        }
        other => panic!("{other:?} has no response"),
    }
}

fn read<T: FromBytes>(bytes: &[u8]) -> T {
    T::read_from_bytes(bytes).unwrap()
}
