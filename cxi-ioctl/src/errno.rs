//! Error numbers as plain numbers, so that unknown ones survive.

use std::{fmt, io};

/// More than any number that has a name.
const MAX_ERRNO: i32 = 4096;

/// A Linux error number.
///
/// Values without a name are preserved.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Errno(i32);

impl Errno {
    /// The error with this number.
    #[must_use]
    pub const fn from_raw(number: i32) -> Self {
        Self(number)
    }

    /// The number, as in `errno.h`.
    #[must_use]
    pub const fn raw(self) -> i32 {
        self.0
    }

    /// The name in `errno.h`, if it has one.
    #[must_use]
    pub fn name(self) -> Option<String> {
        match nix::errno::Errno::from_raw(self.0) {
            nix::errno::Errno::UnknownErrno => None,
            // Linux has one number for two names, and the other one is for file systems.
            nix::errno::Errno::ENOTSUP => Some("EOPNOTSUPP".to_owned()),
            known => Some(format!("{known:?}")),
        }
    }

    /// The error of an [`io::Error`]; EIO if it does not come from the operating system.
    #[must_use]
    pub fn from_io(error: &io::Error) -> Self {
        error.raw_os_error().map_or(Self::EIO, Self)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(&name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({self})")
    }
}

impl std::error::Error for Errno {}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}

impl From<nix::errno::Errno> for Errno {
    fn from(errno: nix::errno::Errno) -> Self {
        Self(errno as i32)
    }
}

/// A name that is not an errno of this platform.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown errno name '{0}': expected a name such as EINVAL")]
pub struct UnknownErrno(String);

impl std::str::FromStr for Errno {
    type Err = UnknownErrno;

    fn from_str(name: &str) -> Result<Self, UnknownErrno> {
        (1..MAX_ERRNO)
            .map(Self)
            .find(|errno| errno.name().as_deref() == Some(name))
            .ok_or_else(|| UnknownErrno(name.to_owned()))
    }
}

macro_rules! errnos {
    ($($name:ident)*) => {
        /// The errnos of this project. [`Errno::from_raw`] makes any other, and the
        /// [names](Errno::name) of all of them are known.
        #[allow(missing_docs, reason = "the names are those of errno.h")]
        impl Errno {
            $( pub const $name: Self = Self(nix::libc::$name); )*
        }
    };
}

errnos! {
    E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EAGAIN EALREADY EBADF EBADR EBUSY ECANCELED ECHILD
    ECONNABORTED ECONNREFUSED EEXIST EFAULT EHOSTUNREACH EINPROGRESS EINTR EINVAL EIO EKEYREJECTED
    EKEYREVOKED EMFILE EMSGSIZE ENODATA ENODEV ENOENT ENOMEM ENOMSG ENOPROTOOPT ENOSPC ENOSYS
    ENOTCONN ENOTDIR ENOTTY ENXIO EOPNOTSUPP EOVERFLOW EPERM EPIPE EPROTO EPROTONOSUPPORT ERANGE
    ETIMEDOUT
}
