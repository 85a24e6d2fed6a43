//! Making a job's services on all its NICs, as one operation.

mod error;
mod make;
mod prepare;

use super::grant::{Grant, LeftOut};
use super::job_request::{JobRequest, NicPolicy};
use super::node::{Node, NodeNic};
use super::owners::Begun;
use super::parallel;
use cxi::{Device, DeviceId, Service, ServiceId};

pub use error::{AllocateError, Cause, LeftBehind, LeftBehindReason, NicFailure};
use make::Made;
use prepare::Prepared;

/// Account of what an allocation makes. All of it is called with the node's lock held.
pub(crate) trait Ledger: Sync {
    /// Reason for which nothing was made.
    type Error: From<AllocateError>;

    /// Called first.
    fn look(&self) -> Result<(), Self::Error>;

    /// Returns whether a service is the job's, and may be adopted.
    fn owns(&self, device: DeviceId, service: &Service) -> bool;

    /// Called before anything is made on these NICs.
    fn begin(&self, begun: Vec<Begun>) -> Result<(), Self::Error>;

    /// Called when the job's service on a NIC is complete, from several threads.
    fn made(&self, device: &Device, service: ServiceId);
}

/// No account.
struct NoLedger;

impl Ledger for NoLedger {
    type Error = AllocateError;

    fn look(&self) -> Result<(), AllocateError> {
        Ok(())
    }

    fn owns(&self, _: DeviceId, _: &Service) -> bool {
        true
    }

    fn begin(&self, _: Vec<Begun>) -> Result<(), AllocateError> {
        Ok(())
    }

    fn made(&self, _: &Device, _: ServiceId) {}
}

impl Node {
    /// Makes a job's services: one on each NIC, either on all of them or on none.
    ///
    /// Everything that can be checked in advance is checked first: whether the NICs that the policy
    /// asks for are usable, and whether the limits fit. Only then are services made, on all NICs in
    /// parallel. If one fails, the others are destroyed again, and the error names what could not
    /// be destroyed. A service whose id was lost with the driver's answer is recognized by its
    /// contents. On a node with a [lock](Node::with_lock) the lock is held throughout, so that no
    /// other holder of that lock makes or destroys services in the meantime.
    ///
    /// Running this again after an interruption adopts what the interrupted run made: services with
    /// the same members, VNIs, traffic classes and limits. If the allocation fails, adopted
    /// services stay, and the error names them.
    ///
    /// Needs CAP_SYS_ADMIN. The services belong to the NICs and outlive this process: [keep](Grant)
    /// what is returned, or find them by their VNIs to [release](Node::release) them.
    ///
    /// ```
    /// # use cxi::Vni;
    /// # use cxi_mock::{Credentials, MockNode, NicConfig};
    /// # let mock = MockNode::with_nics(2, &NicConfig::new())?;
    /// # let node = cxi_job::Node::from_transports(mock.devices(&Credentials::root())?);
    /// use cxi_job::JobRequest;
    ///
    /// let request = JobRequest::builder().uid(1000).vni(Vni::new(4034)?).build()?;
    /// let grant = node.allocate(&request)?;
    /// assert_eq!(grant.env()?.vars()[1], ("SLINGSHOT_DEVICES", "cxi0,cxi1".to_owned()));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`AllocateError`] states for each NIC what went wrong, which services are in the way, what
    /// to do about it, and which services are left.
    #[doc(alias = "cxil_alloc_svc")]
    pub fn allocate(&self, request: &JobRequest) -> Result<Grant, AllocateError> {
        self.allocate_with(request, &NoLedger)
    }

    /// As [`allocate`](Self::allocate), with somebody who keeps account of what is made.
    pub(crate) fn allocate_with<L: Ledger>(
        &self,
        request: &JobRequest,
        ledger: &L,
    ) -> Result<Grant, L::Error> {
        let (nics, left_out) = self.choose(request)?;
        // With the lock held, no other process makes or destroys services from the first look to
        // the end.
        let _held = self.acquire().map_err(AllocateError::Locked)?;
        ledger.look()?;
        let own = |device, service: &Service| ledger.owns(device, service);
        let prepared =
            parallel::each(&nics, |nic| Prepared::new(nic, request, nics.len(), self.proc(), &own));
        let prepared = gather(prepared).map_err(|failures| AllocateError::of(failures, vec![]))?;
        ledger.begin(prepared.iter().filter_map(Prepared::begun).collect())?;
        let made = parallel::each(&prepared, |nic| {
            let made = nic.make(request)?;
            ledger.made(nic.device, made.service);
            Ok(made)
        });
        if made.iter().any(Result::is_err) {
            return Err(give_up(&prepared, made).into());
        }
        let services = prepared.into_iter().zip(made.into_iter().flatten());
        Ok(Grant {
            members: request.members(),
            services: services.map(|(nic, made)| nic.granted(made, request)).collect(),
            left_out,
        })
    }

    /// The NICs that the policy asks for, and those left out.
    fn choose(&self, request: &JobRequest) -> Result<(Vec<&NodeNic>, Vec<LeftOut>), AllocateError> {
        let wanted = |nic: &&NodeNic| request.nics().includes(nic);
        let (nics, others): (Vec<_>, Vec<_>) = self.nics().iter().partition(wanted);
        let mut failures: Vec<NicFailure> = nics
            .iter()
            .filter(|nic| !nic.is_usable())
            .map(|nic| NicFailure::new(nic.id(), Cause::Unusable(nic.problems().to_vec())))
            .collect();
        if let NicPolicy::Listed(listed) = request.nics() {
            let missing = listed.iter().filter(|id| self.nic(**id).is_none());
            failures.extend(missing.map(|id| NicFailure::new(*id, Cause::NotThere)));
        }
        if !failures.is_empty() {
            failures.sort_by_key(|failure| failure.device);
            return Err(AllocateError::of(failures, vec![]));
        }
        let least = match request.nics() {
            NicPolicy::AnyUsable(least) => *least,
            _ => 1,
        };
        let left_out = others
            .into_iter()
            .map(|nic| LeftOut { device: nic.id(), problems: nic.problems().to_vec() });
        let left_out: Vec<LeftOut> = left_out.collect();
        if nics.len() < least {
            return Err(AllocateError::TooFew { usable: nics.len(), wanted: least, left_out });
        }
        Ok((nics, left_out))
    }
}

/// All results, or all failures.
fn gather<T>(results: Vec<Result<T, NicFailure>>) -> Result<Vec<T>, Vec<NicFailure>> {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => good.push(value),
            Err(failure) => bad.push(failure),
        }
    }
    if bad.is_empty() { Ok(good) } else { Err(bad) }
}

/// Destroys what was made, and returns what is left.
fn give_up(
    prepared: &[Prepared<'_>],
    made: Vec<Result<Made, (NicFailure, Vec<LeftBehind>)>>,
) -> AllocateError {
    let (mut failures, mut left, mut undo) = (Vec::new(), Vec::new(), Vec::new());
    for (nic, result) in prepared.iter().zip(made) {
        match result {
            Ok(made) => undo.push((nic, made)),
            Err((failure, behind)) => {
                failures.push(failure);
                left.extend(behind);
            }
        }
    }
    let undone = parallel::each(&undo, |(nic, made)| nic.unmake(made));
    left.extend(undone.into_iter().flatten());
    left.sort_by_key(|left: &LeftBehind| left.device);
    AllocateError::of(failures, left)
}
