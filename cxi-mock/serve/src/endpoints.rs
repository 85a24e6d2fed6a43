//! Processes by the address at which they receive.

use std::collections::HashMap;
use std::sync::Arc;

use nix::unistd::Pid;
use parking_lot::Mutex;

use super::procfs;

/// NIC address, VNI and PID.
type Address = (u32, u32, u32);

/// Number of addresses that are remembered: a node may run for months, and all its VNIs be used in
/// turn.
const MOST: usize = 1 << 16;

/// The processes that have made domains. They stay after their end, because operations are recorded
/// later than they happen. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Endpoints(Arc<Mutex<HashMap<Address, String>>>);

impl Endpoints {
    /// A thread has made a domain.
    pub(crate) fn made(&self, address: Address, thread: Pid) {
        let Some(head) = procfs::head(thread) else { return };
        if let (Some(name), Some(process)) = (head.value("Name"), procfs::process(&head)) {
            let mut processes = self.0.lock();
            if processes.len() >= MOST {
                processes.clear();
            }
            processes.insert(address, format!("{name} ({process})"));
        }
    }

    /// Name and number of the process.
    pub(crate) fn process(&self, nid: u32, vni: u16, pid: u16) -> Option<String> {
        self.0.lock().get(&(nid, vni.into(), pid.into())).cloned()
    }
}
