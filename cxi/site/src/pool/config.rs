//! Configuration of a pool: the VNIs that it may assign, and to whom.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

use crate::{IdSet, TenantName};

/// Configuration of a pool: a set of VNIs, the VNIs that are never to be used, the tenants' shares,
/// and the rest time.
///
/// VNI 0 does not exist, and 1 and 10 belong to the default service: these three are always
/// excluded, whatever the set contains.
///
/// ```
/// use cxi_site::pool::{PoolConfig, VniPool};
/// use cxi_site::{IdSet, TenantName};
/// use std::time::Duration;
///
/// let config = PoolConfig::new("1024-65535".parse()?)
///     .exclude(&"4000-4095".parse()?)
///     .rest(Duration::from_secs(30))
///     .tenant(TenantName::new("blue")?, "1024-2047".parse()?);
/// let pool = VniPool::new(config)?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolConfig {
    vnis: IdSet,
    #[serde(default)]
    excluded: IdSet,
    #[serde(default)]
    rest: Duration,
    #[serde(default)]
    tenants: BTreeMap<TenantName, IdSet>,
}

/// The VNIs of the default service, unless the driver's `default_vnis` says otherwise.
pub const DEFAULT_VNIS: [u16; 2] = [1, 10];

/// 0 is invalid.
const ALWAYS_EXCLUDED: [u16; 3] = [0, DEFAULT_VNIS[0], DEFAULT_VNIS[1]];

/// Reason for which a [`PoolConfig`] cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolConfigError {
    /// No VNI is left to assign.
    #[error("no VNI to assign: the set is \"{vnis}\", of which \"{excluded}\" are excluded")]
    Empty {
        /// The configured set.
        vnis: IdSet,
        /// The VNIs that are never assigned.
        excluded: IdSet,
    },
    /// A tenant's share reaches outside the pool.
    #[error("the part of tenant {tenant} has VNIs that the pool does not have: {outside}")]
    Outside {
        /// The tenant.
        tenant: TenantName,
        /// Its VNIs that are not in the pool.
        outside: IdSet,
    },
    /// Two tenants would have the same VNIs.
    #[error("tenants {first} and {second} must not share VNIs: both have {shared}")]
    Overlap {
        /// One tenant.
        first: TenantName,
        /// The other.
        second: TenantName,
        /// The VNIs in both shares.
        shared: IdSet,
    },
    /// A tenant's share has no VNI to assign.
    #[error("the part of tenant {tenant} has no VNI to assign")]
    EmptyTenant {
        /// The tenant.
        tenant: TenantName,
    },
}

impl PoolConfig {
    /// A pool of these VNIs, for everyone, without rest time.
    #[must_use]
    pub const fn new(vnis: IdSet) -> Self {
        Self { vnis, excluded: IdSet::new(), rest: Duration::ZERO, tenants: BTreeMap::new() }
    }

    /// Excludes further VNIs (the driver's `default_vnis`, VNIs of system services).
    #[must_use]
    pub fn exclude(mut self, vnis: &IdSet) -> Self {
        self.excluded = self.excluded.union(vnis);
        self
    }

    /// Keeps each VNI unused for this long after its services are destroyed everywhere.
    #[must_use]
    pub const fn rest(mut self, rest: Duration) -> Self {
        self.rest = rest;
        self
    }

    /// Gives a tenant an exclusive share of the VNIs. The VNIs of no share serve requests without a
    /// tenant.
    ///
    /// A second call for the same tenant replaces its share.
    #[must_use]
    pub fn tenant(mut self, tenant: TenantName, vnis: IdSet) -> Self {
        self.tenants.insert(tenant, vnis);
        self
    }

    /// The configured set, including the VNIs that are excluded from it.
    #[must_use]
    pub const fn vnis(&self) -> &IdSet {
        &self.vnis
    }

    /// All VNIs that are never assigned: 0, 1, 10 and the configured ones.
    #[must_use]
    pub fn excluded(&self) -> IdSet {
        self.excluded.union(&ALWAYS_EXCLUDED.into_iter().collect())
    }

    /// Returns the time that a VNI rests after its services are destroyed everywhere.
    #[must_use]
    pub const fn rest_time(&self) -> Duration {
        self.rest
    }

    /// The tenants and their shares.
    #[must_use]
    pub const fn tenants(&self) -> &BTreeMap<TenantName, IdSet> {
        &self.tenants
    }

    /// The shares to assign from: the common one first, then one for each tenant.
    ///
    /// # Errors
    /// [`PoolConfigError`]: nothing to assign, or a tenant's share outside the pool or overlapping
    /// another tenant's.
    pub(super) fn partitions(&self) -> Result<Vec<(Option<TenantName>, IdSet)>, PoolConfigError> {
        let excluded = self.excluded();
        let usable = self.vnis.difference(&excluded);
        if usable.is_empty() {
            return Err(PoolConfigError::Empty { vnis: self.vnis.clone(), excluded });
        }
        let mut common = usable.clone();
        let mut parts = Vec::with_capacity(self.tenants.len() + 1);
        for (tenant, vnis) in &self.tenants {
            let outside = vnis.difference(&self.vnis);
            if !outside.is_empty() {
                return Err(PoolConfigError::Outside { tenant: tenant.clone(), outside });
            }
            let part = vnis.intersection(&usable);
            if part.is_empty() {
                return Err(PoolConfigError::EmptyTenant { tenant: tenant.clone() });
            }
            if !part.is_subset(&common) {
                return Err(self.overlap(tenant, vnis));
            }
            common = common.difference(&part);
            parts.push((Some(tenant.clone()), part));
        }
        parts.insert(0, (None, common));
        Ok(parts)
    }

    fn overlap(&self, second: &TenantName, vnis: &IdSet) -> PoolConfigError {
        let (first, shared) = self
            .tenants
            .iter()
            .filter(|(name, _)| *name != second)
            .map(|(name, part)| (name, part.intersection(vnis)))
            .find(|(_, shared)| !shared.is_empty())
            .unwrap_or((second, IdSet::new()));
        PoolConfigError::Overlap { first: first.clone(), second: second.clone(), shared }
    }
}
