//! Versions of the CNI specification.

use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};

/// A version of the CNI specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Version {
    /// 0.3.1
    #[serde(rename = "0.3.1")]
    V0_3_1,
    /// 0.4.0, the first with CHECK.
    #[serde(rename = "0.4.0")]
    V0_4_0,
    /// 1.0.0
    #[serde(rename = "1.0.0")]
    V1_0_0,
    /// 1.1.0, the first with STATUS and GC.
    #[serde(rename = "1.1.0")]
    V1_1_0,
}

impl Version {
    pub(crate) const ALL: [Self; 4] = [Self::V0_3_1, Self::V0_4_0, Self::V1_0_0, Self::V1_1_0];

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::deserialize(StrDeserializer::<serde::de::value::Error>::new(text)).ok()
    }

    /// The version of a configuration that may be invalid; the newest if there is none.
    #[must_use]
    pub fn of(configuration: &str) -> Self {
        #[derive(Deserialize)]
        struct Versioned {
            #[serde(rename = "cniVersion")]
            version: String,
        }
        serde_json::from_str(configuration)
            .ok()
            .and_then(|versioned: Versioned| Self::parse(&versioned.version))
            .unwrap_or(Self::V1_1_0)
    }

    /// The answer to VERSION.
    #[must_use]
    pub fn supported(self) -> String {
        serde_json::json!({"cniVersion": self, "supportedVersions": Self::ALL}).to_string()
    }
}
