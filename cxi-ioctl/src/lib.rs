//! The kernel interface of HPE Slingshot's Cassini NIC (CXI).
//!
//! The driver `cxi_ss1` has no ioctl: a command is one `write(2)` to `/dev/cxiN` of a struct that
//! starts with an [`Opcode`] and holds the address where the driver puts its response. This crate
//! has the structs ([`abi`]), typed commands over them ([`Command`], [`execute`]), and what
//! carries them ([`Transport`]): the character device ([`CharDev`]), a mock, or a decorator around
//! another transport.
//!
//! For services, LNIs and the rest as safe objects use the crate `cxi`.

pub mod abi;
mod chardev;
mod command;
mod errno;
pub mod layout;
mod mapping;
mod opcode;
mod release;
mod transport;

pub use chardev::CharDev;
pub use command::{
    Command, CommandError, Refusal, execute, execute_explained, execute_inout, execute_list,
};
pub use errno::{Errno, UnknownErrno};
pub use mapping::Mapping;
pub use opcode::{Handler, Opcode, OpcodeInfo, Privilege, RequestLen};
pub use release::{Release, UnknownRelease};
pub use transport::{Pointers, Request, Transport};
