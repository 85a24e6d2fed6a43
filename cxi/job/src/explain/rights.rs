//! EPERM.

use super::{Explanation, Inquiry};
use crate::describe;

/// A change of services was refused.
pub(super) fn not_permitted(explanation: Explanation, inquiry: &Inquiry<'_>) -> Explanation {
    let virtual_function = inquiry
        .device
        .and_then(|device| device.info().ok()?.virtual_function);
    if virtual_function == Some(true) {
        return explanation
            .because(
                "The NIC is a virtual function. Services belong to the physical function, and no \
                 right of the caller changes that.",
            )
            .advise("Do it on the host, on the physical function.");
    }
    if inquiry.proc.in_user_namespace() == Some(true) {
        return explanation
            .because(
                "This process is in a user namespace (/proc/self/uid_map). The driver asks for \
                 CAP_SYS_ADMIN in the initial one: root of a rootless container does not have it.",
            )
            .advise("Do it on the host, or from a container without a user namespace.");
    }
    let explanation = match inquiry.proc.has_sys_admin() {
        Some(false) => explanation.because(
            "This process does not have CAP_SYS_ADMIN. The user id does not matter: root without \
             the capability is refused, another user with it is not.",
        ),
        Some(true) => explanation.because(
            "This process has CAP_SYS_ADMIN and is in the initial user namespace. What is left is \
             a virtual function, which sysfs would tell, or a security module.",
        ),
        None => explanation.because(
            "The driver asks for CAP_SYS_ADMIN in the initial user namespace, and for a physical \
             function.",
        ),
    };
    explanation.advise("Run it as root, from the scheduler's daemon or its prolog.")
}

/// An LNI was refused.
pub(super) fn not_a_member(explanation: Explanation, inquiry: &Inquiry<'_>) -> Explanation {
    let service = inquiry
        .service
        .and_then(|id| inquiry.device?.services().get(id).ok());
    let explanation = match service {
        Some(service) => explanation.because(format!(
            "It is {}: only its members may use it, and neither root nor a capability changes \
             that.",
            describe::service(&service)
        )),
        None => explanation,
    };
    let explanation = match inquiry.proc.caller() {
        Some(caller) => explanation.because(format!(
            "This process has {}.",
            [
                caller.uid.map(|uid| format!("effective uid {uid}")),
                caller.gid.map(|gid| format!("effective gid {gid}")),
                caller
                    .netns
                    .map(|netns| format!("network namespace {netns}")),
            ]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", ")
        )),
        None => explanation,
    };
    explanation
        .because("The driver looks at effective ids only; supplementary groups do not count.")
        .advise("Run it as a member of the service, or use the service of this job.")
}
