//! A safe API for HPE Slingshot's Cassini NIC (CXI), built directly on the kernel driver `cxi_ss1`. It
//! finds NICs, controls who may use which virtual networks and how much of a NIC (*services*), and
//! manages everything that a process allocates within a service.
//!
//! It is meant for authors of schedulers, container runtimes and administration tools, and for tests of
//! all of these. Nothing here requires the hardware: a [`Device`] also works on the mock in the crate
//! `cxi-mock`.
//!
//! # Quick start
//!
//! ```
//! use cxi::{Device, Limit, Limits, Member, Resource, ServiceSpec, TrafficClasses, Vni};
//! use cxi_mock::{Nic, NicConfig};
//!
//! // On a node with a NIC this is `Device::open(DeviceId::new(0))?`.
//! let device = Device::cxi0(Nic::new(NicConfig::new())?.root()?);
//!
//! let spec = ServiceSpec::builder()
//!     .member(Member::Uid(1000))
//!     .vni(Vni::new(1024)?)
//!     .traffic_classes(TrafficClasses::LOW_LATENCY | TrafficClasses::BEST_EFFORT)
//!     .limits(Limits::all_of(&device.info()?).with(Resource::Txqs, Limit::new(8, 16)?))
//!     .build()?;
//! let id = device.services().create(&spec)?;
//! assert_eq!(device.services().usage(id)?.in_use(Resource::Txqs), 0);
//! device.services().destroy(id)?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! List all NICs of a node with their available resources, and their services:
//!
//! ```
//! for found in cxi::devices()? {
//!     let (device, info) = (found.device()?, found.info()?);
//!     let txqs = device.availability()?.resources[cxi::Resource::Txqs];
//!     println!("{}: address {:#x}, {} TXQs left", device.id(), info.nid, txqs.reservable);
//!     for service in device.services().list()? {
//!         // All of it in one line; also id(), members() (None: everyone), vnis(), is_enabled()...
//!         println!("  {service}; limits: {}", service.limits());
//!     }
//! }
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! Create a service for the processes in a network namespace, such as a container's, that is limited to
//! the resources it needs. A network namespace must be the only member of its service.
//!
//! ```
//! # use cxi::Device;
//! # use cxi_mock::{Nic, NicConfig};
//! # let device = Device::cxi0(Nic::new(NicConfig::new())?.root()?);
//! use cxi::{Limit, Limits, Member, Resource, ServiceSpec};
//!
//! let limits = Limits::none()
//!     .with(Resource::Acs, Limit::at_most(2))
//!     .with(Resource::Eqs, Limit::at_most(4))
//!     .with(Resource::Txqs, Limit::new(2, 4)?)
//!     .with(Resource::Tgqs, Limit::new(1, 2)?);
//! let spec = ServiceSpec::builder()
//!     .member(Member::netns_at("/proc/self/ns/net")?)
//!     .vni_range("1024-1031".parse()?)
//!     .limits(limits)
//!     .build()?;
//! let id = device.services().create(&spec)?;
//! # device.services().destroy(id)?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! In its service, a process allocates an LNI, and from it a communication profile, an event queue and
//! a command queue. The service's limits must allow for all of these; an event queue takes an EQ, and
//! an AC for its memory. The crate `cxi-data` sends messages with them.
//!
//! ```
//! # use cxi::{Device, ServiceSpec};
//! # use cxi_mock::{Nic, NicConfig};
//! # let device = Device::cxi0(Nic::new(NicConfig::new())?.root()?);
//! use cxi::lni::{EventQueueOptions, TxqOptions};
//! use cxi::{TrafficClass, Vni};
//!
//! # let spec = ServiceSpec::builder().vni(Vni::new(1024)?).build()?;
//! # let service = device.services().create(&spec)?;
//! let lni = device.alloc_lni(service)?;
//! let profile = lni.alloc_cp(Vni::new(1024)?, TrafficClass::BestEffort)?;
//! let events = lni.alloc_eq(&EventQueueOptions::new(64 * 1024))?;
//! let commands = lni.alloc_txq(&profile, &TxqOptions::new(256).event_queue(&events))?;
//! println!("LNI {}, LCID {}", lni.id(), profile.lcid());
//! println!("EQ {}, TXQ {}", events.id(), commands.id());
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # Overview
//!
//! - [`devices`] finds the NICs of a node; [`Device::info`] describes one, and [`Device::availability`]
//!   shows how much of its resources is left.
//! - [`Device::services`] creates, lists, changes and destroys [services](service).
//! - [`Device::alloc_lni`] returns an [`Lni`], which allocates everything else: communication
//!   profiles, domains, queues, counters, portal table entries, memory ([`lni`]).
//!
//! The scheduler layer (one operation over all NICs, pools of VNIs, limits from cores, the
//! environment of a job) is the crate `cxi-job`.
//!
//! # Errors
//!
//! Every [`Error`] states in one line which NIC and which command failed, what was requested and what
//! was available: `cxi0: SVC_ALLOC: not enough TXQs: 512 requested, 96 available`. [`Error::kind`] has
//! the same information for programs, and [`Error::errno`] the driver's errno. Errors that can be
//! detected in advance are reported before anything is sent; they have an errno too, such as EINVAL for
//! an invalid value. What the driver does not say (which resource is exhausted, who has a VNI) is
//! looked up after it refuses ([`explain`]). The driver stops at the first exhausted resource, so only
//! that one is ever named.
//!
//! ```
//! # use cxi::{Device, Limit, Limits, Resource, ServiceSpec, Vni};
//! # use cxi_mock::{Fault, Nic, NicConfig};
//! # let nic = Nic::new(NicConfig::new())?;
//! # let device = Device::cxi0(nic.root()?);
//! # let limits = Limits::none().with(Resource::Txqs, Limit::exactly(512));
//! # let spec = ServiceSpec::builder().vni(Vni::new(1024)?).limits(limits).build()?;
//! # nic.faults().inject(Fault::shortage(Resource::Txqs, 96));
//! use cxi::{Errno, ErrorKind, Shortage};
//!
//! let error = device.services().create(&spec).unwrap_err();
//! assert_eq!(error.errno(), Errno::ENOSPC);
//! match error.kind() {
//!     ErrorKind::NotEnough(Shortage::Reservation { resource, available, .. }) => {
//!         assert_eq!((*resource, *available), (Resource::Txqs, 96));
//!     }
//!     other => panic!("{other}"),
//! }
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! No command is sent twice, except to wait for a busy service ([`Services::destroy_when_idle`], only
//! on EBUSY) and when the scheduler layer undoes something. EINTR, EAGAIN and ENOMEM, which no known
//! driver returns, are reported unchanged; whatever the call had allocated by then is released, and the
//! call can be repeated. After EIO nothing can be released: a service that was created is named
//! ([`Error::leftover`]), and everything else disappears when the file is closed.
//!
//! An unknown version of the driver causes an error or a correct value, never a wrong one. A response
//! of an unexpected length is [`ErrorKind::Protocol`], unknown kinds are kept as numbers, and a refused
//! command is not mistaken for a missing service.
//!
//! # Cleanup
//!
//! A service belongs to the NIC: it outlives the process, and a [`ServiceId`] is plain data. Use
//! [`Services::create_scoped`] for a [`ScopedService`], which is destroyed on drop. LNIs and everything
//! below them belong to the open file. Their handles free them when dropped, in any order, and ignore
//! errors; `close` reports the error, and returns the handle if the driver refuses. When a process
//! dies, the driver frees everything that belongs to the file.
//!
//! # Threads
//!
//! Everything is `Send` and `Sync`. Clones of a [`Device`] share one open file, and commands from
//! several threads run concurrently. Nothing is async: a command takes microseconds.
//!
//! # Privileges
//!
//! | what | needs |
//! | --- | --- |
//! | reading: devices, services, usage | read and write access to `/dev/cxiN`, which everyone has
//! by default |
//! | changing services | CAP_SYS_ADMIN in the initial user namespace, on a physical function |
//! | LNIs and below | to be a member of the service, by effective uid, effective gid or network
//! namespace |
//! | Ethernet queues, classes and portal table entries | CAP_NET_RAW |
//!
//! # Driver releases
//!
//! The crate supports SHS 12.0 to 14.0.1 and the development branch of mid-2026. The kernel interface
//! has no version number, so differences are detected, and what a driver cannot do is reported as
//! [`ErrorKind::Unsupported`]. The documentation of each call says how releases differ.
//!
//! # Features
//!
//! `serde`: serializes specifications, services, usage and device information, for JSON or YAML;
//! deserializing applies the same checks as building. Off by default.
// docs.rs shows which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[macro_use]
mod macros;

mod availability;
mod clock;
mod device;
pub mod driver;
pub mod environment;
pub mod error;
pub mod explain;
mod hardware;
mod host;
mod id;
mod info;
mod invalid;
pub mod kernel_file;
mod limits;
mod link;
pub mod lni;
mod member;
mod netns;
pub mod pools;
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
pub use error::{Error, ErrorKind, Refusal, Result, Shortage};
pub use hardware::Hardware;
pub use host::{FoundDevice, Host, devices};
pub use id::{DeviceId, ServiceId};
pub use info::{CassiniVersion, DeviceInfo, Platform};
pub use invalid::{InvalidValue, ValueKind};
pub use limits::{Limit, Limits, LnisPerRgid};
pub use link::LinkHistory;
pub use lni::Lni;
pub use member::{Member, Members};
pub use resource::{Resource, ResourceMap};
pub use service::{
    InvalidSpec, ScopedService, Service, ServiceSetting, ServiceSpec, ServiceSpecBuilder, Services,
    SettingChange, SettingForm, SettingValue, Usage,
};
pub use telemetry::CounterReading;
pub use traffic_class::{TrafficClass, TrafficClasses};
pub use vni::Vni;
pub use vni_access::{VniAccess, VniList};
pub use vni_range::VniRange;
