//! EEXIST.

use super::{Explanation, HoldingService};
use crate::describe;
use crate::view::NicView;
use cxi::error::VniConflict;

pub(super) fn taken(
    explanation: Explanation,
    conflict: &VniConflict,
    view: Option<&NicView>,
) -> Explanation {
    let single = |range: Option<cxi::VniRange>| range.is_none_or(|range| range.size() == 1);
    let exact = single(Some(conflict.wanted)) && single(conflict.held);
    let explanation = if exact {
        explanation.because(
            "Both are single VNIs. The drivers of SHS 13.0 to 14.0.0 allow a VNI in one service \
             only, even a disabled one; SHS 12.0, 14.0.1 and later allow the same VNI in several.",
        )
    } else {
        explanation.because(
            "One of them is a range of VNIs. A range overlaps with nothing else on a NIC, under \
             any driver, be the other service enabled or not.",
        )
    };
    let holder = conflict
        .holder
        .and_then(|id| view.and_then(|view| view.service(id)));
    let Some(service) = holder else {
        return explanation
            .because(
                "No service on the NIC shows it. Root's processes take a VNI that no service has \
                 just by using it, and one that a destroyed service had stays taken while a \
                 process still uses it.",
            )
            .advise("See which processes have the NIC open, and end what is left of old jobs.");
    };
    let held = conflict.held.map_or_else(
        || describe::vnis(service.vnis()),
        |held| describe::vnis(cxi::VniAccess::Range(held)),
    );
    let explanation = explanation.held_by(vec![HoldingService {
        service: service.id(),
        name: describe::service(service),
        holds: held,
        idle: false,
    }]);
    if service.id().is_default() {
        return explanation.advise(
            "The VNIs of the default service (1 and 10, unless configured) are not for jobs: take \
             them out of the pool.",
        );
    }
    explanation
        .advise("Reuse a VNI only after its services are destroyed on every node.")
        .advise(format!(
            "If the job of service {} has ended, release it; otherwise give the new job other VNIs.",
            service.id()
        ))
}
