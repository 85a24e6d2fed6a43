//! Shortages: a resource that was exhausted, or a VNI that was taken.

use std::fmt;

use crate::pools::{LE_POOLS, TLE_POOLS, VNI_SLOTS};
use crate::{Resource, ServiceId, Vni, VniRange};

/// Shortage of a resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Shortage {
    /// A reservation does not fit into what is not reserved yet.
    #[error("not enough {resource}: {requested} requested, {available} available")]
    Reservation {
        /// The resource.
        resource: Resource,
        /// Number that was to be reserved, by the driver's count.
        requested: u16,
        /// Number that can still be reserved.
        available: u16,
    },
    /// All LE pools are taken: each service with LEs has one.
    #[error(
        "no LE pool is left: {LE_POOLS} services have one each; from SHS 14.0.1 on a service that \
         reserves no LEs needs none"
    )]
    LePools,
    /// All TLE pools are taken: each service with TLEs has one.
    #[error(
        "no TLE pool is left: {TLE_POOLS} services, including the default service, have one each; \
         a service limited to 0 TLEs needs none"
    )]
    TlePools,
    /// The NIC's table of VNIs is full.
    #[error("the table of VNIs is full: enabled services hold {used} of its {VNI_SLOTS} entries")]
    VniTable {
        /// Places in the table that enabled services visibly hold.
        used: usize,
    },
    /// The driver names nothing, and nothing visible is short.
    #[error(
        "the driver does not say what is used up: no resource is short of what was \
         requested, and services hold {vni_slots} of {VNI_SLOTS} entries in the table of VNIs; CPs \
         and domains outside services may hold the others"
    )]
    Unclear {
        /// Places in the table of VNIs that enabled services visibly hold.
        vni_slots: usize,
    },
    /// A service has used up what its limits allow, or the NIC what it has.
    #[error("{}", limit(*.resource, *.service, *.in_use, *.max))]
    Limit {
        /// The resource.
        resource: Resource,
        /// The service whose limits apply.
        service: ServiceId,
        /// Number that the service has in use, if the driver reports it.
        in_use: Option<u16>,
        /// The most it may have.
        max: Option<u16>,
    },
    /// Something that is allocated individually ran out.
    #[error("{what}")]
    Allocation {
        /// Name of the exhausted table, with its owner.
        what: &'static str,
    },
}

fn limit(resource: Resource, service: ServiceId, in_use: Option<u16>, max: Option<u16>) -> String {
    match (in_use, max) {
        (_, Some(0)) => format!("service {service} may have no {resource}: its limit is 0"),
        (Some(in_use), Some(max)) if in_use >= max => format!(
            "service {service} has no {resource} left: {in_use} of at most {max} are in use, or \
             kept for its LNIs"
        ),
        (Some(in_use), Some(max)) => format!(
            "the NIC has no {resource} left: service {service} has {in_use} of at most {max} in use"
        ),
        _ => format!("no {resource} are left for service {service}"),
    }
}

/// A VNI that is taken, and the service that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VniConflict {
    /// The requested VNIs that collide.
    pub wanted: VniRange,
    /// The service that has them; `None` if none is visible: then a process holds them outside any
    /// service, or through one that has been destroyed.
    pub holder: Option<ServiceId>,
    /// VNIs of the other service.
    pub held: Option<VniRange>,
}

impl fmt::Display for VniConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted = Vnis(self.wanted);
        match (self.holder, self.held) {
            (Some(holder), Some(held)) if held != self.wanted => {
                write!(f, "{wanted} {} taken: service {holder} has {}", wanted.verb(), Vnis(held))
            }
            (Some(holder), _) => write!(f, "{wanted} {} taken by service {holder}", wanted.verb()),
            (None, _) => write!(
                f,
                "{wanted} {} taken, but by no service that is listed: a process holds a CP or a \
                 domain on it",
                wanted.verb()
            ),
        }
    }
}

impl std::error::Error for VniConflict {}

struct Vnis(VniRange);

impl Vnis {
    fn single(&self) -> Option<Vni> {
        (self.0.size() == 1).then_some(self.0.first())
    }

    fn verb(&self) -> &'static str {
        self.single().map_or("are", |_| "is")
    }
}

impl fmt::Display for Vnis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.single() {
            Some(vni) => write!(f, "VNI {vni}"),
            None => write!(f, "VNIs {}", self.0),
        }
    }
}
