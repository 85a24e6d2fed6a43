//! The blocks behind the handles of objects of an open NIC.
//!
//! Each keeps its device's block alive, so that C may close the device first. Closing makes the driver
//! free all objects, so destroying the others afterward gives EBADF. Tests with HPE's private header
//! read the LNI and the kernel's number of an event queue, the device of an LNI, and the numbers of
//! MDs and wait objects.

use std::cell::Cell;
use std::fs::File;

use cxi::explain::Attempt;
use cxi::{Resource, ServiceId};
use cxi_ioctl::Command;
use cxi_ioctl::abi::memory::Md as MdPublic;

use crate::device::Counted;
use crate::failure::{Failure, Result};
use crate::ffi::Memory;
use crate::handle::{Shared, Tag, blocks};
use crate::public::{CmdqPublic, CpPublic, CtPublic, DomainPublic, EvtqPublic};
use crate::send::send;
use crate::window::Window;

blocks! {
    /// Behind a `struct cxil_lni`.
    struct Lni = b"clni", id: u32 {
        pub(crate) dev: Counted,
        pub(crate) id: Shared<u32>,
        pub(crate) service: u32,
        pub(crate) tag: Tag,
    }

    /// Behind a `struct cxi_cp`.
    struct Cp = b"c_cp", public: CpPublic {
        pub(crate) public: Shared<CpPublic>,
        pub(crate) tag: Tag,
        pub(crate) number: u32,
        pub(crate) dev: Counted,
    }

    /// Behind a `struct cxil_domain`.
    struct Domain = b"cdom", public: DomainPublic {
        pub(crate) public: Shared<DomainPublic>,
        pub(crate) dev: Counted,
        pub(crate) tag: Tag,
        pub(crate) number: u32,
    }

    /// Behind a `struct cxi_md`.
    struct Md = b"c_md", public: MdPublic {
        pub(crate) dev: Counted,
        pub(crate) number: u32,
        /// `true` if child processes do not inherit its memory.
        pub(crate) protected: bool,
        pub(crate) public: Shared<MdPublic>,
        pub(crate) tag: Tag,
    }

    /// Behind a `struct cxi_cq`.
    struct Cmdq = b"c_cq", public: CmdqPublic {
        pub(crate) dev: Counted,
        /// The mapped command buffer; `None` if it is in the caller's memory.
        pub(crate) commands: Window,
        pub(crate) write_pointer: Window,
        pub(crate) number: u32,
        pub(crate) tag: Tag,
        pub(crate) public: Shared<CmdqPublic>,
    }

    /// Behind a `struct cxi_eq`.
    struct Evtq = b"c_eq", public: EvtqPublic {
        /// Address of the public part of the LNI, for tools; the LNI may no longer exist.
        pub(crate) lni: *const Lni,
        pub(crate) number: u32,
        pub(crate) tag: Tag,
        pub(crate) dev: Counted,
        pub(crate) registers: Window,
        /// The memory of a resize in progress.
        pub(crate) resized: Cell<(Memory, usize)>,
        pub(crate) public: Shared<EvtqPublic>,
    }

    /// Behind a `struct cxil_wait_obj`, which is opaque to C.
    struct Wait = b"wait", nothing: () {
        pub(crate) nothing: Shared<()>,
        pub(crate) dev: Counted,
        pub(crate) number: u32,
        pub(crate) interrupt: File,
        pub(crate) tag: Tag,
    }

    /// Behind a `struct cxi_ct`.
    struct Ct = b"c_ct", public: CtPublic {
        pub(crate) dev: Counted,
        pub(crate) doorbell: Window,
        pub(crate) tag: Tag,
        pub(crate) public: Shared<CtPublic>,
    }

    /// Behind a `struct cxil_pte`.
    struct Pte = b"cpte", number: u32 {
        pub(crate) number: Shared<u32>,
        pub(crate) dev: Counted,
        pub(crate) tag: Tag,
    }

    /// Behind a `struct cxil_pte_map`, which is opaque to C.
    struct PteMap = b"pmap", nothing: () {
        pub(crate) nothing: Shared<()>,
        pub(crate) dev: Counted,
        pub(crate) index: u32,
        pub(crate) tag: Tag,
    }
}

impl Lni {
    /// Sends a command that allocates something below the LNI and uses up one of `resource`.
    #[inline]
    pub(crate) fn send<C: Command>(
        &self,
        command: &C,
        resource: Option<Resource>,
    ) -> Result<C::Response> {
        send(&self.dev, command).map_err(|failure| {
            self.explained(failure, |service| Attempt::Below { service, resource })
        })
    }

    /// Adds to a command's failure which VNI the command was for.
    pub(crate) fn on_vni(&self, failure: Failure, vni: u32, ethernet: bool) -> Failure {
        self.explained(failure, |service| Attempt::OnVni { service, vni, ethernet })
    }

    #[cold]
    fn explained(&self, failure: Failure, attempt: impl FnOnce(ServiceId) -> Attempt) -> Failure {
        let service = ServiceId::new(self.service);
        service.map_or(failure, |service| failure.during(attempt(service)))
    }
}

/// The offsets of the members of HPE's private header that its tests read.
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Lni, dev) == 0 && offset_of!(Lni, id) == 8);
    assert!(offset_of!(Md, number) == 8 && offset_of!(Md, public) == 16);
    assert!(offset_of!(Evtq, lni) == 0 && offset_of!(Evtq, number) == 8);
    assert!(offset_of!(Evtq, public) == 56);
    assert!(offset_of!(Wait, number) == 8 && offset_of!(Wait, interrupt) == 12);
};
