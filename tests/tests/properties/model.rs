//! The reference: services, LNIs and RGIDs as plain maps.

use std::collections::{BTreeMap, BTreeSet};

use cxi_ioctl::Errno;

use crate::operation::{Caller, Command, Descriptor, Member, Operation};
use crate::reservation::{FailInfo, Reservation, Reservations, TOTALS};

/// Number of slots for open files.
pub(crate) const FILES: usize = 3;

const IGNORE: u32 = 0;
const UID: u32 = 1;
const GID: u32 = 2;
const MEMBER_KINDS: u32 = 4;
const DEFAULT_SERVICE: u32 = 1;
const RGIDS: u32 = 255;

/// Who may use a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Open,
    Members(Vec<Member>),
}

/// The VNIs that a service holds profiles for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Vnis {
    List(Vec<u16>),
    Range(u16, u16),
    None,
}

#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub descriptor: Descriptor,
    pub enabled: bool,
    pub access: Access,
    pub vnis: Vnis,
    pub lnis_per_rgid: u32,
    pub held: Reservation,
}

#[derive(Clone, Debug)]
pub(crate) struct Lni {
    pub file: usize,
    pub svc_id: u32,
    pub rgid: u32,
}

/// What a step has to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Ok,
    Failed(Errno),
    Allocated {
        svc_id: u32,
        result: Result<(), Errno>,
        info: FailInfo,
    },
    Updated(Result<(), Errno>),
    Lni(u32),
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub services: BTreeMap<u32, Service>,
    pub lnis: BTreeMap<u32, Lni>,
    pub open: [bool; FILES],
    pub device: Reservations,
    /// What the last step has to answer.
    pub answer: Answer,
    /// The last step failed, but the driver leaves a trace all the same.
    pub leaves_trace: bool,
}

impl Model {
    /// The device as loaded, with no file open.
    pub(crate) fn loaded() -> Self {
        let (device, held) = Reservations::loaded();
        let descriptor = Descriptor {
            restricted_vnis: true,
            resource_limits: true,
            num_vld_vnis: 2,
            vnis: [1, 10, 0, 0],
            tcs: [true, true, true, true, false],
            limits: held.limits,
            svc_id: DEFAULT_SERVICE,
            ..Descriptor::default()
        };
        let default = Service {
            descriptor,
            enabled: false,
            access: Access::Open,
            vnis: Vnis::List(vec![1, 10]),
            lnis_per_rgid: 1,
            held,
        };
        Self {
            services: BTreeMap::from([(DEFAULT_SERVICE, default)]),
            lnis: BTreeMap::new(),
            open: [false; FILES],
            device,
            answer: Answer::Ok,
            leaves_trace: false,
        }
    }

    /// Does a step.
    pub(crate) fn apply(&mut self, operation: &Operation) {
        self.leaves_trace = false;
        self.answer = match operation {
            Operation::Open { file } => {
                self.open[*file] = true;
                Answer::Ok
            }
            Operation::Close { file } => {
                self.open[*file] = false;
                self.lnis.retain(|_, lni| lni.file != *file);
                Answer::Ok
            }
            Operation::Command {
                caller, command, ..
            } if command.needs_admin() && !caller.admin => Answer::Failed(Errno::EPERM),
            Operation::Command {
                file,
                caller,
                command,
            } => self.command(*file, *caller, command),
        };
    }

    fn command(&mut self, file: usize, caller: Caller, command: &Command) -> Answer {
        let result = match command {
            Command::SvcAlloc(descriptor) => return self.alloc(descriptor),
            Command::SvcUpdate(descriptor) => return Answer::Updated(self.update(descriptor)),
            Command::LniAlloc { svc_id } => {
                return match self.lni_alloc(file, caller, *svc_id) {
                    Ok(lni) => Answer::Lni(lni),
                    Err(errno) => Answer::Failed(errno),
                };
            }
            Command::SvcDestroy { svc_id } => self.destroy(*svc_id),
            Command::SvcEnable { svc_id, enable } => self.enable(*svc_id, *enable),
            Command::SvcSetLpr {
                svc_id,
                lnis_per_rgid,
            } => self.set_lpr(*svc_id, *lnis_per_rgid),
            Command::SvcSetVniRange { svc_id, min, max } => self.set_range(*svc_id, *min, *max),
            Command::LniFree { lni } => self.lni_free(file, *lni),
        };
        result.map_or_else(Answer::Failed, |()| Answer::Ok)
    }

    fn alloc(&mut self, descriptor: &Descriptor) -> Answer {
        let (result, info) = match self.try_alloc(descriptor) {
            Ok(svc_id) => {
                let info = FailInfo::default();
                return Answer::Allocated {
                    svc_id,
                    result: Ok(()),
                    info,
                };
            }
            Err((errno, info)) => (Err(errno), info),
        };
        Answer::Allocated {
            svc_id: 0,
            result,
            info,
        }
    }

    fn try_alloc(&mut self, asked: &Descriptor) -> Result<u32, (Errno, FailInfo)> {
        let plain = |errno| (errno, FailInfo::default());
        validate(asked).map_err(plain)?;
        let access = access(asked).map_err(plain)?;
        let vnis = if asked.restricted_vnis {
            let listed = &asked.vnis[..usize::from(asked.num_vld_vnis)];
            if listed.iter().any(|vni| self.conflicts(*vni, *vni)) {
                return Err(plain(Errno::EEXIST));
            }
            Vnis::List(listed.to_vec())
        } else {
            Vnis::None
        };
        let limits = asked.resource_limits.then_some(asked.limits);
        let held = self
            .device
            .take(limits)
            .map_err(|info| (Errno::ENOSPC, info))?;
        let svc_id = lowest_free(self.services.keys());
        let enabled = asked.restricted_vnis;
        let mut descriptor = asked.clone();
        descriptor.svc_id = svc_id;
        descriptor.limits = held.limits;
        let service = Service {
            descriptor,
            enabled,
            access,
            vnis,
            lnis_per_rgid: 1,
            held,
        };
        self.services.insert(svc_id, service);
        Ok(svc_id)
    }

    fn update(&mut self, asked: &Descriptor) -> Result<(), Errno> {
        validate(asked)?;
        let service = self.idle(asked.svc_id)?;
        if service.descriptor.resource_limits != asked.resource_limits {
            return Err(Errno::EINVAL);
        }
        self.enable(asked.svc_id, asked.enable)?;
        let service = self.service(asked.svc_id)?;
        let stored = &mut service.descriptor;
        *stored = Descriptor {
            limits: stored.limits,
            is_system_svc: stored.is_system_svc,
            svc_id: stored.svc_id,
            ..asked.clone()
        };
        Ok(())
    }

    fn enable(&mut self, svc_id: u32, enable: bool) -> Result<(), Errno> {
        let service = self.idle(svc_id)?;
        let missing = service.vnis == Vnis::None && service.descriptor.num_vld_vnis > 0;
        if enable && missing {
            service.enabled = false;
            self.leaves_trace = true;
            return Err(Errno::EINVAL);
        }
        service.enabled = enable;
        Ok(())
    }

    fn destroy(&mut self, svc_id: u32) -> Result<(), Errno> {
        if svc_id == DEFAULT_SERVICE {
            return Err(Errno::EINVAL);
        }
        let held = self.idle(svc_id)?.held;
        self.device.give_back(&held);
        self.services.remove(&svc_id);
        Ok(())
    }

    fn set_lpr(&mut self, svc_id: u32, lnis_per_rgid: u32) -> Result<(), Errno> {
        if lnis_per_rgid > 8 {
            return Err(Errno::EINVAL);
        }
        self.idle(svc_id)?.lnis_per_rgid = lnis_per_rgid;
        Ok(())
    }

    fn set_range(&mut self, svc_id: u32, min: u32, max: u32) -> Result<(), Errno> {
        let service = self.service(svc_id)?;
        if service.descriptor.restricted_vnis {
            return Err(Errno::EINVAL);
        }
        let vni = |number: u32| u16::try_from(number).ok().filter(|vni| *vni > 0);
        let (Some(low), Some(high)) = (vni(min), vni(max)) else {
            return Err(Errno::EINVAL);
        };
        let size = (max + 1).saturating_sub(min);
        if !size.is_power_of_two() || !min.is_multiple_of(size) {
            return Err(Errno::EINVAL);
        }
        let conflict = self.conflicts(low, high);
        let service = self.service(svc_id)?;
        service.descriptor.num_vld_vnis = 1;
        if conflict {
            self.leaves_trace = true;
            return Err(Errno::EEXIST);
        }
        service.vnis = Vnis::Range(low, high);
        Ok(())
    }

    fn lni_alloc(&mut self, file: usize, caller: Caller, svc_id: u32) -> Result<u32, Errno> {
        let service = self.services.get(&svc_id).ok_or(Errno::EINVAL)?;
        if !service.enabled {
            return Err(Errno::EKEYREVOKED);
        }
        if !service.access.admits(caller) {
            return Err(Errno::EPERM);
        }
        let mut users: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        for lni in self.lnis.values() {
            users.entry(lni.rgid).or_insert((lni.svc_id, 0)).1 += 1;
        }
        let share = service.lnis_per_rgid;
        let shared = users
            .iter()
            .find(|(_, (owner, users))| share >= 2 && *owner == svc_id && *users < share);
        let rgid = shared.map_or_else(|| lowest_free(users.keys()), |(rgid, _)| *rgid);
        if rgid > RGIDS {
            return Err(Errno::ENOSPC);
        }
        let lni = lowest_free(self.lnis.keys());
        self.lnis.insert(lni, Lni { file, svc_id, rgid });
        Ok(lni)
    }

    fn lni_free(&mut self, file: usize, lni: u32) -> Result<(), Errno> {
        if self.lnis.get(&lni).is_none_or(|found| found.file != file) {
            return Err(Errno::EINVAL);
        }
        self.lnis.remove(&lni);
        Ok(())
    }

    /// RGIDs in use.
    pub(crate) fn rgids(&self) -> BTreeSet<u32> {
        self.lnis.values().map(|lni| lni.rgid).collect()
    }

    fn service(&mut self, svc_id: u32) -> Result<&mut Service, Errno> {
        self.services.get_mut(&svc_id).ok_or(Errno::EINVAL)
    }

    /// A service without LNIs.
    fn idle(&mut self, svc_id: u32) -> Result<&mut Service, Errno> {
        let busy = self.lnis.values().any(|lni| lni.svc_id == svc_id);
        let service = self.service(svc_id)?;
        if busy { Err(Errno::EBUSY) } else { Ok(service) }
    }

    /// Some profile stands in the way of a new one: they overlap, and one of them is a range.
    fn conflicts(&self, low: u16, high: u16) -> bool {
        self.services.values().any(|service| match &service.vnis {
            Vnis::List(vnis) => low != high && vnis.iter().any(|vni| (low..=high).contains(vni)),
            Vnis::Range(min, max) => (low != high || min != max) && low <= *max && *min <= high,
            Vnis::None => false,
        })
    }
}

impl Access {
    fn admits(&self, caller: Caller) -> bool {
        match self {
            Self::Open => true,
            Self::Members(members) => members.iter().any(|member| match member.kind {
                UID => member.id == caller.uid,
                GID => member.id == caller.gid,
                _ => false,
            }),
        }
    }
}

fn validate(asked: &Descriptor) -> Result<(), Errno> {
    let count = usize::from(asked.num_vld_vnis);
    let vnis = asked.vnis.get(..count);
    let vnis_ok = vnis.is_some_and(|vnis| vnis.iter().all(|vni| *vni > 0));
    let members_ok = asked
        .members
        .iter()
        .all(|member| member.kind < MEMBER_KINDS);
    let limits_ok = asked
        .limits
        .iter()
        .zip(TOTALS)
        .all(|((max, res), total)| res <= max && *max <= total);
    let wrong = asked.restricted_vnis && !vnis_ok
        || asked.restricted_members && !members_ok
        || asked.resource_limits && !limits_ok;
    if wrong { Err(Errno::EINVAL) } else { Ok(()) }
}

/// Who may use a service with these members.
pub(crate) fn access(asked: &Descriptor) -> Result<Access, Errno> {
    if !asked.restricted_members {
        return Ok(Access::Open);
    }
    let members = asked.members.iter().filter(|member| member.kind != IGNORE);
    let members: Vec<Member> = members.copied().collect();
    if matches!(members.as_slice(), [first, second] if first == second) {
        return Err(Errno::EEXIST);
    }
    Ok(Access::Members(members))
}

fn lowest_free<'a>(used: impl Iterator<Item = &'a u32>) -> u32 {
    let used: BTreeSet<u32> = used.copied().collect();
    let mut id = 1;
    while used.contains(&id) {
        id += 1;
    }
    id
}
