//! Domains and PIDs.

use std::sync::Arc;

use cxi_ioctl::abi::domain::{DomainAllocCmd, DomainFreeCmd, DomainReserveCmd, PID_ANY};
use cxi_ioctl::{Command, Errno, Opcode};

use super::object::{Object, closable};
use super::{Lni, LniInner};
use crate::driver::Quirks;
use crate::error::{Error, ErrorKind, Result};
use crate::{Device, InvalidValue, ValueKind, Vni};

/// A process id on the fabric: with a NIC address and a VNI it identifies a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(u16);

impl Pid {
    /// The PID with this number.
    ///
    /// # Errors
    ///
    /// [`InvalidValue::Number`] above 510.
    pub fn new(number: u32) -> Result<Self, InvalidValue> {
        Self::try_from(number)
    }

    /// The number, 0 to 510.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

checked_integers!(Pid, |number| {
    let below = i128::from(PID_ANY);
    let valid = u16::try_from(number).ok().filter(|_| number < below);
    valid.map(Pid).ok_or(InvalidValue::number(ValueKind::Pid, number))
});

plain_number!(Pid, u16);

impl From<Pid> for u32 {
    fn from(pid: Pid) -> Self {
        pid.get().into()
    }
}

/// PIDs that the driver reserves for one LNI, starting with the first. They are released with the
/// LNI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PidBlock {
    /// The VNI they belong to.
    pub vni: Vni,
    /// The first PID.
    pub first: Pid,
    /// Number of PIDs.
    pub count: u16,
}

/// A domain: a (VNI, PID) pair of this NIC, unique on the device.
#[derive(Debug)]
pub struct Domain {
    pub(super) inner: Arc<DomainInner>,
}

#[derive(Debug)]
pub(super) struct DomainInner {
    object: Object<DomainFreeCmd>,
    _lni: Arc<LniInner>,
    vni: Vni,
    pid: Pid,
}

impl DomainInner {
    pub(super) fn handle(&self) -> u32 {
        self.object.command().domain
    }

    pub(super) fn device(&self) -> &Device {
        self.object.device()
    }
}

/// An answer of the driver that cannot be: a PID out of range, or another VNI.
fn unexpected_answer(device: &Device, opcode: Opcode, answer: &str) -> Error {
    let text = format!("invalid answer of the driver: {answer}");
    device.error(ErrorKind::Nonsense(text.into()), Errno::EPROTO, opcode)
}

fn number(pid: Option<Pid>) -> u32 {
    pid.map_or(PID_ANY, |pid| pid.get().into())
}

impl Lni {
    /// Allocates a domain: with the given PID, or any free one (DOMAIN_ALLOC).
    ///
    /// ```
    /// # use cxi_mock::{MockNode, NicConfig};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = MockNode::with_nics(1, &NicConfig::new())?;
    /// # let device = cxi::Device::cxi0(node.nics()[0].root()?);
    /// # use cxi::{ServiceSpec, Vni};
    /// # let vni = Vni::new(1024)?;
    /// # let service = device.services().create(&ServiceSpec::builder().vni(vni).build()?)?;
    /// # let lni = device.alloc_lni(service)?;
    /// let domain = lni.alloc_domain(vni, None)?;
    /// assert_eq!((domain.vni(), domain.pid().get()), (vni, 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// EEXIST when the PID is taken; ENOSPC when none is free (PID 510 is only assigned on
    /// request); ENOENT and EPERM as for [`Lni::alloc_cp`].
    ///
    /// [`ErrorKind::Nonsense`] when the driver answers with another VNI, or with an invalid PID.
    #[doc(alias = "cxil_alloc_domain")]
    pub fn alloc_domain(&self, vni: Vni, pid: Option<Pid>) -> Result<Domain> {
        let command = DomainAllocCmd::of(self.id(), vni.into(), number(pid));
        let attempt = self.inner.on_vni(vni);
        let response = self.device().attempt(attempt, &command)?;
        // Frees the domain if the rest of the answer is wrong.
        let object = Object::new(self.device(), DomainFreeCmd::of(response.domain));
        let pid = Pid::new(response.pid).ok().filter(|_| response.vni == u32::from(vni));
        let pid = pid.ok_or_else(|| {
            let answer = format!("VNI {} and PID {} for VNI {vni}", response.vni, response.pid);
            unexpected_answer(self.device(), DomainAllocCmd::OPCODE, &answer)
        })?;
        let lni = Arc::clone(&self.inner);
        Ok(Domain { inner: Arc::new(DomainInner { object, _lni: lni, vni, pid }) })
    }

    /// Reserves a run of PIDs for this LNI (DOMAIN_RESERVE).
    ///
    /// The run starts at `first` or at most `count - 1` after it; without `first`, wherever there
    /// is room. The PIDs are released with the LNI.
    ///
    /// # Errors
    ///
    /// EINVAL for a count of 0 or above 511, or a VNI that the caller may not use; EEXIST when
    /// there is no such run there; ENOSPC when there is none at all.
    ///
    /// [`ErrorKind::Quirk`] before SHS 13.1, nothing was sent: on 13.0, which cannot reliably be
    /// distinguished from 12.0, a reservation that the driver refuses corrupts the kernel's memory.
    #[doc(alias = "cxil_reserve_domain")]
    pub fn reserve_pids(&self, vni: Vni, first: Option<Pid>, count: u16) -> Result<PidBlock> {
        const OPCODE: Opcode = Opcode::DOMAIN_RESERVE;
        let device = self.device();
        if count == 0 || u32::from(count) > PID_ANY {
            let text = format!("{count} PIDs to reserve: expected 1 to 511");
            return Err(device.invalid(OPCODE, text));
        }
        device.guard(Quirks::REFUSED_RESERVE, OPCODE)?;
        let command = DomainReserveCmd::of(self.id(), vni.into(), number(first), count.into());
        let response = self.inner.send(&command, None)?;
        let last = response.pid.checked_add(u32::from(count) - 1);
        if let (Ok(first), Some(Ok(_))) = (Pid::new(response.pid), last.map(Pid::new)) {
            return Ok(PidBlock { vni, first, count });
        }
        let answer = format!("{count} PIDs from {} on, where 510 is the last", response.pid);
        Err(unexpected_answer(device, OPCODE, &answer))
    }
}

impl Domain {
    /// The VNI.
    #[must_use]
    pub fn vni(&self) -> Vni {
        self.inner.vni
    }

    /// The PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.inner.pid
    }
}

closable! {
    /// EBUSY while a PtlTE is mapped into it.
    Domain.inner.object by DOMAIN_FREE ("cxil_destroy_domain")
}
