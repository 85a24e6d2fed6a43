//! Sizes of what the services of a NIC share, beside its resources.

/// LE pools of each processing element that services can have. One more is shared by all services
/// without one.
pub const LE_POOLS: usize = 15;

/// TLE pools of a NIC, that of the default service included.
pub const TLE_POOLS: usize = 4;

/// Places in the table of VNIs of a NIC.
pub const VNI_SLOTS: usize = 256;

/// The least that the driver reserves if any TLE is asked for, or no limits are set.
pub const MIN_TLES: u16 = 8;
