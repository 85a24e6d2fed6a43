//! Handles: blocks allocated with malloc, with a part that C reads and writes.
//!
//! C owns the public part and may change it at any time, so it is never behind a reference: a
//! [`Shared`] is read and written through its address. The private part belongs to this library.
//! A live block has the tag of its kind. The tag is cleared before the block is freed, so that most
//! uses of a destroyed handle, or of a handle of the wrong kind, are refused with EINVAL. A use of
//! memory that the allocator has already reused cannot be detected.

#![allow(unsafe_code, reason = "memory that is shared with C")]

use std::cell::{Cell, UnsafeCell};
use std::ptr::NonNull;

use crate::failure::{Failure, Result};
use crate::ffi::{Fresh, Out};

/// The part that C reads and writes.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Shared<T>(UnsafeCell<T>);

impl<T: Copy> Shared<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    pub(crate) fn get(&self) -> T {
        // SAFETY: the place is alive as long as `self`, and no reference to it is ever made. That
        // no other thread changes it at the same time is the contract of the C API for one handle.
        unsafe { self.0.get().read_volatile() }
    }

    pub(crate) fn set(&self, value: T) {
        // SAFETY: as in `get`.
        unsafe { self.0.get().write_volatile(value) };
    }
}

/// Marks a block as alive, with its kind.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Tag(Cell<u32>);

impl Tag {
    pub(crate) const fn of<T: Block>() -> Self {
        Self(Cell::new(T::KIND))
    }

    /// Ends the handle: pointers to this block are no longer valid handles.
    pub(crate) fn clear(&self) {
        // SAFETY: a pointer to a live cell. Volatile, because to the compiler the write is dead
        // when the block is freed next.
        unsafe { self.0.as_ptr().write_volatile(0) };
    }
}

/// A kind of block.
///
/// # Safety
///
/// The type is `repr(C)`, has a `Shared<Self::Public>` `PUBLIC` bytes from its start and a
/// [`Tag`] `TAG` bytes from its start.
pub(crate) unsafe trait Block: Sized {
    type Public;
    const PUBLIC: usize;
    const TAG: usize;
    /// A number for each type, which memory is unlikely to contain by chance.
    const KIND: u32;
}

/// Declares types as a [`Block`] each: the kind, and which field is the public part.
macro_rules! blocks {
    ($(
        $(#[$doc:meta])*
        struct $name:ident = $kind:literal, $public:ident: $type:ty {
            $($(#[$about:meta])* $vis:vis $field:ident: $of:ty,)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        #[repr(C)]
        pub(crate) struct $name {
            $($(#[$about])* $vis $field: $of,)*
        }

        // SAFETY: the type is `repr(C)`; the offsets are the compiler's, and the function below
        // compiles only if both fields have their types.
        #[allow(unsafe_code, reason = "offsets that the compiler has checked")]
        unsafe impl $crate::handle::Block for $name {
            type Public = $type;
            const PUBLIC: usize = std::mem::offset_of!($name, $public);
            const TAG: usize = std::mem::offset_of!($name, tag);
            const KIND: u32 = u32::from_ne_bytes(*$kind);
        }

        const _: fn(&$name) -> (&$crate::handle::Shared<$type>, &$crate::handle::Tag) =
            |block| (&block.$public, &block.tag);
    )*};
}
pub(crate) use blocks;

/// A handle as C passes it: NULL, or the address of the public part of a block.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Handle<T: Block>(*mut T::Public);

impl<T: Block> Handle<T> {
    /// The block; EINVAL for NULL and for what is not, or no longer, a handle of this kind.
    #[inline]
    pub(crate) fn get(&self) -> Result<&T> {
        // SAFETY: `find` gives the address of a live block, which is freed by `free` only, and
        // that takes the handle. What C changes in it is behind cells.
        self.find().map(|block| unsafe { block.as_ref() })
    }

    /// The block, unless the handle is NULL.
    pub(crate) fn optional(&self) -> Result<Option<&T>> {
        if self.0.is_null() {
            return Ok(None);
        }
        self.get().map(Some)
    }

    /// Ends the handle and frees its memory if `release` frees the object in the driver. Otherwise the
    /// handle stays valid.
    #[inline]
    pub(crate) fn end(self, release: impl FnOnce(&T) -> Result<()>) -> Result<()> {
        let block = self.find()?;
        // SAFETY: as in `get`.
        release(unsafe { block.as_ref() })?;
        free(block);
        Ok(())
    }

    #[inline]
    #[allow(
        clippy::cast_ptr_alignment,
        reason = "nothing is assumed about alignment until the tag is seen"
    )]
    pub(crate) fn find(&self) -> Result<NonNull<T>> {
        let public = NonNull::new(self.0).ok_or_else(Failure::argument)?;
        let block = public.as_ptr().cast::<u8>().wrapping_sub(T::PUBLIC);
        let tag = block.wrapping_add(T::TAG).cast::<u32>();
        // SAFETY: C passes nothing but handles that it was given, so this is inside a block. If the
        // block has ended, or the handle is of another kind and with that its tag elsewhere, the
        // caller has broken the contract, and this read is the best that can be done about it.
        if unsafe { tag.read_unaligned() } != T::KIND {
            return Err(Failure::argument());
        }
        NonNull::new(block.cast()).ok_or_else(Failure::argument)
    }
}

/// Frees a block whose handle C has returned.
#[inline]
pub(crate) fn free<T: Block>(block: NonNull<T>) {
    let tag = block.as_ptr().cast::<u8>().wrapping_add(T::TAG).cast();
    // SAFETY: the block is alive, so `tag` points to its tag; see `Block`.
    let tag: &Tag = unsafe { &*tag };
    tag.clear();
    // SAFETY: the block was written whole by `Room::fill` and is not used again.
    unsafe { block.drop_in_place() };
    // SAFETY: it came from calloc.
    unsafe { libc::free(block.as_ptr().cast()) };
}

/// Memory for a block, and the place for its handle. Both are checked and allocated before a command
/// is sent to the NIC, so that nothing must be undone if the NIC refuses the command.
#[derive(Debug)]
pub(crate) struct Room<T: Block> {
    memory: Fresh,
    handle: Out<*mut T::Public>,
}

impl<T: Block> Room<T> {
    /// EINVAL if there is no place for the handle.
    #[inline]
    pub(crate) fn new(handle: Out<*mut T::Public>) -> Result<Self> {
        // malloc's blocks are aligned for everything up to this.
        const { assert!(align_of::<T>() <= 16) };
        Ok(Self { handle: handle.required()?, memory: Fresh::zeroed(size_of::<T>())? })
    }

    /// Makes the block and gives C its handle.
    #[inline]
    pub(crate) fn fill(self, value: T) {
        let block = self.memory.into_raw::<T>();
        // SAFETY: the block is as large as a `T`, aligned, and not shared with C yet.
        unsafe { block.write(value) };
        let public = block.cast::<u8>().wrapping_add(T::PUBLIC);
        self.handle.set(public.cast());
    }
}
