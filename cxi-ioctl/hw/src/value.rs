//! Type of a value that a field can hold.

/// A value of a field.
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

/// Types that hold an integer.
macro_rules! newtypes {
    ($($name:ident)*) => {$(
        impl $crate::value::Value for $name {
            fn from_bits(bits: u64) -> Self {
                Self($crate::value::Value::from_bits(bits))
            }

            fn to_bits(self) -> u64 {
                self.0.into()
            }
        }
    )*};
}
pub(crate) use newtypes;
