//! The commands for communication profiles: LCIDs of an RGID, handles of a file.

use cxi_engine::CommunicationProfile;
use cxi_ioctl::Errno;
use cxi_ioctl::abi::profile::{
    CpAllocCmd, CpAllocResp, CpModifyCmd, LCID_ANY, LCID_NON_TRIG, LCID_TRIG, TC_BEST_EFFORT,
    TC_BULK_DATA, TC_DEDICATED_ACCESS, TC_LOW_LATENCY, TC_TYPE_COLL_LEAF, TC_TYPE_DEFAULT,
    TC_TYPE_HRP, TC_TYPE_RESTRICTED, TrigCpAllocCmd,
};

use super::{Call, Caller};
use crate::HazardKind;
use crate::data_path::small;
use crate::nic::device::Device;
use crate::nic::parts::cps::Cp;
use crate::nic::parts::descriptor;
use crate::nic::parts::files::CpHandle;
use crate::nic::parts::profile::{Lookup, Traffic};
use crate::nic::parts::rgid::{LCIDS, Lcid};

/// The number of traffic classes, including Ethernet's.
const CLASSES: u32 = 8;
const TYPES: u32 = 4;
/// The first class for Ethernet frames by priority.
const FIRST_ETHERNET_CLASS: u32 = 5;
const LAST_ETHERNET_CLASS: u32 = 6;
/// Ethernet has eight priorities.
const MAX_PCP: u16 = 7;

/// Returns whether a QoS profile has that class with that type. Profile 1 has dedicated access
/// where profile 2 has low latency.
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

pub(super) fn cp_alloc(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let command: CpAllocCmd = call.command()?;
    let mut request = TrigCpAllocCmd::new();
    (request.lni, request.vni) = (command.lni, command.vni);
    (request.tc, request.tc_type) = (command.tc, command.tc_type);
    request.cp_type = LCID_ANY;
    device.cp_alloc(call, &request)
}

pub(super) fn trig_cp_alloc(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    device.cp_alloc(call, &call.command()?)
}

pub(super) fn cp_modify(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    device.cp_modify(&call.caller, call.command()?)
}

impl Device {
    fn cp_alloc(&mut self, call: &mut Call<'_>, request: &TrigCpAllocCmd) -> Result<(), Errno> {
        let caller = &call.caller;
        let lni = self.lni_of(caller.file, request.lni)?;
        let (svc, rgid, wrong) = (lni.svc, lni.rgid, lni.wrong_rgid.is_some());
        if request.tc >= CLASSES || request.tc_type >= TYPES {
            return Err(Errno::EINVAL);
        }
        let (vni, tx) = self.right_to_send(caller, svc, request)?;
        let traffic = Traffic { vni, tc: request.tc, tc_type: request.tc_type };
        let place = self.place_cp(request, tx, traffic, rgid, wrong);
        let place = place.inspect_err(|_| self.vnis.drop_tx_user(tx))?;
        let lcid = place.map_or(0, |(_, lcid)| lcid);
        let lcid = u32::try_from(lcid).map_err(|_| Errno::EINVAL)?;
        let handle = CpHandle { tx: self.referred_profile(tx, place, vni), place };
        let id = self.files.get_mut(caller.file)?.cps.add((caller.file, request.lni), handle)?;
        self.lnis.live.hold(request.lni);
        call.made(id, &CpAllocResp { cp_hndl: id, lcid })
    }

    /// Returns the VNI, and the profile that lets the caller use it with the class, with one more
    /// user. Where there are profiles, the service does not matter: anyone who has a profile for
    /// the VNI may send.
    fn right_to_send(
        &mut self,
        caller: &Caller<'_>,
        svc: u32,
        request: &TrigCpAllocCmd,
    ) -> Result<(u16, Option<u32>), Errno> {
        if request.tc >= FIRST_ETHERNET_CLASS {
            // The VNI is a priority here. EINVAL for a bad one precedes EPERM for the caller.
            let priority = u16::try_from(request.vni).ok();
            let priority = priority.filter(|priority| *priority <= MAX_PCP).ok_or(Errno::EINVAL)?;
            if !caller.credentials.net_raw {
                return Err(Errno::EPERM);
            }
            return Ok((priority, None));
        }
        let vni = valid_vni(request.vni)?;
        let tc = usize::try_from(request.tc).map_err(|_| Errno::EINVAL)?;
        if !self.rules.has_profiles {
            let desc = &self.services.get(svc)?.desc;
            let allowed = descriptor::has_vni(desc, vni) && descriptor::traffic_classes(desc)[tc];
            return allowed.then_some((vni, None)).ok_or(Errno::EINVAL);
        }
        let tx = self.vnis.right_to_send(caller.credentials, vni, tc)?;
        Ok((vni, Some(tx)))
    }

    /// Finds or makes the LCID for a CP call.
    fn place_cp(
        &mut self,
        request: &TrigCpAllocCmd,
        tx: Option<u32>,
        traffic: Traffic,
        rgid: u32,
        wrong: bool,
    ) -> Result<Option<(u32, usize)>, Errno> {
        if !pair_exists(self.params.active_qos_profile, traffic.tc, traffic.tc_type) {
            return Err(Errno::EINVAL);
        }
        if wrong {
            // The driver registers it under the RGID that it believes the LNI to have.
            return Ok(None);
        }
        let same = |lcid: &Lcid| self.cps.get(lcid.cp).is_some_and(|cp| cp.traffic == traffic);
        let fits = |index: usize, lcid: &Lcid| match request.cp_type {
            _ if !self.rules.cp_reuse_by_kind => true,
            LCID_NON_TRIG => index > 0 && lcid.lni == request.lni,
            // A request for any LCID counts as one for LCID 0 here.
            _ => index == 0,
        };
        let will_do = |index: usize, lcid: &Lcid| same(lcid) && fits(index, lcid);
        if let Some(lcid) = self.rgids.reuse_lcid(rgid, will_do) {
            return Ok(Some((rgid, lcid)));
        }
        // The driver takes an entry of the CP table first, and returns it if there is no LCID. Both
        // failures are ENOSPC, so the order shows only in the use of a freed entry.
        let found = self.cps.find(&mut self.vnis, tx, traffic).unwrap_or_else(|hazard| {
            self.hazard(hazard);
            None
        });
        let range = match request.cp_type {
            LCID_TRIG => 0..1,
            LCID_NON_TRIG => 1..LCIDS,
            _ => 0..LCIDS,
        };
        let lcid = self.rgids.free_lcid(rgid, range).ok_or(Errno::ENOSPC)?;
        let cp = self.cps.enter(&mut self.vnis, tx, traffic, found)?;
        self.rgids.set_lcid(rgid, lcid, request.lni, cp);
        self.wire_lcid(rgid, lcid);
        Ok(Some((rgid, lcid)))
    }

    /// Tells the data path what an LCID sends with.
    fn wire_lcid(&self, rgid: u32, index: usize) {
        let lcid = self.rgids.lcid(rgid, index);
        let cp = lcid.and_then(|lcid| self.cps.get(lcid.cp));
        let profile = cp.map(|Cp { traffic, .. }| CommunicationProfile {
            vni: traffic.vni,
            traffic_class: traffic.tc.to_le_bytes()[0],
            high_rate: traffic.tc_type == TC_TYPE_HRP,
        });
        let lcid = index.to_le_bytes()[0];
        let engine = &mut self.data_path.state().engine;
        engine.set_profile(small(rgid), lcid, profile);
    }

    /// The profile that a handle will give a reference back to: that of the entry in the CP
    /// table, although the reference was taken on the one that admitted the caller.
    fn referred_profile(
        &mut self,
        tx: Option<u32>,
        place: Option<(u32, usize)>,
        vni: u16,
    ) -> Option<u32> {
        let Some((rgid, lcid)) = place else { return tx };
        let lcid = self.rgids.lcid(rgid, lcid);
        let of = lcid.and_then(|lcid| self.cps.get(lcid.cp)?.tx);
        if of != tx {
            self.hazard(HazardKind::ReferenceOnOtherProfile { vni: vni.into() });
        }
        of
    }

    pub(super) fn cp_free(&mut self, file: u32, handle: u32) -> Result<(), Errno> {
        let handle = self.files.get_mut(file)?.cps.remove(file, handle)?;
        if let Some((rgid, index)) = handle.place
            && let Some(cp) = self.rgids.drop_handle(rgid, index)
        {
            self.wire_lcid(rgid, index);
            if let Some(hazard) = self.cps.leave(&mut self.vnis, cp) {
                self.hazard(hazard);
            }
        }
        self.check_profile_hazard(handle.tx);
        self.vnis.drop_tx_user(handle.tx);
        self.lnis.live.release(handle.lni);
        Ok(())
    }

    /// Records that the driver now frees a profile that it continues to use.
    fn check_profile_hazard(&mut self, tx: Option<u32>) {
        let Some(tx) = tx.and_then(|id| self.vnis.tx().get(id)) else { return };
        let vni = tx.vni.into();
        match (tx.creator, tx.users) {
            (false, 1) => self.hazard(HazardKind::ProfileUsedAfterFree { vni }),
            (true, 0) => self.hazard(HazardKind::ProfileFreedInUse { vni }),
            _ => {}
        }
    }

    /// Another VNI for a handle of an exclusive profile.
    fn cp_modify(&mut self, caller: &Caller<'_>, command: CpModifyCmd) -> Result<(), Errno> {
        let cps = &self.files.get(caller.file)?.cps;
        let handle = **cps.of(caller.file, command.cp_hndl)?;
        let vni = valid_vni(command.vni)?;
        let (rgid, index) = handle.place.ok_or(Errno::EINVAL)?;
        let id = self.rgids.lcid(rgid, index).ok_or(Errno::EINVAL)?.cp;
        let Lookup::Found(_) = self.vnis.tx().lookup(vni, caller.credentials, &self.rules) else {
            return Err(Errno::EINVAL);
        };
        let cp = self.cps.get_mut(id).ok_or(Errno::EINVAL)?;
        let Traffic { tc, tc_type, .. } = cp.traffic;
        let exists = pair_exists(self.params.active_qos_profile, tc, tc_type);
        if !exists || !self.vnis.is_exclusive(cp.tx) {
            return Err(Errno::EINVAL);
        }
        cp.traffic.vni = vni;
        Ok(())
    }
}

/// EINVAL for anything but a VNI.
pub(super) fn valid_vni(vni: u32) -> Result<u16, Errno> {
    u16::try_from(vni).ok().filter(|vni| *vni != 0).ok_or(Errno::EINVAL)
}
