//! Meaning of a refusal of the driver.
//!
//! The driver answers with an errno alone. Its meaning depends on the command, and often on what
//! else the NIC shows: EINVAL may be a service that is gone, or a command that an older driver
//! does not know. [`explain`] is pure: it derives the reason from what was attempted, the refusal,
//! and those [`Facts`]. [`Device::explain`] looks the facts up first, with queries that change
//! nothing.
//!
//! The errors of this crate are made here. A program that sends its own commands, through
//! [`Device::transport`], gets the same ones:
//!
//! ```
//! # use cxi::Device;
//! # let device = cxi_mock::Nic::new(cxi_mock::NicConfig::new())?.open()?;
//! # let device = Device::cxi0(device.transport(cxi_mock::Credentials::root()));
//! use cxi::ServiceId;
//! use cxi::explain::Attempt;
//! use cxi_ioctl::abi::service::SvcDestroyCmd;
//!
//! let command = SvcDestroyCmd::of(77);
//! let refusal = cxi_ioctl::execute(device.transport(), &command).unwrap_err();
//! let error = device.explain(&Attempt::OnService(ServiceId::new(77)?), refusal);
//! assert_eq!(error.to_string(), "cxi0: SVC_DESTROY: there is no service 77");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod attempted;
mod code;
mod message;
mod table;
mod texts;

use cxi_ioctl::abi::service::{SvcDesc, SvcFailInfo, SvcGetCmd};
use cxi_ioctl::{CommandError, Effect, Errno, Opcode, SafeCommand};

use crate::driver::Capabilities;
use crate::error::{Error, ErrorKind, Refusal, Result, Shortage, VniConflict};
use crate::service::stock::{Stock, shortage};
use crate::{
    Device, Resource, ResourceMap, Service, ServiceId, ServiceSpec, Vni, VniAccess, VniRange,
};

pub use attempted::Attempted;
pub use code::Code;
pub use message::{Mention, mentions};
pub use table::{Cause, causes, causes_of};

/// Task of a refused command.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Attempt {
    /// Something whose errnos have the same meaning for every command.
    Other,
    /// Make a service (SVC_ALLOC).
    Create(SvcDesc),
    /// Query, change or destroy a service, or allocate an LNI of it.
    OnService(ServiceId),
    /// Give a service its block of VNIs (SVC_SET_VNI_RANGE).
    SetVniRange(ServiceId, VniRange),
    /// Allocate or change something below an LNI of a service.
    Below {
        /// The service.
        service: ServiceId,
        /// The resource that it uses up, if the service limits that.
        resource: Option<Resource>,
    },
    /// Allocate a communication profile or a domain on a VNI.
    OnVni {
        /// The service of the LNI.
        service: ServiceId,
        /// The VNI as it was sent; a priority code point for Ethernet.
        vni: u32,
        /// `true` if the profile is for Ethernet frames.
        ethernet: bool,
    },
}

/// State of a NIC after a refusal. Only what the refusal can depend on is looked up; the rest is
/// unknown, as is everything that the NIC does not reveal.
#[derive(Debug, Default)]
pub struct Facts {
    /// `true` if the service exists.
    exists: Option<bool>,
    /// Numbers of the resource that the service may have, and has.
    max: Option<u16>,
    in_use: Option<u16>,
    /// `true` if the NIC certainly has some of the resource left.
    is_left: bool,
    totals: Option<ResourceMap<u16>>,
    proven: Option<Capabilities>,
    services: Vec<Service>,
    stock: Option<Stock>,
    virtual_function: bool,
}

impl Facts {
    /// Queries a NIC for what the refusal of an attempt can depend on.
    #[must_use]
    pub fn look_up(device: &Device, attempt: &Attempt, refusal: CommandError) -> Self {
        let mut facts = Self::default();
        let (opcode, errno) = (refusal.opcode(), refusal.errno());
        let services = device.services();
        match (*attempt, errno) {
            (_, Errno::EPERM | Errno::EOPNOTSUPP) => {
                facts.virtual_function = device.is_virtual_function() == Some(true);
            }
            (Attempt::Create(_), Errno::EINVAL) => {
                facts.totals = device.totals().ok();
                facts.proven = device.proven_capabilities().ok();
            }
            (Attempt::Create(_) | Attempt::OnService(_), Errno::ENOSPC)
                if opcode != Opcode::LNI_ALLOC =>
            {
                facts.stock = Stock::of(&services);
            }
            (Attempt::Create(_) | Attempt::SetVniRange(..), Errno::EEXIST) => {
                facts.services = services.list().unwrap_or_default();
            }
            (Attempt::OnService(id) | Attempt::SetVniRange(id, _), Errno::EINVAL) => {
                facts.exists = exists(device, id, opcode);
            }
            (
                Attempt::Below { service, resource: Some(resource) },
                Errno::ENOSPC | Errno::EBADR,
            ) => {
                let limits = services.get(service).map(|service| service.limits());
                facts.max = limits.map(|limits| limits[resource].max()).ok();
                let usage = services.usage(service);
                facts.in_use = usage.ok().and_then(|usage| usage.reported[resource]);
                // Only ACs have a third limit, that of the RGID. Any other resource that ran out is
                // the service's or the NIC's.
                if resource == Resource::Acs && facts.in_use.is_some() && facts.in_use < facts.max {
                    facts.is_left = device.availability().is_ok_and(|have| {
                        let level = have.resources[resource];
                        level.in_use < level.total
                    });
                }
            }
            (Attempt::OnVni { .. }, Errno::EINVAL) => {
                facts.proven = device.proven_capabilities().ok();
            }
            _ => {}
        }
        facts
    }
}

/// Returns whether a service exists; `None` if the driver does not reveal it.
///
/// A driver of another version answers EINVAL for a command that it does not know, too. The two
/// must not be confused: a service that is believed to be gone is forgotten, and would hold its
/// VNIs forever. The default service always exists: only a driver that answers for that one knows
/// the command.
fn exists(device: &Device, id: ServiceId, refused: Opcode) -> Option<bool> {
    let get = |id: ServiceId| device.execute(&SvcGetCmd::of(id.get())).map_err(CommandError::errno);
    if refused != Opcode::SVC_GET {
        match get(id) {
            Ok(_) => return Some(true),
            Err(Errno::EINVAL) => {}
            Err(_) => return None,
        }
    }
    (!id.is_default() && get(ServiceId::DEFAULT).is_ok()).then_some(false)
}

impl Device {
    /// Explains why the driver refused a command: looks up the facts that it can depend on, and
    /// [`explain`]s it.
    #[must_use]
    pub fn explain(&self, attempt: &Attempt, refusal: CommandError) -> Error {
        let facts = match refusal {
            CommandError::Refused { .. } => Facts::look_up(self, attempt, refusal),
            _ => Facts::default(),
        };
        explain(attempt, refusal, &facts).on(self.id())
    }

    /// Sends a command; a refusal is explained.
    pub(crate) fn attempt<C: SafeCommand>(
        &self,
        attempt: Attempt,
        command: &C,
    ) -> Result<C::Response> {
        self.execute(command).map_err(|refusal| self.explain(&attempt, refusal))
    }
}

/// Explains why the driver refused a command.
#[must_use]
pub fn explain(attempt: &Attempt, refusal: CommandError, facts: &Facts) -> Error {
    let opcode = refusal.opcode();
    Error::refused(refusal, |errno| match *attempt {
        _ if errno == Errno::EOPNOTSUPP && facts.virtual_function && opcode != Opcode::ATU_MAP => {
            Some(ErrorKind::Refused(Refusal::NotRelayed))
        }
        Attempt::Other => None,
        Attempt::Create(desc) => create(&desc, refusal.fail_info(), errno, facts),
        Attempt::SetVniRange(id, range) if errno == Errno::EEXIST => {
            taken(&[range], Some(id), facts)
        }
        Attempt::OnService(id) | Attempt::SetVniRange(id, _) => {
            on_service(opcode, id, errno, facts)
        }
        Attempt::Below { service, resource } => match (resource, errno) {
            (Some(resource), Errno::ENOSPC | Errno::EBADR) => Some(limit(service, resource, facts)),
            _ => table::reason(opcode, errno),
        },
        Attempt::OnVni { ethernet: true, .. } if errno == Errno::EPERM => Some(no_raw_network()),
        Attempt::OnVni { ethernet: true, .. } if errno == Errno::EINVAL => {
            Some(ErrorKind::Refused(Refusal::EthernetClass))
        }
        Attempt::OnVni { service, vni, ethernet } => match (Vni::try_from(vni), errno) {
            (Err(invalid), Errno::EINVAL) if !ethernet => Some(ErrorKind::InvalidValue(invalid)),
            (_, Errno::EINVAL) if opcode != Opcode::DOMAIN_ALLOC => Some(profile(service, facts)),
            _ => table::reason(opcode, errno),
        },
    })
}

/// SVC_ALLOC.
fn create(
    desc: &SvcDesc,
    fail_info: Option<SvcFailInfo>,
    errno: Errno,
    facts: &Facts,
) -> Option<ErrorKind> {
    Some(match errno {
        Errno::ENOSPC => ErrorKind::NotEnough(shortage(desc, fail_info, facts.stock.as_ref())),
        Errno::EEXIST => {
            let vnis = desc.vnis.iter().take(desc.num_vld_vnis.into());
            let wanted: Vec<VniRange> =
                vnis.filter_map(|vni| Vni::new(*vni).ok()).map(VniRange::from).collect();
            return taken(&wanted, None, facts);
        }
        Errno::EINVAL => invalid_service(desc, facts),
        Errno::EPERM => return on_virtual_function(facts),
        _ => return None,
    })
}

/// Returns the fault of a descriptor that a [`ServiceSpec`] would have prevented; programs can send
/// their own.
fn invalid_service(desc: &SvcDesc, facts: &Facts) -> ErrorKind {
    let spec = match ServiceSpec::from_kernel(*desc) {
        Ok(spec) => spec,
        Err(invalid) => return ErrorKind::InvalidSpec(invalid),
    };
    if let Some(Err(invalid)) = facts.totals.map(|totals| spec.fits(&totals)) {
        return ErrorKind::InvalidSpec(invalid);
    }
    let lists_no_vni = matches!(spec.vnis(), VniAccess::List(list) if list.is_empty());
    if lists_no_vni && !facts.can(Capabilities::EMPTY_VNI_LIST) {
        return ErrorKind::Refused(Refusal::NoVnis);
    }
    ErrorKind::Refused(Refusal::Specification)
}

/// Commands about a service that exists, or should.
fn on_service(opcode: Opcode, id: ServiceId, errno: Errno, facts: &Facts) -> Option<ErrorKind> {
    if let Some(kind) = table::reason(opcode, errno) {
        return Some(kind);
    }
    let is_query = opcode.handler().is_some_and(|handler| handler.effect == Effect::Reads);
    let changes = matches!(opcode, Opcode::SVC_UPDATE | Opcode::SVC_ENABLE);
    Some(match (opcode, errno) {
        (_, Errno::EINVAL) if facts.exists? => there_nevertheless(opcode, id),
        (_, Errno::EINVAL) => ErrorKind::NoSuchService { service: id },
        (Opcode::LNI_ALLOC, Errno::EKEYREVOKED) => ErrorKind::ServiceDisabled { service: id },
        (Opcode::LNI_ALLOC, Errno::EPERM) => ErrorKind::NotPermitted(
            format!(
                "the caller's effective uid, effective gid and network namespace are not members \
                 of service {id}"
            )
            .into(),
        ),
        _ if is_query => return None,
        (Opcode::SVC_SET_NETNS | Opcode::SVC_SET_EXCLUSIVE_CP, Errno::EBUSY) => {
            busy(format!("service {id} is enabled: it"))
        }
        (_, Errno::EBUSY) if opcode != Opcode::LNI_ALLOC => busy(format!("service {id}")),
        (_, Errno::ENOSPC) if changes => {
            let used = facts.stock.as_ref().map_or(0, |stock| stock.vni_slots);
            ErrorKind::NotEnough(Shortage::VniTable { used })
        }
        (_, Errno::EPERM) => return on_virtual_function(facts),
        _ => return None,
    })
}

/// EINVAL about a service that is there.
fn there_nevertheless(opcode: Opcode, id: ServiceId) -> ErrorKind {
    ErrorKind::Refused(match opcode {
        Opcode::SVC_UPDATE | Opcode::SVC_ENABLE => Refusal::VnisLost,
        Opcode::SVC_SET_EXCLUSIVE_CP => Refusal::NeedsVniRange,
        Opcode::SVC_GET_NETNS => Refusal::NoNetns(id),
        Opcode::SVC_GET_VNI_RANGE => Refusal::NoVniRange(id),
        _ => Refusal::Nevertheless(id),
    })
}

/// EINVAL of CP_ALLOC and TRIG_CP_ALLOC. Drivers that know ranges search the services for the VNI
/// first, and EINVAL means something else there.
fn profile(service: ServiceId, facts: &Facts) -> ErrorKind {
    let searches_one = facts.proven.is_some() && !facts.can(Capabilities::VNI_RANGES);
    ErrorKind::Refused(if searches_one { Refusal::VniOrClass(service) } else { Refusal::Class })
}

/// Something that the service limits has run out.
fn limit(service: ServiceId, resource: Resource, facts: &Facts) -> ErrorKind {
    if facts.is_left {
        return nothing_left("all 8 address contexts of the LNI's RGID are in use");
    }
    ErrorKind::NotEnough(Shortage::Limit {
        service,
        resource,
        in_use: facts.in_use,
        max: facts.max,
    })
}

/// EEXIST: a VNI is taken. A process may also hold it outside any service.
fn taken(wanted: &[VniRange], except: Option<ServiceId>, facts: &Facts) -> Option<ErrorKind> {
    let unknown = VniConflict { wanted: *wanted.first()?, holder: None, held: None };
    let others = facts.services.iter().filter(|other| Some(other.id()) != except);
    let conflict = VniConflict::find(others, wanted, |_, _| true);
    Some(ErrorKind::VniTaken(conflict.unwrap_or(unknown)))
}

fn on_virtual_function(facts: &Facts) -> Option<ErrorKind> {
    facts.virtual_function.then(|| {
        ErrorKind::NotPermitted(
            "this is a virtual function; services are changed on the physical one".into(),
        )
    })
}

fn no_raw_network() -> ErrorKind {
    ErrorKind::NotPermitted("Ethernet needs CAP_NET_RAW".into())
}

fn busy(what: String) -> ErrorKind {
    ErrorKind::Busy { what: what.into(), waited: None }
}

fn nothing_left(what: &'static str) -> ErrorKind {
    ErrorKind::NotEnough(Shortage::Allocation { what })
}

impl Facts {
    fn can(&self, capability: Capabilities) -> bool {
        self.proven.is_some_and(|proven| proven.contains(capability))
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    fn said(attempt: Attempt, opcode: Opcode, errno: Errno, facts: &Facts) -> String {
        explain(&attempt, CommandError::refused(opcode, errno), facts).to_string()
    }

    #[test]
    fn a_virtual_function_is_named_where_it_is_the_reason() {
        let said = |opcode, virtual_function| {
            let facts = Facts { virtual_function, ..Facts::default() };
            said(Attempt::Other, opcode, Errno::EOPNOTSUPP, &facts)
        };
        let list = Opcode::SVC_LIST_GET;
        assert!(said(list, true).starts_with("SVC_LIST_GET: this is a virtual function, and its"));
        assert!(!said(list, false).contains("virtual"), "{}", said(list, false));
        assert!(!said(Opcode::ATU_MAP, true).contains("physical"));
    }

    #[test]
    fn what_is_unknown_is_not_claimed() {
        let id = ServiceId::new(7).unwrap();
        let destroy = |exists| {
            let facts = Facts { exists, ..Facts::default() };
            said(Attempt::OnService(id), Opcode::SVC_DESTROY, Errno::EINVAL, &facts)
        };
        assert_eq!(destroy(Some(false)), "SVC_DESTROY: there is no service 7");
        assert!(destroy(Some(true)).starts_with("SVC_DESTROY: service 7 exists, and"));
        assert_eq!(destroy(None), "SVC_DESTROY: the driver refused with EINVAL (Invalid argument)");
    }

    #[test]
    fn a_descriptor_is_checked_as_a_specification_is() {
        let desc = SvcDesc {
            flags: cxi_ioctl::abi::service::SvcFlags::RESTRICTED_VNIS.bits(),
            ..SvcDesc::new_zeroed()
        };
        let none = Attempt::Create(desc);
        assert_eq!(
            said(none, Opcode::SVC_ALLOC, Errno::EINVAL, &Facts::default()),
            "SVC_ALLOC: this driver cannot create a service without VNIs (EINVAL)"
        );
        let proven = Some(Capabilities::FROM_13_1);
        let facts = Facts { proven, ..Facts::default() };
        assert!(
            said(none, Opcode::SVC_ALLOC, Errno::EINVAL, &facts).contains("known to be wrong was"),
        );
    }

    #[test]
    fn a_limit_is_told_from_a_full_nic() {
        let below =
            Attempt::Below { service: ServiceId::new(2).unwrap(), resource: Some(Resource::Acs) };
        let acs = |in_use, max, is_left| {
            let facts = Facts { max, in_use, is_left, ..Facts::default() };
            said(below, Opcode::ATU_MAP, Errno::ENOSPC, &facts)
        };
        assert_eq!(
            acs(Some(8), Some(9), true),
            "ATU_MAP: all 8 address contexts of the LNI's RGID are in use"
        );
        assert!(acs(Some(9), Some(9), false).contains("9 of at most 9 are in use"));
        assert!(acs(Some(8), Some(9), false).contains("the NIC has no ACs left"));
        assert_eq!(acs(None, None, false), "ATU_MAP: no ACs are left for service 2");
    }
}
