//! Behavior that all handles of an open file have in common.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use cxi_ioctl::abi::memory::Mminfo;
use cxi_ioctl::{DeviceMemory, Effect, Errno, Mapping, Opcode, SafeCommand};

use crate::Device;
use crate::error::{Error, ErrorKind, Result};

/// An object that the driver allocated for this open file, and the command that frees it.
///
/// Freed once: by [`Object::free`], or when dropped, ignoring errors.
#[derive(Debug)]
pub(crate) struct Object<C: SafeCommand<Response = ()> + fmt::Debug> {
    device: Device,
    free: C,
    freed: AtomicBool,
}

impl<C: SafeCommand<Response = ()> + fmt::Debug> Object<C> {
    pub(crate) fn new(device: &Device, free: C) -> Self {
        Self { device: device.clone(), free, freed: AtomicBool::new(false) }
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The command that frees it; it holds the driver's handle.
    pub(crate) fn command(&self) -> &C {
        &self.free
    }

    /// Frees the object, unless that has already happened.
    pub(crate) fn free(&self) -> Result<()> {
        if self.freed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.device.call(&self.free, |errno| {
            (errno == Errno::EBUSY)
                .then(|| ErrorKind::Busy { what: freed_by(C::OPCODE), waited: None })
        })?;
        self.freed.store(true, Ordering::Release);
        Ok(())
    }
}

impl<C: SafeCommand<Response = ()> + fmt::Debug> Drop for Object<C> {
    fn drop(&mut self) {
        // A failure cannot be reported from here; closing the device frees what remains.
        let _ = self.free();
    }
}

/// The kind of object that a command frees.
fn freed_by(opcode: Opcode) -> Cow<'static, str> {
    match opcode.effect() {
        Some(Effect::Frees(object)) => format!("the {object}").into(),
        _ => "the object".into(),
    }
}

/// A window of device memory that belongs to an object, mapped at first use.
#[derive(Debug)]
pub(crate) struct Window {
    place: Mminfo,
    mapping: OnceLock<Mapping>,
}

impl Window {
    pub(crate) fn new(place: Mminfo) -> Self {
        Self { place, mapping: OnceLock::new() }
    }

    pub(crate) fn get(&self, device: &Device, what: &'static str) -> Result<&Mapping> {
        if let Some(mapping) = self.mapping.get() {
            return Ok(mapping);
        }
        let len = usize::try_from(self.place.size)
            .map_err(|_| not_mapped(device, what, Errno::EOVERFLOW))?;
        let mapping = device
            .transport()
            .map(self.place.offset, len)
            .map_err(|errno| not_mapped(device, what, errno))?;
        Ok(self.mapping.get_or_init(|| mapping))
    }
}

/// Memory for the device to write to.
pub(crate) fn device_memory(device: &Device, len: usize) -> Result<DeviceMemory> {
    DeviceMemory::new(len)
        .map_err(|errno| Error::new(ErrorKind::NoMemory { len, errno }, errno).on(device.id()))
}

fn not_mapped(device: &Device, what: &str, errno: Errno) -> Error {
    let kind = if errno == Errno::EIO {
        ErrorKind::Removed
    } else {
        ErrorKind::NotMapped { window: what.to_owned(), errno }
    };
    Error::new(kind, errno).on(device.id())
}

/// Compiles only for a type that any thread may use.
pub(super) const fn any_thread_may_use<T: Send + Sync + 'static>() {}

/// Adds `close` to a handle, which any thread may use: the path to its [`Object`], the command, the
/// function of libcxi.
macro_rules! closable {
    ($(#[$errors:meta])* $handle:ident.$($object:ident).+ by $opcode:ident ($alias:literal)) => {
        impl $handle {
            #[doc = concat!("Frees it in the driver (", stringify!($opcode), ") and reports errors.")]
            ///
            /// Dropping the handle does the same and ignores errors.
            ///
            /// # Errors
            ///
            $(#[$errors])*
            /// EIO when the device is gone. The error contains the handle.
            #[doc(alias = $alias)]
            pub fn close(self) -> Result<(), $crate::error::NotClosed<Self>> {
                self.$($object).+.free().map_err(|error| $crate::error::NotClosed {
                    handle: self,
                    error,
                })
            }
        }

        const _: () = $crate::lni::object::any_thread_may_use::<$handle>();
    };
}

pub(crate) use closable;
