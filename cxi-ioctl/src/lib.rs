//! The kernel interface of HPE Slingshot's Cassini NIC (CXI).
//!
//! The driver `cxi_ss1` has no ioctl. A command is one `write(2)` to `/dev/cxiN` of a struct that
//! starts with an [`Opcode`] and contains the address where the driver puts its response. This crate
//! has the structs ([`abi`]), typed commands that use them ([`Command`], [`execute`]), and the
//! transports that carry the commands ([`Transport`]): the character device ([`CharDev`]), a mock, or a
//! decorator around another transport.
//!
//! For safe objects such as services and LNIs, use the crate `cxi`.

// docs.rs shows which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod abi;
mod chardev;
mod command;
mod decorator;
mod errno;
mod irregular;
pub mod layout;
mod list;
mod lni_form;
mod mapping;
pub mod memory;
mod opcode;
mod owned;
mod pci;
mod reachable;
mod release;
pub mod socket;
mod transport;
mod unknown;

pub use chardev::CharDev;
pub use command::{
    Command, CommandError, LIST_MAX, LIST_ROUNDS, SafeCommand, execute, execute_unchecked,
};
pub use decorator::{
    Divergence, Exchange, Fault, Faulty, Intercept, Record, Recording, Replay, Strike, Trace,
};
pub use errno::{Errno, UnknownErrno};
pub use irregular::{DevProperties, dev_properties, svc_get_lpr};
pub use list::{LIST_HEADROOM, ListCommand, fetch_list, pte_status};
pub use lni_form::{LniAllocForm, LniForm, eq_adjust_reserved_fc};
pub use mapping::Mapping;
pub use memory::DeviceMemory;
pub use opcode::{Effect, Family, Handler, Object, Opcode, OpcodeInfo, Privilege, RequestLen};
pub use owned::{atu_map, atu_update_md, ct_alloc, ct_wb_update, eq_alloc, eq_resize};
pub use pci::{InvalidPciAddress, PciAddress};
#[doc(hidden)]
pub use release::{ByRelease, EveryRelease};
pub use release::{DriverRelease, UnknownRelease};
pub use transport::{Pointers, Request, Transport};
pub use unknown::UnknownCmd;
// Its traits are bounds of `Command`.
