//! The safe API of the Cassini NIC.
#![forbid(unsafe_code)]
#![allow(dead_code)]

mod id;
pub mod job;
mod limits;
mod member;
mod resource;
mod traffic_class;
mod vni;
mod vni_access;

pub use id::{DeviceId, InvalidDeviceId, InvalidServiceId, ServiceId};
pub use limits::{InvalidLimit, InvalidLnisPerRgid, Limit, Limits, LnisPerRgid};
pub use member::{InvalidMembers, Member, Members};
pub use resource::{InvalidResource, Resource, ResourceMap};
pub use traffic_class::{InvalidTrafficClass, TrafficClass, TrafficClasses};
pub use vni::{InvalidVni, InvalidVniRange, Vni, VniRange};
pub use vni_access::{InvalidVniList, VniAccess, VniList};
