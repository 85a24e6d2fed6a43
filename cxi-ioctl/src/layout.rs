//! The layout of a struct of the kernel interface, and the macros that define one.

use crate::{DriverRelease, Opcode, Pointers};

/// One field of a [`StructLayout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldLayout {
    /// The field's name here; names that start with `_` are padding.
    pub name: &'static str,
    /// Bytes from the start of the struct.
    pub offset: usize,
    /// Length in bytes.
    pub size: usize,
    /// The field's type here: an integer, a struct of this crate, or an array of either.
    pub type_name: &'static str,
}

/// The layout of a struct as this crate defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StructLayout {
    /// The struct's name here.
    pub name: &'static str,
    /// The struct's name in the kernel's header.
    pub c_name: &'static str,
    /// Length in bytes.
    pub size: usize,
    /// The first release with this layout, if an older one has another.
    pub since: Option<DriverRelease>,
    /// The last release with this layout, if a newer one has another.
    pub until: Option<DriverRelease>,
    /// All fields including padding, without gaps.
    pub fields: &'static [FieldLayout],
}

impl StructLayout {
    /// Returns whether a release has this layout.
    #[must_use]
    pub fn applies_to(&self, release: DriverRelease) -> bool {
        self.since.is_none_or(|since| since <= release)
            && self.until.is_none_or(|until| release <= until)
    }
}

/// A constant of the kernel interface as this crate defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Constant {
    /// The constant's name here.
    pub name: &'static str,
    /// The constant's name in the kernel's header.
    pub c_name: &'static str,
    /// The value.
    pub value: i64,
    /// The first release that has it, if the oldest does not.
    pub since: Option<DriverRelease>,
}

/// A command as this crate defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandLayout {
    /// The opcode.
    pub opcode: Opcode,
    /// The name of the request struct here; its layout says for which releases it is right.
    pub request: &'static str,
    /// Positions of the buffers' addresses.
    pub pointers: Pointers,
    /// Length of the response in bytes.
    pub response_len: usize,
}

/// Defines constants of the kernel interface, and a list of them.
macro_rules! constants {
    ($( $(#[$doc:meta])* $name:ident: $type:ty = $value:literal, $c_name:literal $(, since $since:ident)?; )*) => {
        $( $(#[$doc])* pub const $name: $type = $value; )*

        pub(crate) const CONSTANTS: &[$crate::layout::Constant] = &[ $(
            $crate::layout::Constant {
                name: stringify!($name),
                c_name: $c_name,
                value: $value,
                since: $crate::layout::abi!(@release $($since)?),
            },
        )* ];
    };
}

/// Defines structs of the kernel interface with asserted offsets, and a list of their layouts.
///
/// A field is `name: type = offset`, with ` + bytes` if padding follows, which becomes a field too.
/// `@command` starts with the opcode, `@answered` with the opcode and the address of the response.
macro_rules! abi {
    ($(
        $(#[$doc:meta])*
        $(@$head:ident)? struct $name:ident = $c_name:literal, $size:literal
            $(, since $since:ident)? $(, until $until:ident)? { $($fields:tt)* }
    )*) => {
        $( $crate::layout::abi! { @fields
            { $(#[$doc])* $name, $c_name, $size, [$($since)?], [$($until)?] }
            [] [_pad0 _pad1 _pad2 _pad3 _pad4 _pad5] $(@$head)? $($fields)*
        } )*

        pub(crate) const LAYOUTS: &[$crate::layout::StructLayout] = &[ $( $name::LAYOUT, )* ];
    };
    (@fields $struct:tt [] $pads:tt @command $($rest:tt)*) => {
        $crate::layout::abi! { @fields $struct [] $pads
            /// Opcode; `new()` fills it in.
            op: u32 = 0,
            $($rest)*
        }
    };
    (@fields $struct:tt [] $pads:tt @answered $($rest:tt)*) => {
        $crate::layout::abi! { @fields $struct [] $pads
            /// Opcode; `new()` fills it in.
            op: u32 = 0 + 4,
            /// Address of the response buffer; the transport fills it in.
            resp: u64 = 8,
            $($rest)*
        }
    };
    (@fields $struct:tt [$($done:tt)*] [$pad:ident $($pads:ident)*]
        $(#[$doc:meta])* $field:ident: $type:ty = $offset:literal + $len:literal, $($rest:tt)*
    ) => {
        $crate::layout::abi! { @fields $struct
            [ $($done)*
                { $(#[$doc])* $field: $type = $offset }
                { #[doc(hidden)] $pad: [u8; $len] = $offset + size_of::<$type>() } ]
            [$($pads)*] $($rest)*
        }
    };
    (@fields $struct:tt [$($done:tt)*] $pads:tt
        $(#[$doc:meta])* $field:ident: $type:ty = $offset:literal, $($rest:tt)*
    ) => {
        $crate::layout::abi! { @fields $struct
            [ $($done)* { $(#[$doc])* $field: $type = $offset } ] $pads $($rest)*
        }
    };
    (@fields
        { $(#[$doc:meta])* $name:ident, $c_name:literal, $size:literal, [$($since:ident)?], [$($until:ident)?] }
        [ $( { $(#[$field_doc:meta])* $field:ident: $type:ty = $offset:expr } )* ] $pads:tt
    ) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable,
        )]
        #[repr(C)]
        pub struct $name {
            $( $(#[$field_doc])* pub $field: $type, )*
        }

        const _: () = {
            assert!(size_of::<$name>() == $size);
            $( assert!(core::mem::offset_of!($name, $field) == $offset); )*
        };

        impl $name {
            const LAYOUT: $crate::layout::StructLayout = $crate::layout::StructLayout {
                name: stringify!($name),
                c_name: $c_name,
                size: $size,
                since: $crate::layout::abi!(@release $($since)?),
                until: $crate::layout::abi!(@release $($until)?),
                fields: &[ $(
                    $crate::layout::FieldLayout {
                        name: stringify!($field),
                        offset: $offset,
                        size: size_of::<$type>(),
                        type_name: stringify!($type),
                    },
                )* ],
            };
        }
    };
    (@release) => { None };
    (@release $release:ident) => { Some($crate::DriverRelease::$release) };
}

/// An operation on a command of each type, such as a check.
pub trait CommandVisitor {
    /// Visits a command of which only the opcode is filled in; `name` is its struct's.
    fn visit<C: crate::Command>(&mut self, name: &'static str, command: &C);
}

/// Makes request structs into commands: opcode, response, and where the buffers' addresses go.
///
/// `of` names the fields that a caller fills in, where they are few. `#[unchecked]` marks those that
/// contain an address of the caller's, or open a way to one.
macro_rules! commands {
    ($(
        $(#[$unchecked:ident])?
        $name:ident: $opcode:ident -> $response:ty
            $(, of ($($field:ident: $type:ty),+))?
            $(, response at $response_at:literal)?
            $(, list at $list_at:literal)?
            $(, list in response at $list_in_response_at:literal)?;
    )*) => {
        $(
        impl $name {
            /// A request with its opcode filled in and everything else zero.
            #[must_use]
            pub fn new() -> Self {
                let mut command: Self = zerocopy::FromZeros::new_zeroed();
                command.op = $crate::Opcode::$opcode.number();
                command
            }

            $(
                /// The command with these fields. The transport fills in addresses; the rest is 0.
                #[must_use]
                pub fn of($($field: $type),+) -> Self {
                    Self {
                        $($field,)+
                        ..Self::new()
                    }
                }
            )?
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        impl $crate::Command for $name {
            const OPCODE: $crate::Opcode = $crate::Opcode::$opcode;
            const POINTERS: $crate::Pointers = $crate::Pointers {
                response: $crate::layout::commands!(@offset $($response_at)?),
                list: $crate::layout::commands!(@offset $($list_at)?),
                list_in_response: $crate::layout::commands!(@offset $($list_in_response_at)?),
            };
            type Response = $response;
        }

        $crate::layout::commands!(@safe $name $($unchecked)?);
    )*
        pub(crate) const COMMANDS: &[$crate::layout::CommandLayout] = &[ $(
            $crate::layout::CommandLayout {
                opcode: <$name as $crate::Command>::OPCODE,
                request: stringify!($name),
                pointers: <$name as $crate::Command>::POINTERS,
                response_len: size_of::<$response>(),
            },
        )* ];

        pub(crate) fn visit(visitor: &mut impl $crate::layout::CommandVisitor) {
            $( visitor.visit(stringify!($name), &$name::new()); )*
        }
    };
    (@safe $name:ident) => {
        #[allow(unsafe_code, reason = "a promise about the interface")]
        // SAFETY: the driver takes no address from the struct except those of the buffers, and
        // opens no window through which the NIC could be given another one. Its response has the
        // length that the layout tests compare with the recorded interfaces.
        unsafe impl $crate::SafeCommand for $name {}
    };
    (@safe $name:ident unchecked) => {};
    (@offset) => { None };
    (@offset $offset:literal) => { Some($offset) };
}

pub(crate) use {abi, commands, constants};
