//! Error codes as programs print them.

use std::borrow::Cow;
use std::fmt;

use cxi_hw::ReturnCode;
use cxi_ioctl::Errno;

use super::texts::{ERRNOS, LIBFABRIC, OF_PROVIDER};

/// Code that a program reports: an errno, an error of libfabric's own, or the result of an
/// operation by the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Code {
    /// An errno of the system, which libfabric uses too (`FI_ENOSPC`).
    Errno(Errno),
    /// One of libfabric's own numbers, from 256 on.
    Libfabric(u16),
    /// A return code of the NIC.
    Nic(ReturnCode),
}

impl Code {
    /// The code with this number, of either sign; `None` for a number that has no name.
    #[must_use]
    pub fn from_number(number: i64) -> Option<Self> {
        let number = i32::try_from(number.unsigned_abs()).ok()?;
        let own = LIBFABRIC.iter().any(|(known, ..)| *known == number && number < OF_PROVIDER);
        match u16::try_from(number) {
            _ if number == ENOTSUPP => Some(Self::Errno(Errno::EOPNOTSUPP)),
            Ok(own_number) if own => Some(Self::Libfabric(own_number)),
            _ => {
                let known = ERRNOS.iter().any(|(known, ..)| *known == number);
                known.then_some(Self::Errno(Errno::from_raw(number)))
            }
        }
    }

    /// The code that libfabric's provider for the NIC gives beside its own error, as `prov_errno`.
    pub(super) fn from_provider(number: u16) -> Option<Self> {
        if i32::from(number) >= OF_PROVIDER {
            return own(number).map(|_| Self::Libfabric(number));
        }
        let known = ReturnCode::NAMES.iter().find(|(_, code)| u16::from(*code) == number)?;
        (number != 0).then_some(Self::Nic(ReturnCode(known.1)))
    }

    /// The code with this name: `ENOSPC`, `FI_ENOSPC`, `FI_ETRUNC`, `C_RC_NO_SPACE`,
    /// `VNI_NOT_FOUND`, or what Mercury and DAOS call an errno, `NA_HOSTUNREACH`. The names of
    /// errnos may be in lower case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let upper = name.to_ascii_uppercase();
        let bare = upper.strip_prefix("FI_").unwrap_or(&upper);
        let own = LIBFABRIC.iter().find(|(_, known, _)| known.strip_prefix("FI_") == Some(bare));
        if let Some((number, ..)) = own {
            return u16::try_from(*number).ok().map(Self::Libfabric);
        }
        let errno = match bare {
            "EWOULDBLOCK" => Some(Errno::EAGAIN),
            "ENOTSUP" | "ENOTSUPP" => Some(Errno::EOPNOTSUPP),
            _ if OF_STORAGE.iter().any(|start| bare.starts_with(start)) => of_storage(bare),
            _ if bare.starts_with('E') => bare.parse().ok(),
            _ => None,
        };
        errno.map(Self::Errno).or_else(|| return_code(name))
    }

    /// The name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Errno(errno) => errno.to_string(),
            Self::Libfabric(number) => {
                own(number).map_or_else(String::new, |(_, name, _)| name.into())
            }
            Self::Nic(code) => format!("C_RC_{code}"),
        }
    }

    /// The number.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::Errno(errno) => errno.raw(),
            Self::Libfabric(number) => number.into(),
            Self::Nic(code) => code.0.into(),
        }
    }

    /// The text that programs print for it; the NIC's codes have none.
    #[must_use]
    pub fn text(self) -> Option<Cow<'static, str>> {
        match self {
            Self::Errno(errno) => {
                let known = ERRNOS.iter().find(|(number, ..)| *number == errno.raw());
                known.map(|(_, text, _)| (*text).into())
            }
            Self::Libfabric(number) => own(number).map(|(.., text)| text.into()),
            Self::Nic(_) => None,
        }
    }
}

/// The name with its number and text: `ENOSPC (28, No space left on device)`.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, number) = (self.name(), self.number());
        match self.text() {
            Some(text) => write!(f, "{name} ({number}, {text})"),
            None => write!(f, "{name} ({number})"),
        }
    }
}

/// The kernel's own errno for what is not supported, which some drivers return to programs.
const ENOTSUPP: i32 = 524;

/// The beginnings of the codes of Mercury, and of DAOS above it.
const OF_STORAGE: [&str; 3] = ["NA_", "HG_", "DER_"];

/// The errno that a code of Mercury or DAOS stands for: `NA_HOSTUNREACH`, `DER_TIMEDOUT`.
fn of_storage(name: &str) -> Option<Errno> {
    let (_, rest) = name.split_once('_')?;
    Some(match rest {
        "PERMISSION" | "NO_PERM" => Errno::EPERM,
        "NOENTRY" => Errno::ENOENT,
        "INVALID_ARG" | "INVAL" => Errno::EINVAL,
        "OPNOTSUPPORTED" | "NOSYS" => Errno::EOPNOTSUPP,
        "PROTOCOL_ERROR" | "PROTO" => Errno::EPROTO,
        "TIMEOUT" | "TIMEDOUT" => Errno::ETIMEDOUT,
        "UNREACH" | "HOSTUNREACH" => Errno::EHOSTUNREACH,
        "IO_ERROR" | "IO" => Errno::EIO,
        "NOSPACE" => Errno::ENOSPC,
        "ACCESS" => Errno::EACCES,
        "AGAIN" | "NOMEM" | "FAULT" | "BUSY" | "EXIST" | "NODEV" | "OVERFLOW" | "MSGSIZE"
        | "ADDRINUSE" | "ADDRNOTAVAIL" | "CANCELED" => {
            return format!("E{rest}").parse().ok();
        }
        _ => return None,
    })
}

fn own(number: u16) -> Option<(i32, &'static str, &'static str)> {
    LIBFABRIC.iter().copied().find(|(known, ..)| *known == i32::from(number))
}

/// A return code by its name in the header, or as libcxi prints it, without the prefix. Two of the
/// names are words that mean nothing by themselves.
fn return_code(name: &str) -> Option<Code> {
    let counter = name.trim_start_matches("rmu_").trim_end_matches("_cntr");
    let portals = counter.strip_prefix("ptl_").or_else(|| counter.strip_prefix("PTL_"));
    let portals = portals.map(str::to_ascii_uppercase);
    let portals = portals.map(|name| name.trim_start_matches("NI_").to_owned());
    let name = match (counter, &portals) {
        ("ptl_invld_vni", _) => "VNI_NOT_FOUND",
        ("ptl_invld_dfa", _) => "INVALID_DFA_FORMAT",
        (_, Some(portals)) => portals,
        _ => name,
    };
    let (known, number) = ReturnCode::NAMES
        .iter()
        .find(|(known, _)| *known == name || known.strip_prefix("C_RC_") == Some(name))?;
    let means_something = *known == name || !matches!(name, "OK" | "NO_EVENT");
    means_something.then_some(Code::Nic(ReturnCode(*number)))
}
