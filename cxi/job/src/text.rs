//! Types that are text in JSON, as a person writes them.

/// Serializes types by `Display`, and deserializes them by `FromStr`.
macro_rules! serde_as_text {
    ($($type:ty),*) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

serde_as_text!(
    crate::IdSet,
    crate::JobId,
    crate::StepId,
    crate::NodeName,
    crate::TenantName,
    crate::site::HostList,
    crate::site::NetworkOptions
);
