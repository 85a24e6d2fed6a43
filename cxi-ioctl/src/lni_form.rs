//! The two commands whose request differs between driver generations.

use std::sync::OnceLock;

use crate::abi::lni::{LniAllocCmd, LniAllocCmdV1};
use crate::abi::queue::{EqAdjustReservedFcCmd, EqAdjustReservedFcCmdV1};
use crate::{CommandError, DriverRelease, Errno, Transport, execute};

/// Form of these requests that a driver understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LniForm {
    /// Up to SHS 14.0: LNI_ALLOC has 16 bytes, EQ_ADJUST_RESERVED_FC its response pointer at 16.
    Short,
    /// From the development branch on: LNI_ALLOC has 24 bytes, EQ_ADJUST_RESERVED_FC its response
    /// pointer at 8.
    Long,
}

impl LniForm {
    /// The form of a release.
    #[must_use]
    pub const fn for_release(release: DriverRelease) -> Self {
        match release {
            DriverRelease::Main2026_07 | DriverRelease::Main2026_11 => Self::Long,
            DriverRelease::Shs12_0
            | DriverRelease::Shs13_0
            | DriverRelease::Shs13_1
            | DriverRelease::Shs14_0_0
            | DriverRelease::Shs14_0_1 => Self::Short,
        }
    }
}

/// LNI_ALLOC in the form that the driver behind a transport understands.
///
/// The driver has no version to query. A request of the wrong length is EINVAL and has no effect,
/// so the shorter form is tried first, which all releases so far understand, and the longer one on
/// EINVAL; the first success settles the form. An error does not: EINVAL also means an unknown
/// service, and other errors may come from anything between the caller and the driver. Keep one of
/// these for each device.
///
/// ```no_run
/// use cxi_ioctl::{CharDev, LniAllocForm, LniForm};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = CharDev::open("/dev/cxi0")?;
/// let form = LniAllocForm::new();
/// let (lni, form_understood) = form.alloc(&device, 1)?;
/// assert_eq!(form.known(), Some(form_understood));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct LniAllocForm {
    settled: OnceLock<LniForm>,
}

impl LniAllocForm {
    /// Creates one with the form still unknown.
    #[must_use]
    pub const fn new() -> Self {
        Self { settled: OnceLock::new() }
    }

    /// The form, if an LNI has been allocated.
    #[must_use]
    pub fn known(&self) -> Option<LniForm> {
        self.settled.get().copied()
    }

    /// Allocates an LNI of a service (LNI_ALLOC, `cxil_alloc_lni`); returns its handle, and the
    /// form that the driver understood.
    ///
    /// # Errors
    ///
    /// EINVAL for an unknown service, EKEYREVOKED for a disabled one, EPERM if the caller is not a
    /// member of it, ENOSPC without a free RGID; otherwise as [`execute`].
    pub fn alloc(
        &self,
        transport: &dyn Transport,
        svc_id: u32,
    ) -> Result<(u32, LniForm), CommandError> {
        // Asked once: another thread may find it out meanwhile.
        let known = self.known();
        let first = known.unwrap_or(LniForm::Short);
        let (lni, form) = match alloc(transport, first, svc_id) {
            Err(error) if error.errno() == Errno::EINVAL && known.is_none() => {
                (alloc(transport, LniForm::Long, svc_id)?, LniForm::Long)
            }
            result => (result?, first),
        };
        let _ = self.settled.set(form);
        Ok((lni, form))
    }
}

/// Changes how many slots of an event queue are reserved for flow control (EQ_ADJUST_RESERVED_FC,
/// `cxil_evtq_adjust_reserved_fc`); returns the new number.
///
/// Both forms have the same length, so a driver cannot tell them apart, and would misread the wrong
/// one: the form must be known. An event queue needs an LNI, and allocating that reveals the form
/// ([`LniAllocForm::alloc`]).
///
/// # Errors
///
/// EINVAL for an unknown event queue; otherwise as [`execute`].
pub fn eq_adjust_reserved_fc(
    transport: &dyn Transport,
    form: LniForm,
    eq_hndl: u32,
    value: i32,
) -> Result<i32, CommandError> {
    let response = match form {
        LniForm::Long => execute(transport, &EqAdjustReservedFcCmd::of(eq_hndl, value)),
        LniForm::Short => execute(transport, &EqAdjustReservedFcCmdV1::of(eq_hndl, value)),
    };
    Ok(response?.reserved_fc)
}

fn alloc(transport: &dyn Transport, form: LniForm, svc_id: u32) -> Result<u32, CommandError> {
    let response = match form {
        LniForm::Long => execute(transport, &LniAllocCmd::of(svc_id)),
        LniForm::Short => execute(transport, &LniAllocCmdV1::of(svc_id)),
    };
    Ok(response?.lni)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::{Opcode, Request};

    /// A driver of one generation with service 5; answers `error` if that is set.
    #[derive(Debug)]
    struct Driver {
        form: LniForm,
        error: Mutex<Option<Errno>>,
        lengths: Mutex<Vec<usize>>,
    }

    impl Driver {
        fn new(form: LniForm) -> Self {
            Self { form, error: Mutex::default(), lengths: Mutex::default() }
        }

        fn lengths(&self) -> Vec<usize> {
            std::mem::take(&mut self.lengths.lock().unwrap())
        }
    }

    fn u32_at(bytes: &[u8], offset: usize) -> u32 {
        u32::from_ne_bytes(bytes[offset..offset + 4].try_into().unwrap())
    }

    impl Transport for Driver {
        fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
            let command = request.command();
            self.lengths.lock().unwrap().push(command.len());
            let long = self.form == LniForm::Long;
            if request.opcode() == Opcode::EQ_ADJUST_RESERVED_FC {
                let (pointer, eq, value) = if long { (8, 16, 20) } else { (16, 4, 8) };
                assert_eq!(request.pointers().response, Some(pointer));
                assert_eq!(u32_at(command, eq), 3);
                request.response()[..4].copy_from_slice(&command[value..value + 4]);
                return Ok(());
            }
            if let Some(errno) = *self.error.lock().unwrap() {
                return Err(errno);
            }
            let (len, service) = if long { (24, 16) } else { (16, 4) };
            assert_eq!(request.pointers().response, Some(8));
            if command.len() != len || u32_at(command, service) != 5 {
                return Err(Errno::EINVAL);
            }
            request.response()[..4].copy_from_slice(&9_u32.to_ne_bytes());
            Ok(())
        }
    }

    #[test]
    fn the_form_is_found_at_the_first_success_and_kept() {
        for (form, first, then) in
            [(LniForm::Long, vec![16, 24], vec![24]), (LniForm::Short, vec![16], vec![16])]
        {
            let driver = Driver::new(form);
            let lnis = LniAllocForm::new();
            assert_eq!(lnis.known(), None);
            assert_eq!(lnis.alloc(&driver, 5), Ok((9, form)));
            assert_eq!(driver.lengths(), first);
            assert_eq!(lnis.known(), Some(form));
            assert_eq!(lnis.alloc(&driver, 5), Ok((9, form)));
            assert_eq!(driver.lengths(), then);
        }
    }

    #[test]
    fn an_unknown_service_settles_nothing() {
        for form in [LniForm::Long, LniForm::Short] {
            let driver = Driver::new(form);
            let lnis = LniAllocForm::new();
            let error = lnis.alloc(&driver, 6).unwrap_err();
            assert_eq!(error.errno(), Errno::EINVAL);
            assert_eq!((driver.lengths(), lnis.known()), (vec![16, 24], None));
            assert_eq!(lnis.alloc(&driver, 5), Ok((9, form)));
            assert_eq!(lnis.known(), Some(form));
        }
    }

    #[test]
    fn an_error_from_elsewhere_settles_nothing_either() {
        let driver = Driver::new(LniForm::Short);
        let lnis = LniAllocForm::new();
        *driver.error.lock().unwrap() = Some(Errno::ENOSPC);
        let error = lnis.alloc(&driver, 5).unwrap_err();
        assert_eq!(error.errno(), Errno::ENOSPC);
        assert_eq!((driver.lengths(), lnis.known()), (vec![16], None));
        *driver.error.lock().unwrap() = None;
        assert_eq!(lnis.alloc(&driver, 5), Ok((9, LniForm::Short)));
        assert_eq!(lnis.known(), Some(LniForm::Short));
    }

    #[test]
    fn event_queues_are_adjusted_in_the_known_form() {
        for form in [LniForm::Long, LniForm::Short] {
            let driver = Driver::new(form);
            assert_eq!(eq_adjust_reserved_fc(&driver, form, 3, -4), Ok(-4));
        }
        assert_eq!(LniForm::for_release(DriverRelease::Shs14_0_1), LniForm::Short);
        assert_eq!(LniForm::for_release(DriverRelease::Main2026_07), LniForm::Long);
    }
}
