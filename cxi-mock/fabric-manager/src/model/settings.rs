//! Settings for behavior that is not known outside HPE. The defaults are the simplest behavior.

use serde::{Deserialize, Serialize};

/// Multicast IDs have 13 bits.
pub(crate) const MOST_ADDRESSES: u16 = 1 << 13;

/// Sizes, times and choices of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent choice")]
pub struct Settings {
    /// The first and last multicast ID for trees, at most 8191.
    pub addresses: (u16, u16),
    /// IDs are assigned in rotation; otherwise the lowest free ID is assigned.
    pub round_robin: bool,
    /// Milliseconds before a freed ID is reused.
    pub rest_ms: u64,
    /// Milliseconds that creating a tree takes; until then the response is 409.
    pub creation_ms: u64,
    /// Milliseconds that deleting a tree takes; until then the response is 409.
    pub deletion_ms: u64,
    /// The response to a reservation is 201 instead of 200.
    pub reserved_is_201: bool,
    /// A second reservation of a job gets the first one instead of 409.
    pub second_reservation_gets_first: bool,
    /// A reservation of 0 trees is accepted instead of refused with 400.
    pub accepts_limit_0: bool,
    /// The response to deleting a reservation is 204 without a body, instead of 200 with the document.
    pub released_is_204: bool,
    /// If no NIC can be the root, the response is 400 instead of 507.
    pub no_root_is_400: bool,
    /// A job's session token allows reading the job and ending its steps.
    pub session_may_end_steps: bool,
    /// The reservations together may have more trees than there are IDs.
    pub overcommits: bool,
    /// A tree that names a NIC twice is refused with 400.
    pub refuses_repeated_nics: bool,
    /// The maximum number of NICs of one tree.
    pub most_nics: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            addresses: (1, 4096),
            round_robin: false,
            rest_ms: 0,
            creation_ms: 0,
            deletion_ms: 0,
            reserved_is_201: false,
            second_reservation_gets_first: false,
            accepts_limit_0: false,
            released_is_204: false,
            no_root_is_400: false,
            session_may_end_steps: true,
            overcommits: true,
            refuses_repeated_nics: false,
            most_nics: 1 << 17,
        }
    }
}

impl Settings {
    /// Returns the number of IDs.
    pub(crate) fn address_count(&self) -> u64 {
        let (first, last) = self.addresses;
        u64::from(last.saturating_sub(first)) + 1
    }
}
