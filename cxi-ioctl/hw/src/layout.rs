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

/// Where the fields of a struct are.
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

/// What a field can hold.
pub(crate) trait Value: Copy {
    fn from_bits(bits: u64) -> Self;
    fn to_bits(self) -> u64;
}

impl Value for bool {
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }

    fn to_bits(self) -> u64 {
        self.into()
    }
}

macro_rules! integers {
    ($($int:ty)*) => {$(
        impl Value for $int {
            // The field is no wider than the type.
            #[allow(clippy::cast_possible_truncation)]
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }

            #[allow(clippy::cast_lossless)]
            fn to_bits(self) -> u64 {
                self as u64
            }
        }
    )*};
}

integers!(u8 u16 u32 u64);

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
    for (byte, more) in bytes[start..start + WORD]
        .iter_mut()
        .zip(word.to_le_bytes())
    {
        *byte |= more;
    }
}

/// Structs of fields, `name: type [first bit; bits] "meaning"`. A value that is wider than its
/// field is cut off.
macro_rules! layouts {
    ($(
        $(#[$doc:meta])*
        struct $name:ident: $bytes:literal = $header:literal {
            $($field:ident: $type:ty [$bit:literal; $width:literal] $meaning:literal,)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name {
            $(#[doc = $meaning] pub $field: $type,)*
        }

        const _: () = $name::LAYOUT.check();

        impl $name {
            /// Bytes of the layout.
            pub const BYTES: usize = $bytes;

            /// Where the fields are.
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
                    $($field: $crate::layout::Value::from_bits(
                        $crate::layout::get(bytes, $bit, $width)
                    ),)*
                }
            }

            /// The bytes of the fields.
            #[must_use]
            pub fn encode(&self) -> [u8; $bytes] {
                let mut bytes = [0; $bytes];
                $($crate::layout::set(
                    &mut bytes, $bit, $width, $crate::layout::Value::to_bits(self.$field)
                );)*
                bytes
            }
        }
    )*};
}
pub(crate) use layouts;
