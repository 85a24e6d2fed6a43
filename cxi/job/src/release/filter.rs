//! Selecting services.

use std::collections::BTreeSet;

use crate::grant::Grant;
use cxi::{DeviceId, Member, Service, ServiceId, Vni, VniAccess};
use cxi_site::IdSet;

/// Selects services by their properties. All named properties have to match.
///
/// No filter is empty. The default service is never selected, and system services only by id.
///
/// ```
/// use cxi::Vni;
/// use cxi_job::{Filter, JobRequest};
///
/// // What Flux's epilog looks for: these VNIs, whatever their order, and this user.
/// let filter = Filter::vnis([Vni::new(4035)?, Vni::new(4034)?]).uid(5588);
/// let request =
///     JobRequest::builder().uid(5588).vnis([Vni::new(4034)?, Vni::new(4035)?]).build()?;
/// let job = Filter::for_job(request.vnis().iter(), request.members().iter());
/// assert_eq!(job, Some(filter));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    vnis: Option<BTreeSet<Vni>>,
    members: Vec<Member>,
    services: Option<Vec<Chosen>>,
}

/// A service by id, and the properties it must have if they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chosen {
    device: DeviceId,
    service: ServiceId,
    vnis: Option<BTreeSet<Vni>>,
}

impl Filter {
    // Not `Default`: a filter without any property would select every job's services.
    const fn empty() -> Self {
        Self { vnis: None, members: Vec::new(), services: None }
    }

    /// Services with these VNIs and no others, in any order, including a range of exactly these.
    #[must_use]
    pub fn vnis(vnis: impl IntoIterator<Item = Vni>) -> Self {
        Self { vnis: Some(vnis.into_iter().collect()), ..Self::empty() }
    }

    /// Services with this member.
    #[must_use]
    pub fn member(member: Member) -> Self {
        Self::empty().and(member)
    }

    /// These services, by NIC and id. Ids are reused: prefer [`for_grant`](Self::for_grant), or
    /// also name the VNIs or a member.
    #[must_use]
    pub fn services(services: impl IntoIterator<Item = (DeviceId, ServiceId)>) -> Self {
        let chosen =
            services.into_iter().map(|(device, service)| Chosen { device, service, vnis: None });
        Self { services: Some(chosen.collect()), ..Self::empty() }
    }

    /// The services of a grant, as long as they still have its members and VNIs.
    #[must_use]
    pub fn for_grant(grant: &Grant) -> Self {
        let chosen = grant.services.iter().map(|entry| Chosen {
            device: entry.device,
            service: entry.service,
            vnis: Some(entry.vnis.iter().collect()),
        });
        Self {
            services: Some(chosen.collect()),
            members: grant.members.iter().collect(),
            vnis: None,
        }
    }

    /// The services of a job that has no [`Grant`], because its prolog failed or was killed: those
    /// with exactly the VNIs of its request, if it names any, and with its members. `None` if there are
    /// neither.
    #[must_use]
    pub fn for_job(
        vnis: impl IntoIterator<Item = Vni>,
        members: impl IntoIterator<Item = Member>,
    ) -> Option<Self> {
        let (mut vnis, mut members) = (vnis.into_iter().peekable(), members.into_iter());
        let filter = match vnis.peek() {
            Some(_) => Self::vnis(vnis),
            None => Self::member(members.next()?),
        };
        Some(members.fold(filter, Self::and))
    }

    /// Requires this member too.
    fn and(mut self, member: Member) -> Self {
        self.members.push(member);
        self
    }

    /// Requires this user too.
    #[must_use]
    pub fn uid(self, uid: u32) -> Self {
        self.and(Member::Uid(uid))
    }

    /// Returns whether a service of a NIC is selected.
    #[must_use]
    pub fn selects(&self, device: DeviceId, service: &Service) -> bool {
        !service.id().is_default()
            && (self.services.is_some() || !service.is_system())
            && is_exactly(service.vnis(), self.vnis.as_ref())
            && self.members.iter().all(|member| {
                let members = service.members();
                members.is_some_and(|members| members.contains(*member))
            })
            && self.services.as_ref().is_none_or(|chosen| {
                chosen.iter().any(|one| {
                    one.device == device
                        && one.service == service.id()
                        && is_exactly(service.vnis(), one.vnis.as_ref())
                })
            })
    }
}

/// Returns whether these are the VNIs of a service; `None` for any.
fn is_exactly(access: VniAccess, vnis: Option<&BTreeSet<Vni>>) -> bool {
    let has = || access.iter().collect::<BTreeSet<Vni>>();
    vnis.is_none_or(|vnis| access != VniAccess::Unrestricted && has() == *vnis)
}

/// Returns whether any VNI of a service is in a set.
pub(crate) fn overlaps(access: VniAccess, set: &IdSet) -> bool {
    match access {
        VniAccess::List(list) => list.iter().any(|vni| set.contains(vni.get())),
        VniAccess::Range(range) => {
            set.next_from(range.first().get()).is_some_and(|next| next <= range.last().get())
        }
        VniAccess::Unrestricted => false,
    }
}
