//! Two irregular responses: that of SVC_GET_LPR hides an error in its value, and that of
//! GET_DEV_PROPERTIES has two lengths.

use std::mem::offset_of;

use zerocopy::FromBytes;

use crate::abi::device::{GetDevPropertiesCmd, PropertiesInfo, PropertiesInfoV1};
use crate::abi::service::SvcGetLprCmd;
use crate::command::submit_measured;
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
    let value = execute(transport, &SvcGetLprCmd::of(svc_id))?.value;
    if value < FIRST_ERROR {
        return Ok(value);
    }
    let errno = Errno::from_raw(value.cast_signed().wrapping_neg());
    Err(CommandError::refused(SvcGetLprCmd::OPCODE, errno))
}

/// The answer to GET_DEV_PROPERTIES, whatever the driver's generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DevProperties {
    /// `true` if the NIC address has been set; `None` up to SHS 13.0, which does not report it.
    pub nid_configured: Option<bool>,
    /// Part that all drivers report.
    pub info: PropertiesInfoV1,
}

/// Queries the properties of the device (GET_DEV_PROPERTIES).
///
/// The driver writes 80 bytes up to SHS 13.0 and 84 from 13.1 on, without saying which; the number
/// of bytes written tells.
///
/// # Errors
///
/// The driver's errno; [`CommandError::AbiMismatch`] if the response has neither length.
pub fn dev_properties(transport: &dyn Transport) -> Result<DevProperties, CommandError> {
    const OLD: usize = size_of::<PropertiesInfoV1>();
    const NEW: usize = size_of::<PropertiesInfo>();
    const FROM_OLD: usize = OLD - 3;
    const AFTER_OLD: usize = OLD + 1;
    let opcode = GetDevPropertiesCmd::OPCODE;

    let (result, mut room, written) = submit_measured(transport, &GetDevPropertiesCmd::new());
    result.map_err(|errno| CommandError::refused(opcode, errno))?;
    // The last bytes of a response may happen to look untouched.
    let (nid_configured, info) = match written {
        AFTER_OLD..=NEW => {
            let configured = room[offset_of!(PropertiesInfo, nid_configured)] != 0;
            // The newer form has this one between the NIC address and the rest: without it, the
            // address is where the older form begins.
            room.copy_within(..NEW - OLD, NEW - OLD);
            (Some(configured), &room[NEW - OLD..])
        }
        FROM_OLD..=OLD => (None, &room[..]),
        _ => (None, &[][..]),
    };
    match PropertiesInfoV1::read_from_prefix(info) {
        Ok((info, _)) => Ok(DevProperties { nid_configured, info }),
        Err(_) => Err(CommandError::AbiMismatch { opcode, expected: NEW, written }),
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::{FromZeros, IntoBytes};

    use super::*;
    use crate::Request;

    #[derive(Debug)]
    struct Answers(Vec<u8>);

    impl Transport for Answers {
        fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
            request.response()[..self.0.len()].copy_from_slice(&self.0);
            Ok(())
        }
    }

    #[test]
    fn both_lengths_give_the_same_fields() {
        let mut new = PropertiesInfo::new_zeroed();
        new.nid = 0x1234;
        new.nid_configured = 1;
        new.pid_bits = 9;
        new.rsrcs.types[7].max = 1022;
        new.rdzv_get_en = 1;
        new.amo_remap_to_pcie_fadd = -1;
        let mut old = PropertiesInfoV1::new_zeroed();
        old.nid = 0x1234;
        old.pid_bits = 9;
        old.rsrcs.types[7].max = 1022;
        old.rdzv_get_en = 1;
        old.amo_remap_to_pcie_fadd = -1;

        let from_new = dev_properties(&Answers(new.as_bytes().to_vec())).unwrap();
        let from_old = dev_properties(&Answers(old.as_bytes().to_vec())).unwrap();
        assert_eq!(from_new.nid_configured, Some(true));
        assert_eq!(from_old.nid_configured, None);
        assert_eq!(from_new.info.rsrcs.types[7].max, 1022);
        assert_eq!(from_new.info.amo_remap_to_pcie_fadd, -1);
        let same = DevProperties { nid_configured: None, ..from_new };
        assert_eq!(same, from_old);

        // Zeros at the end are written bytes too.
        old.amo_remap_to_pcie_fadd = 0;
        new.amo_remap_to_pcie_fadd = 0;
        let old = dev_properties(&Answers(old.as_bytes().to_vec())).unwrap();
        let new = dev_properties(&Answers(new.as_bytes().to_vec())).unwrap();
        assert_eq!((old.nid_configured, new.nid_configured), (None, Some(true)));
    }

    #[test]
    fn some_bytes_at_the_end_may_look_untouched() {
        for len in 77..=84 {
            let properties = dev_properties(&Answers(vec![0; len])).unwrap();
            assert_eq!(properties.nid_configured.is_some(), len > 80, "{len}");
        }
    }

    #[test]
    fn other_lengths_are_a_mismatch() {
        for len in [0, 76, 85, 88, 120] {
            let error = dev_properties(&Answers(vec![0; len])).unwrap_err();
            assert_eq!(
                error,
                CommandError::AbiMismatch {
                    opcode: GetDevPropertiesCmd::OPCODE,
                    expected: 84,
                    written: len
                }
            );
        }
    }

    #[test]
    fn a_value_may_be_an_error() {
        let get = |value: u32| {
            svc_get_lpr(&Answers(value.to_ne_bytes().to_vec()), 9).map_err(CommandError::errno)
        };
        assert_eq!(get(0), Ok(0));
        assert_eq!(get(8), Ok(8));
        assert_eq!(get(0xFFFF_F000), Ok(0xFFFF_F000));
        assert_eq!(get(0xFFFF_F001), Err(Errno::from_raw(4095)));
        assert_eq!(get(0xFFFF_FFEA), Err(Errno::EINVAL));
        assert_eq!(get(u32::MAX), Err(Errno::EPERM));
    }
}
