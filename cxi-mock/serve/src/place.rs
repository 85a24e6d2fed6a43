//! Inode numbers: which place of the mock's file system a number stands for.

use fuser::INodeNo;

/// A place in the mock's file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// The directory of the PCI functions.
    Root,
    /// The directory of the character devices; it does not show up in listings.
    Nodes,
    /// The character device of a function. Each lookup finds it under another number, so that each
    /// open file is a separate inode, with its own memory to map.
    Device(u16, u64),
    /// A place in a directory that belongs to no function; not listed either.
    Shared(u32),
    /// A place in the directory of a PCI function.
    Function(u16, u32),
    /// A place in a function's directory of clients.
    Clients(u16, ClientPlace),
}

/// A place below `clients`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClientPlace {
    /// `clients`
    All,
    /// `clients/<client>`
    Client(u32),
    /// `clients/<client>/wait`
    Waits(u32),
    /// `clients/<client>/wait/<wait>`
    Wait(u32, u32),
    /// `clients/<client>/wait/<wait>/intr`
    Interrupt(u32, u32),
}

const TAG_SHIFT: u32 = 60;
const FUNCTION_SHIFT: u32 = 51;
/// More functions than a node has. The four bits above them are the tag.
const FUNCTIONS: u64 = (1 << (TAG_SHIFT - FUNCTION_SHIFT)) - 1;
const LEVEL_SHIFT: u32 = 48;
const CLIENT_SHIFT: u32 = 24;
const LOW: u64 = (1 << CLIENT_SHIFT) - 1;
const LOOKUPS: u64 = (1 << FUNCTION_SHIFT) - 1;

impl Place {
    /// The inode number. Numbers of clients and wait objects keep their lower 24 bits.
    pub(crate) fn inode(self) -> INodeNo {
        let number = |tag: u64, function: u16, rest: u64| {
            tag << TAG_SHIFT | (u64::from(function) & FUNCTIONS) << FUNCTION_SHIFT | rest
        };
        INodeNo(match self {
            Self::Root => 1,
            Self::Nodes => 2,
            Self::Device(function, lookup) => number(1, function, lookup & LOOKUPS),
            Self::Shared(index) => number(2, 0, index.into()),
            Self::Function(function, index) => number(3, function, index.into()),
            Self::Clients(function, place) => {
                let (level, client, wait) = match place {
                    ClientPlace::All => (0, 0, 0),
                    ClientPlace::Client(client) => (1, client, 0),
                    ClientPlace::Waits(client) => (2, client, 0),
                    ClientPlace::Wait(client, wait) => (3, client, wait),
                    ClientPlace::Interrupt(client, wait) => (4, client, wait),
                };
                let (client, wait) = (u64::from(client) & LOW, u64::from(wait) & LOW);
                number(4, function, level << LEVEL_SHIFT | client << CLIENT_SHIFT | wait)
            }
        })
    }

    /// The place whose number `stat(2)` shows. A device has the same one for everyone.
    pub(crate) fn lasting(self) -> Self {
        match self {
            Self::Device(function, _) => Self::Device(function, 0),
            place => place,
        }
    }

    /// The place of an inode number, if it is one that [`Place::inode`] makes.
    pub(crate) fn of(inode: INodeNo) -> Option<Self> {
        let INodeNo(number) = inode;
        let function = u16::try_from(number >> FUNCTION_SHIFT & FUNCTIONS).ok()?;
        let index = u32::try_from(number & u64::from(u32::MAX)).ok()?;
        let client = u32::try_from(number >> CLIENT_SHIFT & LOW).ok()?;
        let wait = u32::try_from(number & LOW).ok()?;
        match number >> TAG_SHIFT {
            0 if number == 1 => Some(Self::Root),
            0 if number == 2 => Some(Self::Nodes),
            1 => Some(Self::Device(function, number & LOOKUPS)),
            2 => Some(Self::Shared(index)),
            3 => Some(Self::Function(function, index)),
            4 => {
                let place = match number >> LEVEL_SHIFT & 7 {
                    0 => ClientPlace::All,
                    1 => ClientPlace::Client(client),
                    2 => ClientPlace::Waits(client),
                    3 => ClientPlace::Wait(client, wait),
                    4 => ClientPlace::Interrupt(client, wait),
                    _ => return None,
                };
                Some(Self::Clients(function, place))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_their_places() {
        for place in [
            Place::Root,
            Place::Nodes,
            Place::Device(0, 0),
            Place::Device(319, 1 << 40),
            Place::Shared(7),
            Place::Function(255, 1200),
            Place::Clients(1, ClientPlace::All),
            Place::Clients(2, ClientPlace::Client(5)),
            Place::Clients(3, ClientPlace::Waits(6)),
            Place::Clients(4, ClientPlace::Wait(7, 8)),
            Place::Clients(5, ClientPlace::Interrupt(0xff_ffff, 0xff_ffff)),
        ] {
            assert_eq!(Place::of(place.inode()), Some(place));
        }
        assert_eq!(Place::of(INodeNo(0)), None);
        assert_eq!(Place::of(INodeNo(u64::MAX)), None);
    }
}
