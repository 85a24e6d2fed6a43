//! The reason why a thread's last call failed.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

use cxi::DeviceId;
use cxi_ioctl::Errno;
use cxi_job::cluster::SiteError;
use cxi_job::{AllocateError, Explanation};
use cxi_vni_etcd::SitePoolError;
use serde::Serialize;

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Reason for which a call failed, as `cxi_job_explain` reports it.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    errno: i32,
    text: String,
    nics: Vec<OnNic>,
    left: Vec<String>,
}

#[derive(Debug, Serialize)]
struct OnNic {
    device: DeviceId,
    text: String,
    explanations: Vec<Explanation>,
}

impl Failure {
    pub(crate) fn new(errno: Errno, text: impl Into<String>) -> Self {
        Self { errno: errno.raw(), text: text.into(), nics: Vec::new(), left: Vec::new() }
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::new(Errno::EINVAL, format!("{what} is NULL"))
    }

    /// An argument with an invalid value.
    pub(crate) fn invalid(what: &str, error: &dyn std::fmt::Display) -> Self {
        Self::new(Errno::EINVAL, format!("{what}: {error}"))
    }

    pub(crate) fn errno(&self) -> Errno {
        Errno::from_raw(self.errno)
    }
}

impl From<AllocateError> for Failure {
    fn from(error: AllocateError) -> Self {
        let text = error.to_string();
        let left = error.left().iter().map(ToString::to_string).collect();
        let nics = error.failures().iter().map(|failure| OnNic {
            device: failure.device,
            text: failure.to_string(),
            explanations: failure.explanations.clone(),
        });
        Self { nics: nics.collect(), left, ..Self::new(error.errno(), text) }
    }
}

impl From<SiteError> for Failure {
    fn from(error: SiteError) -> Self {
        match error {
            SiteError::Allocate(error) => error.into(),
            SiteError::Unfinished { error, left } => {
                let mut failure = Self::from(*error);
                failure.left.push(left.to_string());
                failure
            }
            error => Self::new(error.errno(), error.to_string()),
        }
    }
}

impl From<SitePoolError> for Failure {
    fn from(error: SitePoolError) -> Self {
        Self::new(error.errno(), error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
    static TEXT: RefCell<CString> = RefCell::default();
}

pub(crate) fn keep(failure: Failure) {
    // While a thread ends, its storage may be gone already; then it can no longer ask either.
    let _ = LAST.try_with(|last| last.replace(Some(failure)));
}

/// The last failure of this thread, as JSON.
pub(crate) fn explain() -> Result<String> {
    let explained = LAST.with_borrow(|last| last.as_ref().map(crate::json::write));
    explained
        .unwrap_or_else(|| Err(Failure::new(Errno::ENOENT, "no call of this thread has failed")))
}

/// The text of the last failure of this thread.
pub(crate) fn text() -> *const c_char {
    let line = LAST.with_borrow(|last| last.as_ref().map(|last| last.text.replace('\0', " ")));
    let line = CString::new(line.unwrap_or_default()).unwrap_or_default();
    TEXT.with_borrow_mut(|text| {
        *text = line;
        text.as_ptr()
    })
}
