//! Layouts: structs whose fields are runs of bits.

/// A field of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: &'static str,
    /// First bit, counted from the lowest bit of the first byte.
    pub bit: usize,
    /// Bits.
    pub width: usize,
}

/// Positions of a struct's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Name in the header of the hardware.
    pub name: &'static str,
    /// Bytes.
    pub bytes: usize,
    /// Fields; bits that are in none are zero.
    pub fields: &'static [Field],
}

impl Layout {
    /// Stops the build at a field that is not within a word of eight bytes.
    pub(crate) const fn check(&self) {
        let mut at = 0;
        while at < self.fields.len() {
            let Field { bit, width, .. } = self.fields[at];
            assert!(bit % 64 + width <= 64 && bit + width <= self.bytes * 8);
            at += 1;
        }
    }
}

const WORD: usize = 8;

const fn mask(width: usize) -> u64 {
    u64::MAX >> (64 - width)
}

/// The bits of a field that lies within a word of eight bytes.
pub(crate) fn get<const N: usize>(bytes: &[u8; N], bit: usize, width: usize) -> u64 {
    let start = bit / 64 * WORD;
    let mut word = [0; WORD];
    word.copy_from_slice(&bytes[start..start + WORD]);
    (u64::from_le_bytes(word) >> (bit % 64)) & mask(width)
}

/// Sets the bits of a field that lies within a word of eight bytes and was zero.
pub(crate) fn set<const N: usize>(bytes: &mut [u8; N], bit: usize, width: usize, value: u64) {
    let start = bit / 64 * WORD;
    let word = (value & mask(width)) << (bit % 64);
    for (byte, more) in bytes[start..start + WORD].iter_mut().zip(word.to_le_bytes()) {
        *byte |= more;
    }
}

/// Structs of fields, `name: type [first bit; bits] "meaning"`, after those of a group of [`fields`].
/// A value that is wider than its field is cut off.
macro_rules! layouts {
    ($(
        $(#[$doc:meta])*
        struct $name:ident: $bytes:literal = $header:literal $(, $group:ident)? { $($field:tt)* }
    )*) => {$(
        $crate::layout::fields! {
            [$($group)?] { $($field)* } $(#[$doc])* struct $name: $bytes = $header
        }
    )*};
}
pub(crate) use layouts;

/// Adds the fields that the structs of a group have in common.
macro_rules! fields {
    ([idc] { $($field:tt)* } $($head:tt)*) => {
        $crate::layout::layout! { $($head)* {
            command: $crate::CommandByte [0; 8] "class, size class and operation",
            length: u8 [8; 8] "bytes of the command that count",
            dfa: $crate::FabricAddress [32; 32] "destination",
            $($field)*
        } }
    };
    ([dma] { $($field:tt)* } $($head:tt)*) => {
        $crate::layout::layout! { $($head)* {
            command: $crate::CommandByte [0; 8] "class, size class and operation",
            index_ext: u8 [8; 5] "low five bits of the portal index",
            lac: u8 [16; 3] "address context of the local buffer",
            flags: $crate::DmaFlags [19; 11] "events, counting and kind of packet",
            dfa: $crate::FabricAddress [32; 32] "destination",
            remote_offset: u64 [64; 56] "offset at the target",
            request_len: u32 [192; 32] "bytes asked for",
            ct: u16 [224; 11] "counter, 0 for none",
            eq: u16 [240; 11] "event queue, 0 for none",
            $($field)*
        } }
    };
    ([matching_dma] { $($field:tt)* } $($head:tt)*) => {
        $crate::layout::fields! { [dma] {
            initiator: $crate::MatchId [288; 32] "match ID of the initiator",
            match_bits: u64 [320; 64] "match bits",
            header_data: u64 [384; 64] "passed on to the target",
            user_ptr: u64 [448; 64] "given back in the events of the initiator",
            $($field)*
        } $($head)* }
    };
    ([initiator_event] { $($field:tt)* } $($head:tt)*) => {
        $crate::layout::fields! { [event] {
            user_ptr: u64 [0; 64] "given back in the events of the initiator",
            mlength: u32 [64; 32] "bytes moved",
            ptl_list: $crate::List [96; 2] "list",
            rendezvous: bool [100; 1] "of a rendezvous",
            retry: bool [101; 1] "the operation was retried",
            tgt_error: bool [102; 1] "the target found the error",
            $($field)*
        } $($head)* }
    };
    ([trigger_event] { $($field:tt)* } $($head:tt)*) => {
        $crate::layout::fields! { [event] {
            threshold: u64 [0; 48] "successes and failures that fire the command",
            ct_handle: u16 [64; 11] "counter that fired",
            $($field)*
        } $($head)* }
    };
    ([target_event] { $($field:tt)* } $($head:tt)*) => {
        $crate::layout::fields! { [event] {
            header_data: u64 [0; 64] "passed on to the target",
            initiator: $crate::MatchId [64; 32]
                "match ID of the initiator; a FabricAddress in RENDEZVOUS, a StateChange in STATE_CHANGE",
            ptlte_index: u16 [96; 11] "PtlTE",
            ptl_list: $crate::List [120; 2] "list",
            auto_unlinked: bool [124; 1] "the entry was unlinked by this operation",
            match_bits: u64 [128; 64] "match bits",
            buffer_id: u16 [192; 16] "handle in events",
            vni: u16 [208; 16] "VNI",
            $($field)*
        } $($head)* }
    };
    // The result is in the last byte, which the NIC writes last.
    ([event] { $($field:tt)* }
        $(#[$doc:meta])* struct $name:ident: $bytes:literal = $header:literal) => {
        $crate::layout::layout! { $(#[$doc])* struct $name: $bytes = $header {
            event_size: $crate::EventSize [112; 2] "size of the event",
            event_type: $crate::EventType [114; 5] "type of the event",
            return_code: $crate::ReturnCode [$bytes * 8 - 8; 6] "result; never 0",
            $($field)*
        } }
    };
    ([] { $($field:tt)* } $($head:tt)*) => {
        $crate::layout::layout! { $($head)* { $($field)* } }
    };
}
pub(crate) use fields;

macro_rules! layout {
    (
        $(#[$doc:meta])*
        struct $name:ident: $bytes:literal = $header:literal {
            $($field:ident: $type:ty [$bit:expr; $width:literal] $meaning:literal,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name {
            $(#[doc = $meaning] pub $field: $type,)*
        }

        const _: () = $name::LAYOUT.check();

        impl $name {
            /// Bytes of the layout.
            pub const BYTES: usize = $bytes;

            /// Positions of the fields.
            pub const LAYOUT: $crate::Layout = $crate::Layout {
                name: $header,
                bytes: $bytes,
                fields: &[$($crate::Field {
                    name: stringify!($field),
                    bit: $bit,
                    width: $width,
                }),*],
            };

            /// The fields in those bytes.
            #[must_use]
            pub fn decode(bytes: &[u8; $bytes]) -> Self {
                Self {
                    $($field: $crate::value::Value::from_bits(
                        $crate::layout::get(bytes, $bit, $width)
                    ),)*
                }
            }

            /// The bytes of the fields.
            #[must_use]
            pub fn encode(&self) -> [u8; $bytes] {
                let mut bytes = [0; $bytes];
                $($crate::layout::set(
                    &mut bytes, $bit, $width, $crate::value::Value::to_bits(self.$field)
                );)*
                bytes
            }
        }
    };
}
pub(crate) use layout;
