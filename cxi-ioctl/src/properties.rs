//! GET_DEV_PROPERTIES, whose response has two lengths.

use zerocopy::FromBytes;

use crate::abi::device::{GetDevPropertiesCmd, PropertiesInfo, PropertiesInfoV1};
use crate::abi::service::RsrcLimits;
use crate::command::submit_measured;
use crate::{Command, CommandError, Transport};

/// The answer to GET_DEV_PROPERTIES, whatever the driver's generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DevProperties {
    /// NIC address on the fabric.
    pub nid: u32,
    /// Whether the NIC address has been set; `None` up to SHS 13.0, which does not report it.
    pub nid_configured: Option<bool>,
    /// Width of a PID in bits.
    pub pid_bits: u32,
    /// Number of PIDs.
    pub pid_count: u32,
    /// PtlTE offsets per PID.
    pub pid_granule: u32,
    /// Shift of the least free space of a matching list entry.
    pub min_free_shift: u32,
    /// PtlTE offset to which rendezvous gets go.
    pub rdzv_get_idx: u32,
    /// Totals of the device (`max`) for each resource type, in the order of `RSRC_*`.
    pub rsrcs: RsrcLimits,
    /// ASIC revision.
    pub device_rev: u32,
    /// ASIC protocol revision.
    pub device_proto: u32,
    /// Platform, see [`PLATFORM_ASIC`](crate::abi::device::PLATFORM_ASIC).
    pub device_platform: u32,
    /// ASIC version, see [`CASSINI_1`](crate::abi::device::CASSINI_1).
    pub cassini_version: u32,
    /// Whether rendezvous gets are enabled.
    pub rdzv_get_en: bool,
    /// Atomic operation that becomes a PCIe fetching add, -1 for none.
    pub amo_remap_to_pcie_fadd: i32,
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

    let (result, room, written) = submit_measured(transport, &GetDevPropertiesCmd::new());
    result.map_err(|errno| CommandError::Refused { opcode, errno })?;
    // The last bytes of a response may happen to look untouched.
    let properties = match written {
        AFTER_OLD..=NEW => PropertiesInfo::read_from_prefix(&room)
            .ok()
            .map(|(info, _)| info.into()),
        FROM_OLD..=OLD => PropertiesInfoV1::read_from_prefix(&room)
            .ok()
            .map(|(info, _)| info.into()),
        _ => None,
    };
    properties.ok_or(CommandError::AbiMismatch {
        opcode,
        expected: NEW,
        written,
    })
}

macro_rules! from_infos {
    ($($Info:ty: |$info:ident| $nid_configured:expr;)*) => {$(
        impl From<$Info> for DevProperties {
            fn from($info: $Info) -> Self {
                Self {
                    nid: $info.nid,
                    nid_configured: $nid_configured,
                    pid_bits: $info.pid_bits,
                    pid_count: $info.pid_count,
                    pid_granule: $info.pid_granule,
                    min_free_shift: $info.min_free_shift,
                    rdzv_get_idx: $info.rdzv_get_idx,
                    rsrcs: $info.rsrcs,
                    device_rev: $info.device_rev,
                    device_proto: $info.device_proto,
                    device_platform: $info.device_platform,
                    cassini_version: $info.cassini_version,
                    rdzv_get_en: $info.rdzv_get_en != 0,
                    amo_remap_to_pcie_fadd: $info.amo_remap_to_pcie_fadd,
                }
            }
        }
    )*};
}

from_infos! {
    PropertiesInfo: |info| Some(info.nid_configured != 0);
    PropertiesInfoV1: |info| None;
}

#[cfg(test)]
mod tests {
    use zerocopy::{FromZeros, IntoBytes};

    use super::*;
    use crate::{Errno, Mapping, Request};

    #[derive(Debug)]
    struct Answers(Vec<u8>);

    impl Transport for Answers {
        fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
            request.response()[..self.0.len()].copy_from_slice(&self.0);
            Ok(())
        }

        fn map(&self, _offset: u64, _len: usize) -> Result<Mapping, Errno> {
            Err(Errno::ENODEV)
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
        assert_eq!(from_new.rsrcs.types[7].max, 1022);
        assert_eq!(from_new.amo_remap_to_pcie_fadd, -1);
        let same = DevProperties {
            nid_configured: None,
            ..from_new
        };
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
}
