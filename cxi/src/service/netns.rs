//! Services for a network namespace.

use cxi_ioctl::abi::service::{SvcGetNetnsCmd, SvcSetNetnsCmd};
use cxi_ioctl::{Command, Errno};

use super::Services;
use crate::driver::Capabilities;
use crate::error::{Error, ErrorKind, Result};
use crate::explain::Attempt;
use crate::{Member, ServiceId};

impl Services {
    /// Admits the processes of a network namespace to a service (SVC_SET_NETNS). `inode` is the
    /// namespace's inode number. Needs SHS 14.0 or later.
    ///
    /// The service must be disabled and restricted to members, none of which is a uid or gid.
    /// [`create`](Self::create) with [`Member::NetNs`] takes care of everything. Namespaces
    /// accumulate: no command removes one. Inode numbers are reused after a namespace is gone.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NoSuchService`] (EINVAL).
    /// - [`ErrorKind::Busy`] (EBUSY): the service is enabled.
    /// - EEXIST: it has a uid, a gid or this namespace already, or is open to everyone.
    /// - [`ErrorKind::Unsupported`].
    #[doc(alias = "cxil_svc_set_netns")]
    pub fn set_netns(&self, id: ServiceId, inode: u32) -> Result<()> {
        const OPCODE: cxi_ioctl::Opcode = SvcSetNetnsCmd::OPCODE;
        if let Err(error) = crate::Members::new([Member::NetNs(inode)]) {
            let kind = ErrorKind::InvalidInput(error.to_string().into());
            return Err(Error::invalid(kind).during(OPCODE).on(self.device.id()));
        }
        self.device.needs(Capabilities::NETNS, OPCODE)?;
        let command = SvcSetNetnsCmd {
            svc_id: id.get(),
            netns: inode,
            ..SvcSetNetnsCmd::new()
        };
        self.device.attempt(Attempt::OnService(id), &command)
    }

    /// The network namespace that may use a service, by inode number (SVC_GET_NETNS). If there are
    /// several, the lowest; `None` if there is none, or the driver does not support them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchService`] (EINVAL).
    #[doc(alias = "cxil_svc_get_netns")]
    pub fn netns(&self, id: ServiceId) -> Result<Option<u32>> {
        match self.device.execute(&SvcGetNetnsCmd::of(id.get())) {
            Ok(found) => Ok(Some(found.value)),
            Err(error) if error.errno() == Errno::EINVAL => {
                self.exists(id, SvcGetNetnsCmd::OPCODE)?;
                Ok(None)
            }
            Err(error) => Err(self.device.refused(error, |_| None)),
        }
    }
}
