//! Communication profiles with several handles.
//!
//! When the same traffic is requested again, the driver searches for a service that admits the
//! caller, but answers with the existing LCID, which it charges to the service found first. If the
//! search finds another service, it frees the first one's VNI while that is in use. So the driver
//! is not asked: the second handle is made here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cxi_ioctl::abi::profile::{CpAllocResp, CpFreeCmd};

use super::object::Object;
use super::{LcidChoice, LniInner};
use crate::Device;
use crate::driver::Capabilities;
use crate::error::Result;

/// VNI or priority, class and type.
pub(super) type Traffic = (u32, u32, u32);

/// The communication profiles of an LNI. Locked while one is allocated or freed.
#[derive(Debug, Default)]
pub(super) struct SharedProfiles(Mutex<Vec<Entry>>);

impl SharedProfiles {
    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Entry {
    profile: Arc<Allocated>,
    traffic: Traffic,
    /// Handles held by the caller.
    handles: usize,
    /// These, plus queues.
    users: usize,
}

#[derive(Debug)]
struct Allocated {
    object: Object<CpFreeCmd>,
    lcid: u32,
}

/// A use of a communication profile. The last one frees it.
#[derive(Debug)]
pub(super) struct ProfileUse {
    lni: Arc<LniInner>,
    profile: Arc<Allocated>,
    /// `true` if the caller holds it, rather than a queue.
    is_handle: bool,
}

impl ProfileUse {
    /// Returns a handle, either of an existing profile or of one that `allocate` makes.
    pub(super) fn handle(
        lni: &Arc<LniInner>,
        traffic: Traffic,
        choice: Option<LcidChoice>,
        allocate: impl FnOnce() -> Result<CpAllocResp>,
    ) -> Result<Self> {
        let mut all = lni.profiles.lock();
        for entry in all.iter_mut().filter(|entry| entry.traffic == traffic) {
            if would_share(lni.device(), entry.profile.lcid, choice)? {
                entry.handles += 1;
                entry.users += 1;
                return Ok(Self::of(lni, &entry.profile, true));
            }
        }
        let CpAllocResp { cp_hndl, lcid } = allocate()?;
        let object = Object::new(lni.device(), CpFreeCmd::of(cp_hndl));
        let profile = Arc::new(Allocated { object, lcid });
        let made = Self::of(lni, &profile, true);
        all.push(Entry { profile, traffic, handles: 1, users: 1 });
        Ok(made)
    }

    fn of(lni: &Arc<LniInner>, profile: &Arc<Allocated>, is_handle: bool) -> Self {
        Self { lni: Arc::clone(lni), profile: Arc::clone(profile), is_handle }
    }

    /// The same profile, held by a queue.
    pub(super) fn for_queue(&self) -> Self {
        if let Some(entry) = self.entry(&mut self.lni.profiles.lock()) {
            entry.users += 1;
        }
        Self::of(&self.lni, &self.profile, false)
    }

    pub(super) fn lni(&self) -> &Arc<LniInner> {
        &self.lni
    }

    pub(super) fn lcid(&self) -> u32 {
        self.profile.lcid
    }

    /// Moves the profile to another VNI if `modify`, which gets its number in the open file,
    /// succeeds.
    pub(super) fn modify(&self, vni: u32, modify: impl FnOnce(u32) -> Result<()>) -> Result<()> {
        let mut all = self.lni.profiles.lock();
        modify(self.profile.object.command().cp_hndl)?;
        if let Some(entry) = self.entry(&mut all) {
            entry.traffic.0 = vni;
        }
        Ok(())
    }

    /// Frees the profile, unless it has another handle.
    pub(super) fn free(&self) -> Result<()> {
        let mut all = self.lni.profiles.lock();
        if self.entry(&mut all).is_none_or(|entry| entry.handles == 1) {
            self.profile.object.free()?;
            all.retain(|entry| !self.is_of(entry));
        }
        Ok(())
    }

    fn is_of(&self, entry: &Entry) -> bool {
        Arc::ptr_eq(&entry.profile, &self.profile)
    }

    fn entry<'a>(&self, all: &'a mut [Entry]) -> Option<&'a mut Entry> {
        all.iter_mut().find(|entry| self.is_of(entry))
    }
}

impl Drop for ProfileUse {
    fn drop(&mut self) {
        let mut all = self.lni.profiles.lock();
        let Some(entry) = self.entry(&mut all) else { return };
        entry.handles -= usize::from(self.is_handle);
        entry.users -= 1;
        if entry.users == 0 {
            // A failure cannot be reported from here; closing the device frees what remains.
            let _ = self.profile.object.free();
            all.retain(|entry| !self.is_of(entry));
        }
    }
}

/// Returns whether the driver would answer with an existing LCID for the same traffic.
fn would_share(device: &Device, lcid: u32, choice: Option<LcidChoice>) -> Result<bool> {
    Ok(match choice {
        Some(LcidChoice::NotTriggered) => lcid > 0,
        Some(LcidChoice::Triggered | LcidChoice::Any) | None => {
            let proven = device.proven_capabilities()?;
            lcid == 0 || !proven.contains(Capabilities::TRIGGERED_CPS)
        }
    })
}
