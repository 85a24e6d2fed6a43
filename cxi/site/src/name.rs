//! Names that come from a scheduler: jobs, steps, nodes, tenants.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

/// Maximum length in bytes: a host name may have 253.
pub(crate) const MAX_NAME: usize = 255;

/// Reason for which a text is not a valid job ID, step ID, node name or tenant name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The text is empty.
    #[error("{what} is empty")]
    Empty {
        /// The kind of name.
        what: &'static str,
    },
    /// The text is longer than 255 bytes.
    #[error("{what} has {len} bytes, the most is 255")]
    TooLong {
        /// The kind of name.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
    },
    /// A character is not allowed.
    #[error(
        "{what} {name:?} has {character:?} at byte {position}: allowed are letters and digits of ASCII, 'ƒ' and . _ - + : / # @"
    )]
    Character {
        /// The kind of name.
        what: &'static str,
        /// The text.
        name: String,
        /// The first character that is not allowed.
        character: char,
        /// Its offset in bytes.
        position: usize,
    },
}

const fn allowed(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(character, 'ƒ' | '.' | '_' | '-' | '+' | ':' | '/' | '#' | '@')
}

fn check(what: &'static str, name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty { what });
    }
    if name.len() > MAX_NAME {
        return Err(NameError::TooLong { what, len: name.len() });
    }
    match name.char_indices().find(|(_, c)| !allowed(*c)) {
        None => Ok(()),
        Some((position, character)) => {
            Err(NameError::Character { what, name: name.to_owned(), character, position })
        }
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Creates a name from text.
            ///
            /// # Errors
            /// The text is empty, longer than 255 bytes, or has a character that is not allowed.
            pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
                let name = name.into();
                check($what, &name)?;
                Ok(Self(name.into()))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(name: &str) -> Result<Self, NameError> {
                Self::new(name)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

name! {
    /// A job, as its scheduler names it: `ƒ3WqKLhmP`, `4711`, `4711_3`, `cluster-4711`.
    ///
    /// The library does not interpret it: equal text means the same job, different text another
    /// one. A rerun of a job that must not share VNIs with the earlier run needs a different ID
    /// (`4711#2` for a requeued Slurm job).
    ///
    /// Text rather than a number, because Flux ids and Slurm's array, heterogeneous and step ids
    /// have no common numeric form. ASCII letters and digits, `ƒ` and `. _ - + : / # @` cover all
    /// of these. Quotes, blanks and backslashes are refused because the id goes into environment
    /// variables, logs, and JSON that libfabric prints without escaping.
    ///
    /// ```
    /// use cxi_site::JobId;
    ///
    /// assert_eq!(JobId::new("ƒ3WqKLhmP")?.as_str(), "ƒ3WqKLhmP");
    /// assert!(JobId::new("4711'").is_err());
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    JobId, "job id"
}

name! {
    /// A step of a job, one of the users of the job's VNIs. Same alphabet as [`JobId`].
    StepId, "step id"
}

impl StepId {
    /// The step of programs that name none: step 0.
    #[must_use]
    pub fn every() -> Self {
        Self("0".into())
    }
}

name! {
    /// A node, by host name. Same alphabet as [`JobId`].
    NodeName, "node name"
}

impl NodeName {
    /// The name of this machine (`gethostname`).
    ///
    /// # Errors
    ///
    /// The kernel does not say, or the name is not one of a node.
    pub fn of_this_machine() -> io::Result<Self> {
        let name = nix::unistd::gethostname()?;
        Self::new(name.to_string_lossy())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
    }
}

name! {
    /// A tenant with its own VNIs. Same alphabet as [`JobId`].
    TenantName, "tenant name"
}
