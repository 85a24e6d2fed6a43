//! SVC_GET_LPR, which encodes its error in its value.

use crate::abi::service::SvcGetLprCmd;
use crate::{Command, CommandError, Errno, Transport, execute};

/// Values from here up are errors: the negative errno as an unsigned number.
const FIRST_ERROR: u32 = 0xFFFF_F001;

/// Returns how many LNIs of a service may share one RGID (SVC_GET_LPR, `cxil_get_svc_lpr`).
///
/// For an unknown service all known drivers report success and the value 0xFFFFFFEA, which is
/// EINVAL; this function returns that as an error.
///
/// # Errors
///
/// EINVAL for an unknown service; otherwise as [`execute`].
pub fn svc_get_lpr(transport: &dyn Transport, svc_id: u32) -> Result<u32, CommandError> {
    let value = execute(
        transport,
        &SvcGetLprCmd {
            svc_id,
            ..SvcGetLprCmd::new()
        },
    )?
    .value;
    if value < FIRST_ERROR {
        return Ok(value);
    }
    Err(CommandError::Refused {
        opcode: SvcGetLprCmd::OPCODE,
        errno: Errno::from_raw(value.cast_signed().wrapping_neg()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mapping, Request};

    #[derive(Debug)]
    struct Answers(u32);

    impl Transport for Answers {
        fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
            request.response()[..4].copy_from_slice(&self.0.to_ne_bytes());
            Ok(())
        }

        fn map(&self, _offset: u64, _len: usize) -> Result<Mapping, Errno> {
            Err(Errno::ENODEV)
        }
    }

    #[test]
    fn a_value_may_be_an_error() {
        let get = |value| svc_get_lpr(&Answers(value), 9).map_err(CommandError::errno);
        assert_eq!(get(0), Ok(0));
        assert_eq!(get(8), Ok(8));
        assert_eq!(get(0xFFFF_F000), Ok(0xFFFF_F000));
        assert_eq!(get(0xFFFF_F001), Err(Errno::from_raw(4095)));
        assert_eq!(get(0xFFFF_FFEA), Err(Errno::EINVAL));
        assert_eq!(get(u32::MAX), Err(Errno::EPERM));
    }
}
