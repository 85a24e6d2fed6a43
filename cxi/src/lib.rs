//! The safe API of the Cassini NIC.
#![forbid(unsafe_code)]

mod availability;
mod clock;
mod device;
pub mod error;
mod host;
mod id;
mod info;
pub mod job;
mod limits;
pub mod lni;
mod member;
mod pci;
mod resource;
pub mod service;
mod sysfs;
mod telemetry;
mod traffic_class;
mod vni;
mod vni_access;

pub use availability::{Availability, Level};
pub use clock::{Backoff, Clock, SystemClock};
pub use cxi_ioctl::{CharDev, DeviceMemory, Errno, Mapping, Opcode, Release, Transport};
pub use device::Device;
pub use error::{Error, ErrorKind, Result};
pub use host::{FoundDevice, Host, devices};
pub use id::{DeviceId, InvalidDeviceId, InvalidServiceId, ServiceId};
pub use info::{CassiniVersion, DeviceInfo, Platform};
pub use limits::{InvalidLimit, InvalidLnisPerRgid, Limit, Limits, LnisPerRgid};
pub use lni::Lni;
pub use member::{InvalidMembers, Member, Members};
pub use pci::{InvalidPciAddress, PciAddress};
pub use resource::{InvalidResource, Resource, ResourceMap};
pub use service::{
    InvalidSpec, ScopedService, Service, ServiceBuffer, ServiceSpec, ServiceSpecBuilder, Services,
    Usage,
};
pub use telemetry::Reading;
pub use traffic_class::{InvalidTrafficClass, TrafficClass, TrafficClasses};
pub use vni::{InvalidVni, InvalidVniRange, Vni, VniRange};
pub use vni_access::{InvalidVniList, VniAccess, VniList};
