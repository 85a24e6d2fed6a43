//! Errors in the form that CNI requires.

use std::fmt;

use serde::Serialize;

use crate::version::Version;

/// Kind of an error, by number. Numbers below 100 are CNI's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Code {
    /// The version of the configuration is not supported, or too old for the command.
    Version = 1,
    /// A variable of the environment is missing or invalid.
    Environment = 4,
    /// A file cannot be read or written.
    Io = 5,
    /// Something is not the expected JSON.
    Decoding = 6,
    /// The configuration is invalid.
    Configuration = 7,
    /// Something is in use or exhausted: the runtime should try again.
    TryAgain = 11,
    /// STATUS: ADD would fail.
    NotServing = 50,
    /// The VNIs cannot be used.
    Vni = 100,
    /// A NIC cannot be used, or refuses.
    Nic = 101,
    /// CHECK: a service of the pod is gone or has changed.
    Changed = 102,
}

/// An error that is reported to the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    code: Code,
    message: String,
    details: String,
}

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: String::new() }
    }

    pub(crate) fn details(mut self, details: impl Into<String>) -> Self {
        self.details = details.into();
        self
    }

    /// Returns the kind of the error, for programs.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// The error as CNI's JSON.
    #[must_use]
    pub fn to_json(&self, version: Version) -> String {
        #[derive(Serialize)]
        struct Json<'a> {
            #[serde(rename = "cniVersion")]
            version: Version,
            code: u32,
            msg: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            details: &'a str,
        }
        let json =
            Json { version, code: self.code as u32, msg: &self.message, details: &self.details };
        serde_json::to_string(&json).map(cxi_site::printable_json).unwrap_or_default()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.details.is_empty() {
            write!(f, "\n{}", self.details)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
