//! Operations for which the driver's behavior is undefined or unknown.

use cxi_ioctl::abi::service::{SvcFlags, SvcSetVniRangeCmd};

use crate::sequence::model::{Model, PASSTHROUGH, PCT, PID_ANY, access, classes, has, valid_vni};
use crate::sequence::operation::{Caller, Command, CpRequest};

/// First class for Ethernet, and the last priority of one.
const ETHERNET_CLASS: u32 = 5;
const LAST_PCP: u32 = 7;

pub(super) fn command(state: &Model, file: usize, caller: Caller, command: &Command) -> bool {
    match command {
        Command::SvcSetVniRange(it) => range(state, it),
        // After an update of the VNIs, the driver assumes profiles that do not exist.
        Command::SvcUpdate(it) => {
            let new = &it.svc_desc;
            state.services.get(&new.svc_id).is_none_or(|service| {
                service.restricts_vnis() == has(new, SvcFlags::RESTRICTED_VNIS)
                    && service.descriptor.num_vld_vnis == new.num_vld_vnis
            })
        }
        // What happens to the table entries of CPs that others hold is unknown.
        Command::SvcSetExclusiveCp(it) => state.services.get(&it.svc_id).is_none_or(|service| {
            let tx = service.profiles.first();
            tx.is_none_or(|(tx, _)| state.tx.get(*tx).users == 0)
        }),
        Command::CpAlloc(_) | Command::TrigCpAlloc(_) => {
            let asked = command.profile().unwrap();
            let ethernet = asked.class.0 >= ETHERNET_CLASS && asked.vni <= LAST_PCP;
            !(ethernet && caller.admin) && shares_profile(state, caller, &asked)
        }
        Command::CpModify(it) => state.cps.get(&(file, it.cp_hndl)).is_none_or(|cp| {
            let found = valid_vni(it.vni).and_then(|vni| state.tx.find(vni, caller));
            found.is_err() || found == Ok(cp.profile)
        }),
        Command::DomainAlloc(it) => it.pid != PID_ANY || !any_pid_collides(state, caller, it.vni),
        Command::CqAlloc(it) => of_lni(state, it.lni, it.eq) && !freed_queues_matter(state),
        Command::PteAlloc(it) => of_lni(state, it.lni_hndl, it.evtq_hndl),
        Command::EqAlloc(asked) => {
            let md = state.mds.get(&asked.queue_md);
            let waits = [asked.event_wait, asked.status_wait];
            let own = |wait: &u32| {
                let lni = state.waits.get(&(file, *wait));
                lni.is_none_or(|lni| *lni == asked.lni)
            };
            let spares = state.lnis.get(&asked.lni).map(|lni| &lni.spare_eqs);
            // To which place a reused one returns is unknown.
            let many = spares.is_some_and(|spares| spares.len() > 1);
            let second_pct = asked.attr.flags & PCT != 0 && state.has_pct();
            // The driver's callback refers to the object that had the number before.
            let oldest = spares.and_then(|spares| spares.front());
            let calls_back = oldest.is_some_and(|spare| {
                [0, 1].into_iter().any(|wait| spare.callbacks[wait] && waits[wait] == 0)
            });
            let ignored = asked.attr.flags & PASSTHROUGH != 0;
            (ignored || md.is_none_or(|md| md.lni == asked.lni))
                && waits.iter().all(own)
                && !(second_pct && many)
                && !calls_back
        }
        Command::EqResize(it) => {
            let lni = state.mds.get(&it.queue_md).map(|md| md.lni);
            let eq = state.eqs.get(&it.eq_hndl);
            eq.is_none_or(|eq| eq.md == 0 || lni.is_none_or(|lni| lni == eq.lni))
        }
        _ => true,
    }
}

/// A command that is repeated until it is refused.
pub(super) fn filling(state: &Model, command: &Command) -> bool {
    let freed = state.lnis.values().any(|lni| !lni.freed_queues.is_empty());
    match command {
        Command::CqAlloc(it) => state.lnis.contains_key(&it.lni) && !freed,
        _ => false,
    }
}

/// A second range for a service leaks the first, or leaves a dangling pointer; so does one that
/// only an RX profile stands in the way of. Whether a range that is set after an update has the
/// members and classes from before is not known.
fn range(state: &Model, asked: &SvcSetVniRangeCmd) -> bool {
    let Some(service) = state.services.get(&asked.svc_id) else { return true };
    let rx_only = match (valid_vni(asked.vni_min), valid_vni(asked.vni_max)) {
        (Ok(low), Ok(high)) => state.rx.conflict(low, high) && !state.tx.conflict(low, high),
        _ => false,
    };
    !rx_only
        && !service.has_range()
        && access(&service.descriptor) == Ok(service.access.clone())
        && classes(&service.descriptor) == service.tcs
}

/// A CP that shares an LCID uses the same profile; which of the two holds it is unknown.
fn shares_profile(state: &Model, caller: Caller, asked: &CpRequest) -> bool {
    let (Ok(vni), Some(lni)) = (valid_vni(asked.vni), state.lnis.get(&asked.lni)) else {
        return true;
    };
    let Ok(profile) = state.tx.find(vni, caller) else { return true };
    let shared = state.reusable(lni.rgid, vni, asked);
    let shared = shared.and_then(|lcid| state.lcids.get(&(lni.rgid, lcid)));
    shared.is_none_or(|lcid| lcid.profile == profile)
}

/// The PID that would be chosen is in use through another profile, and so not available to this one.
fn any_pid_collides(state: &Model, caller: Caller, vni: u32) -> bool {
    let Ok(vni) = valid_vni(vni) else { return false };
    let pid = match state.rx.find(vni, caller) {
        Ok(profile) => state.next_pid(profile),
        Err(_) => 0,
    };
    state.pid_is_elsewhere(vni, pid)
}

/// No event queue, an unknown one, or one of the LNI's.
fn of_lni(state: &Model, lni: u32, eq: u32) -> bool {
    state.eqs.get(&eq).is_none_or(|found| found.lni == lni)
}

/// Queue numbers are short, and freed queues of LNIs in use hold some.
fn freed_queues_matter(state: &Model) -> bool {
    let short = state.numbers.held(1) >= 1024 || state.numbers.held(2) >= 512;
    let mut used = state.lnis.values().filter(|lni| lni.file.is_some());
    short && used.any(|lni| !lni.freed_queues.is_empty())
}
