//! Blocks of VNIs.

use cxi_ioctl::abi::service::{SvcGetVniRangeCmd, SvcGetVniRangeResp, SvcSetVniRangeCmd};
use cxi_ioctl::{Command, Errno, Opcode};

use super::{Service, Services, conflict};
use crate::driver::Capabilities;
use crate::error::{Error, ErrorKind, Result};
use crate::explain::Attempt;
use crate::{ServiceId, VniRange};

impl Services {
    /// Gives a service its block of VNIs (SVC_SET_VNI_RANGE). Needs SHS 13.1 or later.
    ///
    /// The service must have been made with [unrestricted VNIs](crate::VniAccess::Unrestricted) and
    /// have no range yet; it has to be [enabled](Self::set_enabled) afterwards.
    /// [`create`](Self::create) with a range takes care of all that.
    ///
    /// A driver that refuses a range leaves the service broken, and it must be destroyed. Whatever
    /// can be known to go wrong is therefore checked first.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NoSuchService`] (EINVAL).
    /// - [`ErrorKind::InvalidInput`], nothing was sent: the service lists its VNIs, or already has
    ///   a range, of which the driver would lose track.
    /// - [`ErrorKind::VniTaken`] (EEXIST): another service has one of the VNIs.
    /// - [`ErrorKind::Unsupported`].
    #[doc(alias = "cxil_svc_set_vni_range")]
    pub fn set_vni_range(&self, id: ServiceId, range: VniRange) -> Result<()> {
        const OPCODE: Opcode = SvcSetVniRangeCmd::OPCODE;
        let refuse = |kind: ErrorKind, errno| {
            Err(Error::new(kind, errno).during(OPCODE).on(self.device.id()))
        };
        self.device.needs(Capabilities::VNI_RANGES, OPCODE)?;
        let service = self.exists(id, OPCODE)?;
        if service.restricted_vnis() {
            let text = format!(
                "service {id} lists its VNIs ({}): it takes no range",
                service.vnis()
            );
            return refuse(ErrorKind::InvalidInput(text.into()), Errno::EINVAL);
        }
        if let Some(present) = self.vni_range(id)? {
            let text = format!("service {id} has VNI range {present} already: it takes no other");
            return refuse(ErrorKind::InvalidInput(text.into()), Errno::EINVAL);
        }
        // Every driver refuses blocks that overlap, unless both are single VNIs.
        let is_certain = |a: VniRange, b: VniRange| a.size() > 1 || b.size() > 1;
        let listed = self.list().unwrap_or_default();
        let others = listed.iter().filter(|other| other.id() != id);
        if let Some(conflict) = conflict::find(others, &[range], is_certain) {
            return refuse(ErrorKind::VniTaken(conflict), Errno::EEXIST);
        }
        self.write_vni_range(id, range)
    }

    pub(super) fn write_vni_range(&self, id: ServiceId, range: VniRange) -> Result<()> {
        let command = SvcSetVniRangeCmd {
            svc_id: id.get(),
            vni_min: range.first().into(),
            vni_max: range.last().into(),
            ..SvcSetVniRangeCmd::new()
        };
        self.device
            .attempt(Attempt::SetVniRange(id, range), &command)
    }

    /// Returns the VNI block of a service (SVC_GET_VNI_RANGE); `None` if it lists its VNIs, has no
    /// range yet, or the driver does not support ranges.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NoSuchService`] (EINVAL).
    /// - ENOENT: the service lost its range, because a driver refused one. Destroy it.
    #[doc(alias = "cxil_svc_get_vni_range")]
    pub fn vni_range(&self, id: ServiceId) -> Result<Option<VniRange>> {
        match self.device.execute(&SvcGetVniRangeCmd::of(id.get())) {
            Ok(found) => self.bounds(found).map(Some),
            // EOPNOTSUPP: a group that was not made as a service.
            Err(error) if matches!(error.errno(), Errno::EINVAL | Errno::EOPNOTSUPP) => {
                let service = self.exists(id, SvcGetVniRangeCmd::OPCODE)?;
                if service.counts_a_range() {
                    return Err(self.device.refused(error, |_| None));
                }
                Ok(None)
            }
            Err(error) => Err(self.device.explain(&Attempt::OnService(id), error)),
        }
    }

    /// Whether a driver refused the range of a service. Either another service was in the way, and
    /// destroying this one is harmless; or a domain of uid 0 was, and the driver keeps a profile
    /// that it has freed. The two cannot be told apart afterwards.
    ///
    /// # Errors
    ///
    /// As [`Self::vni_range`], except ENOENT.
    pub fn has_lost_range(&self, id: ServiceId) -> Result<bool> {
        match self.vni_range(id) {
            Ok(_) => Ok(false),
            Err(error) if error.errno() == Errno::ENOENT => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn bounds(&self, found: SvcGetVniRangeResp) -> Result<VniRange> {
        VniRange::from_bounds(found.vni_min.into(), found.vni_max.into()).map_err(|error| {
            let text = format!("the driver answers with an invalid range: {error}");
            Error::new(ErrorKind::Refused(text.into()), Errno::EPROTO)
                .during(SvcGetVniRangeCmd::OPCODE)
                .on(self.device.id())
        })
    }

    /// The range of a service that was read; also `None` if it was lost.
    pub(super) fn range_of(&self, service: &Service) -> Result<Option<VniRange>> {
        match self
            .device
            .execute(&SvcGetVniRangeCmd::of(service.id().get()))
        {
            Ok(found) => self.bounds(found).map(Some),
            Err(error) => match error.errno() {
                Errno::ENOENT => Ok(None),
                Errno::EINVAL | Errno::EOPNOTSUPP if !service.counts_a_range() => Ok(None),
                _ => Err(self.device.refused(error, |_| None)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cxi_ioctl::{Mapping, Request, Transport};

    use super::*;
    use crate::Device;

    /// A driver that refuses everything.
    #[derive(Debug)]
    struct Refusing(Errno);

    impl Transport for Refusing {
        fn submit(&self, _: Request<'_>) -> std::result::Result<(), Errno> {
            Err(self.0)
        }

        fn map(&self, _: u64, _: usize) -> std::result::Result<Mapping, Errno> {
            Err(self.0)
        }
    }

    #[test]
    fn a_range_is_lost_only_if_the_driver_says_so() {
        let lost = |errno| {
            let device = Device::from(Arc::new(Refusing(errno)));
            let lost = device.services().has_lost_range(ServiceId::DEFAULT);
            lost.map_err(|error| error.errno())
        };
        assert_eq!(lost(Errno::ENOENT), Ok(true));
        assert_eq!(lost(Errno::EIO), Err(Errno::EIO));
    }
}
