//! A driver release in files: its name.

use cxi_ioctl::DriverRelease;
use serde::{Deserialize, Deserializer, Serializer};

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
pub(crate) fn serialize<S: Serializer>(release: &DriverRelease, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(release.name())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<DriverRelease, D::Error> {
    String::deserialize(from)?
        .parse()
        .map_err(serde::de::Error::custom)
}
