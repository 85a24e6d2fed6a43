//! Code that several types have in common.

/// The methods of an options type that set one field each, which may be optional.
macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $type:ty;)*) => {
        $(
            $(#[$doc])*
            #[must_use = "the options are returned, not changed"]
            pub fn $field(mut self, $field: $type) -> Self {
                self.$field = $field.into();
                self
            }
        )*
    };
}

/// Conversions from and to `String`, by `FromStr` and `Display`, for serde.
macro_rules! as_text {
    ($($type:ty,)*) => {$(
        impl TryFrom<String> for $type {
            type Error = $crate::InvalidValue;

            fn try_from(text: String) -> Result<Self, $crate::InvalidValue> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    )*};
}

as_text! {
    crate::DeviceId,
    crate::Resource,
    crate::TrafficClass,
}

/// `TryFrom` for each kind of integer that a program may have, by one function from the number.
///
/// `i32` is among them as the type of a literal without a suffix: `Vni::try_from(1024)`.
macro_rules! checked_integers {
    ($id:ty, $check:expr) => {
        checked_integers!($id, $check, u16 u32 u64 i32);
    };
    ($id:ty, $check:expr, $($integer:ty)*) => {$(
        impl TryFrom<$integer> for $id {
            type Error = $crate::InvalidValue;

            fn try_from(number: $integer) -> Result<Self, $crate::InvalidValue> {
                let check: fn(i128) -> Result<Self, $crate::InvalidValue> = $check;
                check(number.into())
            }
        }
    )*};
}

/// `Display` as a number, and the conversion to one, by `get`.
macro_rules! plain_number {
    ($id:ty, $number:ty) => {
        impl std::fmt::Display for $id {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.get().fmt(f)
            }
        }

        impl From<$id> for $number {
            fn from(id: $id) -> Self {
                id.get()
            }
        }
    };
}

/// Conversions to an identifier that is any number but 0.
macro_rules! non_zero {
    ($id:ident, $what:ident, $non_zero:ty, $number:ty) => {
        plain_number!($id, $number);

        checked_integers!($id, |number| {
            let valid = <$number>::try_from(number).ok().and_then(<$non_zero>::new);
            valid.map(Self).ok_or(InvalidValue::number(ValueKind::$what, number))
        });

        impl std::str::FromStr for $id {
            type Err = InvalidValue;

            fn from_str(text: &str) -> Result<Self, InvalidValue> {
                text.parse().map(Self).map_err(|_| InvalidValue::text(ValueKind::$what, text))
            }
        }

        impl From<$non_zero> for $id {
            fn from(number: $non_zero) -> Self {
                Self(number)
            }
        }
    };
}

/// Implements a list with a field `slots` of optional entries, those that are set coming first.
macro_rules! slots {
    ($list:ident of $entry:ident, separated by $separator:literal) => {
        impl $list {
            /// Converts the report of a driver, which need not satisfy [`new`](Self::new).
            pub(crate) fn from_kernel(entries: impl IntoIterator<Item = $entry>) -> Self {
                let mut list = Self::default();
                for (slot, entry) in list.slots.iter_mut().zip(entries) {
                    *slot = Some(entry);
                }
                list
            }

            /// Iterates over the entries, in order.
            pub fn iter(&self) -> impl Iterator<Item = $entry> + '_ {
                self.slots.iter().copied().flatten()
            }

            /// Returns the number of entries.
            #[must_use]
            pub fn len(&self) -> usize {
                self.iter().count()
            }

            /// Returns whether there is no entry.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns whether this is one of the entries.
            #[must_use]
            pub fn contains(&self, entry: $entry) -> bool {
                self.iter().any(|other| other == entry)
            }
        }

        impl std::fmt::Display for $list {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let text: Vec<_> = self.iter().map(|entry| entry.to_string()).collect();
                f.pad(&text.join($separator))
            }
        }

        impl TryFrom<Vec<$entry>> for $list {
            type Error = $crate::InvalidValue;

            fn try_from(entries: Vec<$entry>) -> Result<Self, $crate::InvalidValue> {
                Self::new(entries)
            }
        }

        impl From<$list> for Vec<$entry> {
            fn from(list: $list) -> Self {
                list.iter().collect()
            }
        }
    };
}
