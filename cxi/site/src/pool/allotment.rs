//! Requests to a pool, and the VNIs that it gives.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU16;

use super::ReserveError;
use crate::{IdSet, TenantName};
use cxi::{Vni, VniRange};

/// The most VNIs that one service can list, and so the most that a job can have individually.
pub(super) const MAX_VNIS_PER_JOB: u8 = 4;

/// Request of a job: one to four VNIs, a block for a range service, or a pool for its steps.
///
/// ```
/// use cxi_site::pool::VniRequest;
///
/// let two = VniRequest::vnis(2);
/// let block = VniRequest::block(16).for_tenant("blue".parse()?);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VniRequest {
    pub(super) shape: Shape,
    pub(super) tenant: Option<TenantName>,
    pub(super) except: IdSet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    List(u8),
    Block(u16),
    Set(NonZeroU16),
}

impl VniRequest {
    const fn of(shape: Shape) -> Self {
        Self { shape, tenant: None, except: IdSet::new() }
    }

    /// One to four VNIs.
    #[must_use]
    pub const fn vnis(count: u8) -> Self {
        Self::of(Shape::List(count))
    }

    /// A block of consecutive VNIs for a range service. The size is a power of two, and the block
    /// starts at a multiple of it.
    #[must_use]
    pub const fn block(size: u16) -> Self {
        Self::of(Shape::Block(size))
    }

    /// VNIs for the job's steps. The job makes its own pool from them, as Slurm's `stepmgr` does
    /// with one VNI for each node. The job's services list the VNIs of a step, never all of these.
    ///
    /// ```
    /// use cxi_site::JobId;
    /// use cxi_site::pool::{PoolConfig, Timestamp, VniPool, VniRequest};
    ///
    /// let now = Timestamp::default();
    /// let mut cluster = VniPool::new(PoolConfig::new("1024-65535".parse()?))?;
    /// let request = VniRequest::for_steps(8.try_into()?);
    /// let job = cluster.reserve(&JobId::new("17")?, &request, now)?;
    ///
    /// let mut steps = VniPool::new(PoolConfig::new(job.result.to_set()))?;
    /// let first = steps.reserve(&JobId::new("17.0")?, &VniRequest::vnis(1), now)?;
    /// let second = steps.reserve(&JobId::new("17.1")?, &VniRequest::vnis(1), now)?;
    /// assert_eq!(
    ///     (first.result.to_string(), second.result.to_string()),
    ///     ("VNI 1024".into(), "VNI 1025".into())
    /// );
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn for_steps(count: NonZeroU16) -> Self {
        Self::of(Shape::Set(count))
    }

    /// Takes the VNIs from a tenant's share.
    #[must_use]
    pub fn for_tenant(mut self, tenant: TenantName) -> Self {
        self.tenant = Some(tenant);
        self
    }

    /// Takes none of these VNIs, even if the pool considers them free: others have them.
    #[must_use]
    pub fn except(mut self, vnis: IdSet) -> Self {
        self.except = vnis;
        self
    }

    pub(super) const fn check(&self) -> Result<(), ReserveError> {
        match self.shape {
            Shape::List(asked) if asked == 0 || asked > MAX_VNIS_PER_JOB => {
                Err(ReserveError::Count { asked })
            }
            Shape::Block(size) if !size.is_power_of_two() => Err(ReserveError::BlockSize { size }),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for VniRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape {
            Shape::List(1) => f.write_str("1 VNI")?,
            Shape::List(count) => write!(f, "{count} VNIs")?,
            Shape::Block(size) => write!(f, "a block of {size} VNIs")?,
            Shape::Set(count) => write!(f, "{count} VNIs for steps")?,
        }
        match &self.tenant {
            Some(tenant) => write!(f, " for tenant {tenant}"),
            None => Ok(()),
        }
    }
}

/// The VNIs that a job has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Allotment {
    /// One to four VNIs, in the order of assignment.
    List(Vec<Vni>),
    /// A block for a range service.
    Block(VniRange),
    /// The pool of a job's steps.
    Set(IdSet),
}

impl Allotment {
    /// Returns the number of VNIs.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::List(vnis) => vnis.len(),
            Self::Block(range) => range.size().into(),
            Self::Set(vnis) => vnis.len(),
        }
    }

    /// Returns whether there are none, which is true only for an empty list or set; no pool assigns
    /// one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The VNIs one by one.
    pub fn iter(&self) -> impl Iterator<Item = Vni> + '_ {
        let (list, block, set) = match self {
            Self::List(vnis) => (vnis.as_slice(), None, None),
            Self::Block(range) => (&[][..], Some(*range), None),
            Self::Set(vnis) => (&[][..], None, Some(vnis)),
        };
        let block = block.into_iter().flat_map(VniRange::iter);
        let set = set.into_iter().flat_map(IdSet::iter).filter_map(|id| Vni::new(id).ok());
        list.iter().copied().chain(block).chain(set)
    }

    /// The VNIs as a set, such as for the [configuration](super::PoolConfig) of a pool of steps.
    #[must_use]
    pub fn to_set(&self) -> IdSet {
        self.iter().map(Vni::get).collect()
    }

    pub(super) fn answers(&self, shape: Shape) -> bool {
        match (self, shape) {
            (Self::List(vnis), Shape::List(count)) => vnis.len() == usize::from(count),
            (Self::Block(_), Shape::Block(size)) => self.len() == usize::from(size),
            (Self::Set(vnis), Shape::Set(count)) => vnis.len() == usize::from(count.get()),
            _ => false,
        }
    }
}

impl fmt::Display for Allotment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(vnis) => {
                f.write_str(if vnis.len() == 1 { "VNI " } else { "VNIs " })?;
                for (position, vni) in vnis.iter().enumerate() {
                    if position > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{vni}")?;
                }
                Ok(())
            }
            Self::Block(range) => write!(f, "VNIs {range}"),
            Self::Set(vnis) => write!(f, "VNIs {vnis}"),
        }
    }
}
