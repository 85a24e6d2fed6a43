//! Identifiers from integers.

/// `TryFrom` for each kind of integer that a program may have, by one function from the number.
///
/// `i32` is among them as the type of a literal without a suffix: `Vni::try_from(1024)`.
macro_rules! checked_integers {
    ($id:ty, $error:ty, $check:expr) => {
        checked_integers!($id, $error, $check, u16 u32 u64 i32);
    };
    ($id:ty, $error:ty, $check:expr, $($integer:ty)*) => {$(
        impl TryFrom<$integer> for $id {
            type Error = $error;

            fn try_from(number: $integer) -> Result<Self, $error> {
                let check: fn(i128) -> Result<Self, $error> = $check;
                check(number.into())
            }
        }
    )*};
}
