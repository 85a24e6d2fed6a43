//! Communication profiles: LCIDs of an RGID, handles of a file.

use std::collections::BTreeMap;

use cxi_ioctl::abi::profile::{
    CpAllocCmd, CpAllocResp, CpFreeCmd, CpModifyCmd, LCID_NON_TRIG, LCID_TRIG, TC_BEST_EFFORT,
    TC_BULK_DATA, TC_COUNT, TC_DEDICATED_ACCESS, TC_LOW_LATENCY, TC_TYPE_COLL_LEAF,
    TC_TYPE_DEFAULT, TC_TYPE_HRP, TC_TYPE_RESTRICTED, TrigCpAllocCmd,
};
use cxi_ioctl::{Errno, Opcode};

use super::cp_table::{Cp, Traffic};
use super::dispatch::Call;
use super::profile::{Lookup, Profile, Tx};
use super::rgid::{LCIDS, Lcid};
use super::{Caller, Device, descriptor};
use crate::HazardKind;
use crate::rules::{CpReuse, VniAuthority};

/// Traffic classes there are, Ethernet's included.
const CLASSES: u32 = 8;
const TYPES: u32 = 4;
/// The first class for Ethernet frames by priority.
const FIRST_ETHERNET_CLASS: u32 = 5;
const LAST_ETHERNET_CLASS: u32 = 6;
const MAX_PCP: u32 = 7;

/// What a handle stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpHandle {
    lni: u32,
    tx: Option<u32>,
    /// `None`: nothing was registered.
    place: Option<(u32, usize)>,
}

/// Whether a QoS profile has that class with that type. Profile 1 has dedicated access where
/// profile 2 has low latency.
fn pair_exists(qos_profile: u32, tc: u32, tc_type: u32) -> bool {
    let types: &[u32] = match (qos_profile, tc) {
        (2, TC_LOW_LATENCY) => &[TC_TYPE_DEFAULT, TC_TYPE_COLL_LEAF],
        (1, TC_DEDICATED_ACCESS)
        | (_, TC_BULK_DATA | FIRST_ETHERNET_CLASS..=LAST_ETHERNET_CLASS) => &[TC_TYPE_DEFAULT],
        (_, TC_BEST_EFFORT) => &[TC_TYPE_DEFAULT, TC_TYPE_HRP, TC_TYPE_RESTRICTED],
        _ => &[],
    };
    types.contains(&tc_type)
}

/// Which LCIDs will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CpKind {
    Trigger,
    NonTrigger,
    Any,
}

impl CpKind {
    pub(super) fn of(kind: u32) -> Self {
        match kind {
            LCID_TRIG => Self::Trigger,
            LCID_NON_TRIG => Self::NonTrigger,
            _ => Self::Any,
        }
    }
}

/// Arguments of CP_ALLOC and TRIG_CP_ALLOC.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpRequest {
    pub(super) lni: u32,
    pub(super) vni: u32,
    pub(super) tc: u32,
    pub(super) tc_type: u32,
    pub(super) kind: CpKind,
}

impl Device {
    /// The commands for communication profiles.
    pub(super) fn profile_command(
        &mut self,
        opcode: Opcode,
        call: &mut Call<'_>,
    ) -> Result<(), Errno> {
        let file = call.caller.file;
        match opcode {
            Opcode::CP_ALLOC => {
                let CpAllocCmd {
                    lni,
                    vni,
                    tc,
                    tc_type,
                    ..
                } = call.command()?;
                self.handle_cp_alloc(
                    call,
                    CpRequest {
                        lni,
                        vni,
                        tc,
                        tc_type,
                        kind: CpKind::Any,
                    },
                )
            }
            Opcode::TRIG_CP_ALLOC => {
                let TrigCpAllocCmd {
                    lni,
                    vni,
                    tc,
                    tc_type,
                    cp_type,
                    ..
                } = call.command()?;
                self.handle_cp_alloc(
                    call,
                    CpRequest {
                        lni,
                        vni,
                        tc,
                        tc_type,
                        kind: CpKind::of(cp_type),
                    },
                )
            }
            Opcode::CP_FREE => {
                let command: CpFreeCmd = call.command()?;
                self.cp_free(file, command.cp_hndl)
            }
            Opcode::CP_MODIFY => {
                let command: CpModifyCmd = call.command()?;
                self.cp_modify(&call.caller, command.cp_hndl, command.vni)
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    fn handle_cp_alloc(&mut self, call: &mut Call<'_>, request: CpRequest) -> Result<(), Errno> {
        let (cp_hndl, lcid) = self.cp_alloc(&call.caller, request)?;
        call.made(cp_hndl, &CpAllocResp { cp_hndl, lcid })
    }

    /// CP_ALLOC and TRIG_CP_ALLOC: a handle and an LCID.
    pub(super) fn cp_alloc(
        &mut self,
        caller: &Caller<'_>,
        request: CpRequest,
    ) -> Result<(u32, u32), Errno> {
        let lni = self.lni_of(caller.file, request.lni)?;
        let (svc, rgid, wrong) = (lni.svc, lni.rgid, lni.wrong_rgid.is_some());
        if request.tc >= CLASSES || request.tc_type >= TYPES {
            return Err(Errno::EINVAL);
        }
        let (vni, tx) = self.right_to_send(caller, svc, &request)?;
        if let Some(tx) = tx.and_then(|id| self.tx.get_mut(id)) {
            tx.users += 1;
        }
        let traffic = Traffic {
            vni,
            tc: request.tc,
            tc_type: request.tc_type,
        };
        let placed = self.place_cp(&request, tx, traffic, rgid, wrong);
        let place = match placed {
            Ok(place) => place,
            Err(errno) => {
                self.drop_tx_user(tx);
                return Err(errno);
            }
        };
        let handle = CpHandle {
            lni: request.lni,
            tx: self.referred_profile(tx, place, vni),
            place,
        };
        let file = self.file_mut(caller.file)?;
        let Some(id) = file.cp_ids.alloc() else {
            self.release_cp(handle);
            return Err(Errno::ENOSPC);
        };
        file.cps.put(id, handle);
        self.hold_lni(request.lni);
        let lcid = place.map_or(0, |(_, lcid)| lcid);
        Ok((id, u32::try_from(lcid).unwrap_or(0)))
    }

    /// The VNI, and the profile that lets the caller use it with the class.
    fn right_to_send(
        &mut self,
        caller: &Caller<'_>,
        svc: u32,
        request: &CpRequest,
    ) -> Result<(u16, Option<u32>), Errno> {
        if request.tc >= FIRST_ETHERNET_CLASS {
            if request.vni > MAX_PCP {
                return Err(Errno::EINVAL);
            }
            if !caller.credentials.net_raw {
                return Err(Errno::EPERM);
            }
            return Ok((u16::try_from(request.vni).unwrap_or(0), None));
        }
        let vni = valid_vni(request.vni)?;
        let tc = usize::try_from(request.tc).map_err(|_| Errno::EINVAL)?;
        if self.rules.vni_authority == VniAuthority::Descriptor {
            let group = self.groups.get(svc).ok_or(Errno::EINVAL)?;
            let allowed = descriptor::has_vni(&group.desc, vni)
                && descriptor::traffic_classes(&group.desc)[tc];
            return if allowed {
                Ok((vni, None))
            } else {
                Err(Errno::EINVAL)
            };
        }
        let id = match self.tx.lookup(vni, caller.credentials, &self.rules) {
            Lookup::Found(id) => id,
            Lookup::Refused => return Err(Errno::EPERM),
            Lookup::Unknown if caller.credentials.uid != 0 => return Err(Errno::ENOENT),
            Lookup::Unknown => {
                let mut tcs = [true; TC_COUNT];
                tcs[TC_COUNT - 1] = false;
                let tx = Tx {
                    tcs,
                    exclusive_cp: false,
                    cps: BTreeMap::new(),
                };
                self.tx
                    .add(Profile::private(vni, 0, tx), self.rules.vni_exclusivity)?
            }
        };
        if self.tx.get(id).is_some_and(|tx| tx.extra.tcs[tc]) {
            Ok((vni, Some(id)))
        } else {
            self.remove_tx_if_unused(id);
            Err(Errno::EINVAL)
        }
    }

    /// Finds or makes the LCID for a CP call.
    fn place_cp(
        &mut self,
        request: &CpRequest,
        tx: Option<u32>,
        traffic: Traffic,
        rgid: u32,
        wrong: bool,
    ) -> Result<Option<(u32, usize)>, Errno> {
        if !pair_exists(self.params.active_qos_profile, traffic.tc, traffic.tc_type) {
            return Err(Errno::EINVAL);
        }
        if wrong {
            return Ok(None);
        }
        if let Some(lcid) = self.reusable_lcid(request, traffic, rgid) {
            return Ok(Some((rgid, lcid)));
        }
        let cp = self.enter_cp(tx, traffic)?;
        let entry = self.rgids.get_mut(rgid);
        let free = entry.as_ref().and_then(|entry| {
            let range = match request.kind {
                CpKind::Trigger => 0..1,
                CpKind::NonTrigger => 1..LCIDS,
                CpKind::Any => 0..LCIDS,
            };
            range.into_iter().find(|lcid| entry.lcids[*lcid].is_none())
        });
        let (Some(entry), Some(lcid)) = (entry, free) else {
            self.leave_cp(cp);
            return Err(Errno::ENOSPC);
        };
        entry.lcids[lcid] = Some(Lcid {
            lni: request.lni,
            cp,
            handles: 1,
        });
        self.wire_lcid(rgid, lcid);
        Ok(Some((rgid, lcid)))
    }

    /// Tells the data path what an LCID sends with.
    fn wire_lcid(&self, rgid: u32, index: usize) {
        let lcid = self.rgids.get(rgid).and_then(|rgid| rgid.lcids[index]);
        let cp = lcid.and_then(|lcid| self.cps.table.get(lcid.cp));
        let sends = cp.map(|Cp { traffic, .. }| {
            let high_rate = traffic.tc_type == TC_TYPE_HRP;
            (traffic.vni, traffic.tc, high_rate)
        });
        self.data_path.set_profile(rgid, index, sends);
    }

    /// An LCID of the RGID that stands for the same traffic already, if it may be used again.
    fn reusable_lcid(&mut self, request: &CpRequest, traffic: Traffic, rgid: u32) -> Option<usize> {
        let table = &self.cps.table;
        let same = |lcid: &Lcid| table.get(lcid.cp).is_some_and(|cp| cp.traffic == traffic);
        let entry = self.rgids.get_mut(rgid)?;
        let fits = |index: usize, lcid: &Lcid| match (self.rules.cp_reuse, request.kind) {
            (CpReuse::AnyLcid, _) => true,
            (CpReuse::ByKind, CpKind::Trigger | CpKind::Any) => index == 0,
            (CpReuse::ByKind, CpKind::NonTrigger) => index > 0 && lcid.lni == request.lni,
        };
        let (index, lcid) = entry
            .lcids
            .iter_mut()
            .enumerate()
            .filter_map(|(index, lcid)| Some((index, lcid.as_mut()?)))
            .find(|(index, lcid)| same(lcid) && fits(*index, lcid))?;
        lcid.handles += 1;
        Some(index)
    }

    /// The profile that a handle will give a reference back to: that of the entry in the CP
    /// table, although the reference was taken on the one that admitted the caller.
    fn referred_profile(
        &mut self,
        tx: Option<u32>,
        place: Option<(u32, usize)>,
        vni: u16,
    ) -> Option<u32> {
        let Some((rgid, lcid)) = place else {
            return tx;
        };
        let cp = self.rgids.get(rgid).and_then(|rgid| rgid.lcids[lcid]);
        let of = cp.and_then(|lcid| self.cps.table.get(lcid.cp)?.tx);
        if of != tx {
            self.hazard(HazardKind::ReferenceOnOtherProfile { vni: vni.into() });
        }
        of
    }

    /// CP_FREE.
    pub(super) fn cp_free(&mut self, file: u32, handle: u32) -> Result<(), Errno> {
        let file = self.file_mut(file)?;
        let cp = file.cps.remove(handle).ok_or(Errno::EINVAL)?;
        file.cp_ids.free(handle);
        self.release_cp(cp);
        self.unhold_lni(cp.lni);
        Ok(())
    }

    fn release_cp(&mut self, handle: CpHandle) {
        if let Some((rgid, index)) = handle.place
            && let Some(entry) = self.rgids.get_mut(rgid)
            && let Some(lcid) = entry.lcids.get_mut(index).and_then(Option::as_mut)
        {
            lcid.handles = lcid.handles.saturating_sub(1);
            if lcid.handles == 0 {
                let cp = lcid.cp;
                entry.lcids[index] = None;
                self.wire_lcid(rgid, index);
                self.leave_cp(cp);
            }
        }
        self.check_profile_hazard(handle.tx);
        self.drop_tx_user(handle.tx);
    }

    /// Notes that the driver now frees a profile that it goes on to use.
    fn check_profile_hazard(&mut self, tx: Option<u32>) {
        let Some(tx) = tx.and_then(|id| self.tx.get(id)) else {
            return;
        };
        let vni = tx.vni.into();
        match (tx.creator, tx.users) {
            (false, 1) => self.hazard(HazardKind::ProfileUsedAfterFree { vni }),
            (true, 0) => self.hazard(HazardKind::ProfileFreedInUse { vni }),
            _ => {}
        }
    }

    fn drop_tx_user(&mut self, id: Option<u32>) {
        let Some(id) = id else {
            return;
        };
        if let Some(tx) = self.tx.get_mut(id) {
            tx.users = tx.users.saturating_sub(1);
            self.remove_tx_if_unused(id);
        }
    }

    fn remove_tx_if_unused(&mut self, id: u32) {
        if self.tx.get(id).is_some_and(|tx| tx.references() == 0) {
            self.tx.remove(id);
        }
    }

    /// CP_MODIFY: another VNI for a handle of an exclusive profile.
    pub(super) fn cp_modify(
        &mut self,
        caller: &Caller<'_>,
        handle: u32,
        vni: u32,
    ) -> Result<(), Errno> {
        let file = self.file_mut(caller.file)?;
        let handle = *file.cps.get(handle).ok_or(Errno::EINVAL)?;
        let vni = valid_vni(vni)?;
        let (rgid, index) = handle.place.ok_or(Errno::EINVAL)?;
        let lcid = self.rgids.get(rgid).and_then(|rgid| rgid.lcids[index]);
        let id = lcid.ok_or(Errno::EINVAL)?.cp;
        let Lookup::Found(_) = self.tx.lookup(vni, caller.credentials, &self.rules) else {
            return Err(Errno::EINVAL);
        };
        let cp = self.cps.table.get_mut(id).ok_or(Errno::EINVAL)?;
        let exists = pair_exists(
            self.params.active_qos_profile,
            cp.traffic.tc,
            cp.traffic.tc_type,
        );
        let tx = cp.tx.and_then(|id| self.tx.get(id));
        if !exists || !tx.is_some_and(|tx| tx.extra.exclusive_cp) {
            return Err(Errno::EINVAL);
        }
        cp.traffic.vni = vni;
        Ok(())
    }

    /// Whether an RGID has that LCID.
    pub(super) fn has_lcid(&self, rgid: u32, lcid: u32) -> bool {
        let index = usize::try_from(lcid).unwrap_or(usize::MAX);
        self.rgids
            .get(rgid)
            .is_some_and(|rgid| rgid.lcids.get(index).is_some_and(Option::is_some))
    }
}

/// EINVAL for what is no VNI.
pub(super) fn valid_vni(vni: u32) -> Result<u16, Errno> {
    u16::try_from(vni)
        .ok()
        .filter(|vni| *vni != 0)
        .ok_or(Errno::EINVAL)
}
