//! What a service has of the VNIs: its profiles, from claiming to letting go.

use std::collections::BTreeMap;

use cxi_ioctl::Errno;
use cxi_ioctl::abi::service::{SVC_MAX_VNIS, SvcDesc, SvcFlags};

use super::access::AccessList;
use super::group::{Held, ProfilePair, flags};
use super::profile::{Profile, Rx, Tx};
use super::{Device, descriptor};
use crate::HazardKind;
use crate::rules::{UnrestrictedMeans, VniAuthority};

impl Device {
    /// Makes the profiles for the VNI list of a descriptor.
    pub(super) fn claim_vnis(
        &mut self,
        id: u32,
        desc: &SvcDesc,
        access: &AccessList,
    ) -> Result<[ProfilePair; SVC_MAX_VNIS], Errno> {
        let mut pairs = [ProfilePair::default(); SVC_MAX_VNIS];
        let restricted = flags(desc).contains(SvcFlags::RESTRICTED_VNIS);
        let by_list =
            restricted || self.rules.unrestricted_means == UnrestrictedMeans::ListUnchecked;
        if self.rules.vni_authority == VniAuthority::Descriptor || !by_list {
            return Ok(pairs);
        }
        let count = usize::from(desc.num_vld_vnis);
        if count > SVC_MAX_VNIS {
            self.hazard(HazardKind::CountBeyondProfiles {
                svc_id: id,
                num_vld_vnis: desc.num_vld_vnis,
            });
        }
        for (index, vni) in desc.vnis.iter().enumerate().take(count) {
            let made = self.claim(*vni, 0, desc, access).and_then(|pair| {
                pairs[index] = pair;
                if self.rules.disabled_profiles_off {
                    Ok(())
                } else {
                    self.enable_pair(pair)
                }
            });
            if let Err(errno) = made {
                self.drop_profiles(pairs);
                return Err(errno);
            }
        }
        Ok(pairs)
    }

    /// Makes a TX and an RX profile, or neither.
    fn claim(
        &mut self,
        vni: u16,
        ignore: u16,
        desc: &SvcDesc,
        access: &AccessList,
    ) -> Result<ProfilePair, Errno> {
        let tx = self.add_tx(vni, ignore, desc, access.clone())?;
        match self.add_rx(vni, ignore, access.clone()) {
            Ok(rx) => Ok(ProfilePair {
                tx: Held::Profile(tx),
                rx: Held::Profile(rx),
            }),
            Err(errno) => {
                self.tx.remove(tx);
                Err(errno)
            }
        }
    }

    pub(super) fn add_tx(
        &mut self,
        vni: u16,
        ignore: u16,
        desc: &SvcDesc,
        access: AccessList,
    ) -> Result<u32, Errno> {
        let tx = Tx {
            tcs: descriptor::traffic_classes(desc),
            exclusive_cp: false,
            cps: BTreeMap::new(),
        };
        let profile = Profile::of_service(vni, ignore, access, tx);
        self.tx.add(profile, self.rules.vni_exclusivity)
    }

    pub(super) fn add_rx(
        &mut self,
        vni: u16,
        ignore: u16,
        access: AccessList,
    ) -> Result<u32, Errno> {
        let profile = Profile::of_service(vni, ignore, access, Rx::default());
        self.rx.add(profile, self.rules.vni_exclusivity)
    }

    pub(super) fn enable_profiles(
        &mut self,
        pairs: [ProfilePair; SVC_MAX_VNIS],
    ) -> Result<(), Errno> {
        pairs
            .into_iter()
            .try_for_each(|pair| self.enable_pair(pair))
    }

    /// Enables the profiles of a VNI; ENOSPC if the VNI table is full.
    pub(super) fn enable_pair(&mut self, pair: ProfilePair) -> Result<(), Errno> {
        if let Some(tx) = pair.tx.id().and_then(|id| self.tx.get_mut(id)) {
            tx.enabled = true;
        }
        let Some(rx) = pair.rx.id().and_then(|id| self.rx.get_mut(id)) else {
            return Ok(());
        };
        if rx.extra.vni_slot.is_none() {
            rx.extra.vni_slot = Some(self.vni_table.alloc().ok_or(Errno::ENOSPC)?);
        }
        rx.enabled = true;
        Ok(())
    }

    pub(super) fn disable_pair(&mut self, pair: ProfilePair) {
        if let Some(tx) = pair.tx.id().and_then(|id| self.tx.get_mut(id)) {
            tx.enabled = false;
        }
        if let Some(rx) = pair.rx.id().and_then(|id| self.rx.get_mut(id)) {
            rx.enabled = false;
            if let Some(slot) = rx.extra.vni_slot.take() {
                self.vni_table.free(slot);
            }
        }
    }

    pub(super) fn drop_profiles(&mut self, pairs: [ProfilePair; SVC_MAX_VNIS]) {
        for pair in pairs {
            self.drop_pair(pair);
        }
    }

    /// The creator gives up its profiles: no new users may use them, and without users they are
    /// freed.
    pub(super) fn drop_pair(&mut self, pair: ProfilePair) {
        if let Some(id) = pair.tx.id() {
            self.drop_tx_creator(id);
        }
        if let Some(id) = pair.rx.id() {
            self.drop_rx_creator(id);
        }
    }

    pub(super) fn drop_tx_creator(&mut self, id: u32) {
        if let Some(tx) = self.tx.get_mut(id) {
            tx.creator = false;
            tx.access.clear();
            if tx.users == 0 {
                self.tx.remove(id);
            }
        }
    }

    pub(super) fn drop_rx_creator(&mut self, id: u32) {
        if let Some(rx) = self.rx.get_mut(id) {
            rx.creator = false;
            rx.access.clear();
            self.remove_rx_if_unused(id);
        }
    }

    pub(super) fn remove_rx_if_unused(&mut self, id: u32) {
        if self.rx.get(id).is_some_and(|rx| rx.references() == 0)
            && let Some(rx) = self.rx.remove(id)
            && let Some(slot) = rx.extra.vni_slot
        {
            self.vni_table.free(slot);
        }
    }
}
