//! A job's reservation at the fabric manager, which only its user may read: it has the session token.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Readers, read, write};
use crate::exit::Failure;
use crate::state_file::RESERVATION;

/// What each step of a job has to set.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reservation {
    /// By name; none for a job that starts without hardware collectives.
    pub(crate) variables: BTreeMap<String, String>,
}

impl Reservation {
    pub(super) fn read(path: &Path) -> Result<Option<Self>, Failure> {
        read(RESERVATION, path)
    }

    /// Writes it for this user, or else for the one who writes it.
    pub(super) fn write(&self, path: &Path, uid: Option<u32>) -> Result<(), Failure> {
        write(RESERVATION, path, self, Readers::Owner(uid))
    }
}
