//! A dump of the driver's own accounting, for tests that check invariants.

use std::collections::BTreeMap;

/// Everything the driver counts, as [`Nic::state`](crate::Nic::state) shows it.
///
/// Serialized, the fields have the names of the conformance scenarios' `STATE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NicState {
    /// Services that exist, the default one included.
    pub svc_count: u32,
    /// Device-wide accounting by resource: `ptes`, `txqs`, `tgqs`, `eqs`, `cts`, `le0` to `le3`,
    /// `tles`, `acs`.
    pub resources: BTreeMap<&'static str, ResourceState>,
    /// Resource groups by id; each service has one of the same number.
    pub rgroups: Vec<ResourceGroupState>,
    /// Receive profiles by id.
    pub rx_profiles: Vec<ProfileState<RxProfileState>>,
    /// Transmit profiles by id.
    pub tx_profiles: Vec<ProfileState<TxProfileState>>,
    /// RGIDs in use, by number.
    pub rgids: Vec<RgidState>,
    /// LNIs that are freed but waiting for their queues to become quiet.
    pub lni_cleanups_pending: u32,
    /// Objects that exist.
    pub stats: ObjectCounts,
    /// LE pools taken by reservations, for each processing element.
    pub le_pools_used: [u32; 4],
    /// TLE pools taken.
    pub tle_pools_used: u32,
    /// Entries of the communication profile table in use.
    pub cp_used: u32,
    /// Entries of the VNI table in use.
    pub rmu_used: u32,
    /// Processing elements whose LE counts are being changed; always 0.
    pub plec: u32,
}

/// Accounting of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ResourceState {
    /// Device total.
    pub max: u32,
    /// Reserved by services.
    pub reserved: u32,
    /// The rest.
    pub shared: u32,
    /// Units in use beyond the reservations.
    pub shared_use: u32,
    /// Units in use.
    pub in_use: u32,
}

/// Share of one resource group in a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct EntryState {
    /// Most it may have.
    pub max: u32,
    /// Reserved for it.
    pub res: u32,
    /// Number that it has.
    pub in_use: u32,
}

/// A resource group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ResourceGroupState {
    /// Id, also the service's.
    pub id: u32,
    /// `default` or `user`; older releases have no names.
    pub name: &'static str,
    /// Enabled.
    pub enabled: bool,
    /// References: of its own, and one for each LNI; releases differ.
    pub refcount: u32,
    /// LNIs that may share an RGID.
    pub lnis_per_rgid: u32,
    /// Counter pool, only stored.
    pub cntr_pool_id: u32,
    /// Service of the system.
    pub system_service: bool,
    /// LE pool on each processing element.
    pub le_pool_id: [i32; 4],
    /// TLE pool.
    pub tle_pool_id: i32,
    /// `true` if the group belongs to a service.
    pub has_svc: bool,
    /// Users that may use it.
    pub ac: Vec<AccessEntryState>,
    /// Limits and use by resource; see [`NicState::resources`] for the names.
    pub entries: BTreeMap<&'static str, EntryState>,
}

/// One access entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct AccessEntryState {
    /// Number within its list.
    pub id: u32,
    /// `UID`, `GID`, `NETNS` or `OPEN`.
    #[cfg_attr(feature = "serde", serde(rename = "type"))]
    pub kind: &'static str,
    /// uid, gid or namespace; 0 for `OPEN`.
    pub data: u32,
}

/// A profile; `X` is what only receive or transmit profiles have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ProfileState<X> {
    /// Id.
    pub id: u32,
    /// VNI, or start of the range.
    #[cfg_attr(feature = "serde", serde(rename = "match"))]
    pub vni: u32,
    /// Bits of the VNI that are ignored.
    pub ignore: u32,
    /// Enabled.
    pub enabled: bool,
    /// Creator and users.
    pub refcount: u32,
    /// Users that may use it.
    pub ac: Vec<AccessEntryState>,
    /// The rest.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub extra: X,
}

/// Part that only a receive profile has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RxProfileState {
    /// Slot of the VNI table, -1 for none.
    pub rmu_index: i32,
}

/// Part that only a transmit profile has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TxProfileState {
    /// Every LNI gets its own communication profile.
    pub exclusive_cp: bool,
    /// Traffic classes.
    pub tcs: [bool; 5],
    /// Communication profiles made of it.
    pub cps: u32,
}

/// An RGID in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RgidState {
    /// The number.
    pub rgid: u32,
    /// Service it belongs to.
    pub svc_id: u32,
    /// LNIs per RGID when it was made.
    pub lnis: u32,
    /// LNIs that share it.
    pub refcount: u32,
    /// Logical address contexts in use.
    pub lacs: u32,
    /// Local communication profile ids in use.
    pub lcids: u32,
}

/// Number of objects of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ObjectCounts {
    /// LNIs.
    pub lni: u32,
    /// Domains.
    pub domain: u32,
    /// Event queues.
    pub eq: u32,
    /// Transmit queues.
    pub txq: u32,
    /// Target queues.
    pub tgq: u32,
    /// Portal table entries.
    pub pt: u32,
    /// Counting events.
    pub ct: u32,
    /// Address contexts.
    pub ac: u32,
    /// Memory descriptors.
    pub md: u32,
}
