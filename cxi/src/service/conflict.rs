//! Finding out who has a VNI.

use super::Services;
use crate::error::VniConflict;
use crate::{ServiceId, VniRange};

impl Services {
    /// Finds the service that has one of the VNIs, which is why the driver answered EEXIST.
    pub(super) fn conflict(
        &self,
        wanted: &[VniRange],
        except: Option<ServiceId>,
    ) -> Option<VniConflict> {
        let first = *wanted.first()?;
        let unknown = VniConflict {
            wanted: first,
            holder: None,
            held: None,
        };
        Some(
            self.find_holder(wanted, except, |_, _| true)
                .unwrap_or(unknown),
        )
    }

    /// The service that has one of the VNIs now, if any.
    pub(super) fn holder(&self, wanted: &[VniRange]) -> Option<VniConflict> {
        self.find_holder(wanted, None, |_, _| true)
    }

    /// A conflict that every driver refuses: two blocks overlap, and at least one has several VNIs.
    pub(super) fn certain_conflict(&self, wanted: VniRange, id: ServiceId) -> Option<VniConflict> {
        let certain = |a: VniRange, b: VniRange| a.size() > 1 || b.size() > 1;
        self.find_holder(&[wanted], Some(id), certain)
    }

    fn find_holder(
        &self,
        wanted: &[VniRange],
        except: Option<ServiceId>,
        counts: impl Fn(VniRange, VniRange) -> bool,
    ) -> Option<VniConflict> {
        let others = self.list().ok()?;
        for service in others.iter().filter(|other| Some(other.id()) != except) {
            let held = match service.vnis() {
                crate::VniAccess::Range(range) => vec![range],
                // SHS 13.0 claims the listed VNIs even where the list does not restrict.
                _ => service.listed_vnis().iter().map(VniRange::from).collect(),
            };
            let hit = wanted.iter().find_map(|wanted| {
                let overlaps =
                    |held: &&VniRange| wanted.overlaps(**held) && counts(*wanted, **held);
                Some((*wanted, *held.iter().find(overlaps)?))
            });
            if let Some((wanted, held)) = hit {
                return Some(VniConflict {
                    wanted,
                    holder: Some(service.id()),
                    held: Some(held),
                });
            }
        }
        None
    }
}
