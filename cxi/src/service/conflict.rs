//! Who has a VNI.

use super::Service;
use crate::error::VniConflict;
use crate::{VniAccess, VniRange};

/// Finds a service that has one of the VNIs. `counts` says which overlaps matter.
pub(crate) fn find<'a>(
    services: impl IntoIterator<Item = &'a Service>,
    wanted: &[VniRange],
    counts: impl Fn(VniRange, VniRange) -> bool,
) -> Option<VniConflict> {
    services.into_iter().find_map(|service| {
        let held = match service.vnis() {
            VniAccess::Range(range) => vec![range],
            // SHS 13.0 claims the listed VNIs even where the list does not restrict.
            _ => service.listed_vnis().iter().map(VniRange::from).collect(),
        };
        wanted.iter().find_map(|wanted| {
            let hits = |held: &&VniRange| wanted.overlaps(**held) && counts(*wanted, **held);
            Some(VniConflict {
                wanted: *wanted,
                holder: Some(service.id()),
                held: Some(*held.iter().find(hits)?),
            })
        })
    })
}
