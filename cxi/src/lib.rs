//! The safe API of HPE Slingshot's Cassini NIC (CXI), straight on the kernel driver `cxi_ss1`:
//! which NICs there are, who may use which virtual networks and how much of a NIC (*services*),
//! and everything a process allocates below a service.
//!
//! For those who write schedulers, container runtimes, administration tools, and tests of all of
//! these: nothing here needs the hardware, because a [`Device`] also works on the mock of the
//! crate `cxi-mock`.
//!
//! # Quick start
//!
//! ```
//! use cxi::{Device, DeviceId, Limit, Limits, Member, Resource, ServiceSpec, TrafficClasses, Vni};
//! use cxi_mock::{Credentials, Nic, NicConfig};
//!
//! // On a node with a NIC this is `Device::open(DeviceId::new(0))?`.
//! let file = Nic::new(NicConfig::new())?.open()?.transport(Credentials::root());
//! let device = Device::with_transport(DeviceId::new(0), file);
//!
//! let spec = ServiceSpec::builder()
//!     .member(Member::Uid(1000))
//!     .vni(Vni::new(1024)?)
//!     .traffic_classes(TrafficClasses::LOW_LATENCY | TrafficClasses::BEST_EFFORT)
//!     .limits(Limits::all_of(&device.info()?).with(Resource::Txqs, Limit::new(8, 16)?))
//!     .build()?;
//! let id = device.services().create(&spec)?;
//! assert_eq!(device.services().usage(id)?.in_use[Resource::Txqs], Some(0));
//! device.services().destroy(id)?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # What there is
//!
//! - [`devices`] finds the NICs of a node; [`Device::info`] says what one is,
//!   [`Device::availability`] how much of it is left.
//! - [`Device::services`] makes, lists, changes and destroys [services](service).
//! - [`Device::alloc_lni`] gives an [`Lni`], and that everything below: communication profiles,
//!   domains, queues, counters, portal table entries, memory ([`lni`]).
//!
//! The layer for schedulers (one act over all NICs, pools of VNIs, limits from cores, the
//! environment of a job) is the crate `cxi-job`.
//!
//! # Errors
//!
//! Every [`Error`] says in one line which NIC and which command, what was asked for and what there
//! was: `cxi0: SVC_ALLOC: not enough TXQs: 512 requested, 96 available`. [`Error::kind`] has it for
//! programs, [`Error::errno`] the driver's number. What can be known to be wrong is found before
//! anything is sent; what the driver does not say (which resource is short, who has a VNI) is
//! looked up after it refused. The driver stops at the first short resource, so no more than that
//! one is ever named.
//!
//! No command is sent twice, but for a service that is waited for
//! ([`Services::destroy_when_idle`], EBUSY alone) and by the layer for jobs when it undoes
//! something. EINTR, EAGAIN and ENOMEM, which no known driver gives, are reported as they come; what
//! was made on the way is given back, and the call can be made again. After EIO nothing can be
//! given back: a service that was made is named ([`Error::leftover`]), everything else goes with
//! the file.
//!
//! A driver of a version that this library does not know gives an error or the right value. An
//! answer of another length is [`ErrorKind::Protocol`], kinds that nobody knows yet survive as
//! numbers, and a command that is refused is not taken for a service that is not there.
//!
//! # Clean-up
//!
//! A service belongs to the NIC: it stays when the process ends, and a [`ServiceId`] is plain data.
//! [`ScopedService`] is for those who want it to go. LNIs and all below belong to the open file:
//! handles free what they stand for when they are dropped, in any order, quietly; their `close`
//! reports, and gives the handle back if the driver refuses. When a process dies the driver does
//! the same.
//!
//! # Threads
//!
//! Everything is `Send` and `Sync`. A [`Device`] is an open file, its clones are the same one;
//! commands of several threads run at once. Nothing is async: a command takes microseconds.
//!
//! # Privileges
//!
//! | what | needs |
//! | --- | --- |
//! | reading: devices, services, usage | read and write access to `/dev/cxiN`, which everybody has by default |
//! | changing services | CAP_SYS_ADMIN in the initial user namespace, on a physical function |
//! | LNIs and below | to be a member of the service, by effective uid, effective gid or network namespace |
//! | Ethernet queues, classes and portal table entries | CAP_NET_RAW |
//!
//! # Driver releases
//!
//! SHS 12.0 to 14.0.1 and the development branch of mid-2026. The kernel interface has no version:
//! what differs is found out, and what a driver cannot do is [`ErrorKind::Unsupported`]. The
//! documentation of a call says where releases differ.
//!
//! # Features
//!
//! `serde`: specifications, services, usage and device information as JSON or YAML; reading goes
//! through the same checks as building. Off by default.
// docs.rs says at an item which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod availability;
mod clock;
mod device;
pub mod driver;
pub mod error;
mod hardware;
mod host;
mod id;
mod info;
pub mod kernel_file;
mod limits;
pub mod lni;
mod member;
mod netns;
pub mod pools;
mod properties;
mod resource;
pub mod service;
mod sysfs;
mod telemetry;
mod traffic_class;
mod vni;
mod vni_access;
mod vni_range;

pub use availability::{Availability, ResourceLevel};
pub use clock::{Backoff, Clock, SystemClock};
pub use cxi_ioctl::{
    CharDev, DeviceMemory, DriverRelease, Errno, InvalidPciAddress, Mapping, Opcode, PciAddress,
    Transport,
};
pub use device::Device;
pub use driver::Driver;
pub use error::{Error, ErrorKind, Result};
pub use hardware::Hardware;
pub use host::{FoundDevice, Host, devices};
pub use id::{DeviceId, InvalidDeviceId, InvalidServiceId, ServiceId};
pub use info::{CassiniVersion, DeviceInfo, Platform};
pub use limits::{InvalidLimit, InvalidLnisPerRgid, Limit, Limits, LnisPerRgid};
pub use lni::Lni;
pub use member::{InvalidMembers, Member, Members};
pub use resource::{InvalidResource, Resource, ResourceMap};
pub use service::{
    InvalidSpec, ScopedService, Service, ServiceBuffer, ServiceSpec, ServiceSpecBuilder, Services,
    Usage,
};
pub use telemetry::CounterReading;
pub use traffic_class::{InvalidTrafficClass, TrafficClass, TrafficClasses};
pub use vni::{InvalidVni, Vni};
pub use vni_access::{InvalidVniList, VniAccess, VniList};
pub use vni_range::{InvalidVniRange, VniRange};
