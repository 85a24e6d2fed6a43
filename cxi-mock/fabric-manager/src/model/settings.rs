//! Settings for what is not known outside HPE. The defaults are the plainest behavior.

use serde::{Deserialize, Serialize};

/// Multicast ids have 13 bits.
pub(crate) const MOST_ADDRESSES: u16 = 1 << 13;

/// Sizes, times and choices of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an independent choice"
)]
pub struct Settings {
    /// First and last multicast id that trees get, at most 8191.
    pub addresses: (u16, u16),
    /// Ids are used in turn; otherwise the lowest free one is.
    pub round_robin: bool,
    /// Milliseconds before an id that was freed is used again.
    pub rest_ms: u64,
    /// Milliseconds during which a tree is being made: the request is answered with 409 until then.
    pub creation_ms: u64,
    /// Milliseconds during which a tree is being deleted: the request is answered with 409 until
    /// then.
    pub deletion_ms: u64,
    /// A reservation is answered with 201 instead of 200.
    pub reserved_is_201: bool,
    /// A second reservation of a job gets the first one instead of 409.
    pub second_reservation_gets_first: bool,
    /// A reservation of 0 trees is accepted instead of answered with 400.
    pub accepts_limit_0: bool,
    /// The deletion of a reservation is answered with 204 and no body, instead of 200 and the
    /// document.
    pub released_is_204: bool,
    /// Without a NIC that can be the root, the answer is 400 instead of 507.
    pub no_root_is_400: bool,
    /// A job's session token allows reading the job and ending its steps.
    pub session_may_end_steps: bool,
    /// Reservations together may have more trees than there are ids.
    pub overcommits: bool,
    /// A NIC that is named twice in one tree is answered with 400.
    pub refuses_repeated_nics: bool,
    /// Most NICs of one tree.
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
    /// How many ids there are.
    pub(crate) fn address_count(&self) -> u64 {
        let (first, last) = self.addresses;
        u64::from(last.saturating_sub(first)) + 1
    }
}
