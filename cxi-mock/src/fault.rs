//! Scripted faults at the device.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cxi_ioctl::{Fault, Opcode, Strike};

use crate::data_path::DataPath;
use crate::file_fault::{FileFault, Reading};

/// The faults of a NIC.
///
/// Each counts the commands that it applies to, in the order in which they were added; the first one
/// that hits a command decides what happens to it.
///
/// ```
/// use cxi_ioctl::{Errno, Opcode};
/// use cxi_mock::{Fault, Nic, NicConfig};
///
/// let nic = Nic::new(NicConfig::new())?;
/// // The service stays busy for three attempts.
/// nic.faults().inject(Fault::errno(Errno::EBUSY).on(Opcode::SVC_DESTROY).times(3));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Faults {
    /// `true` if there are any faults. Every command checks this, and most NICs have none.
    any: AtomicBool,
    script: Mutex<Script>,
    /// The data path, which a NIC that is unplugged must not use.
    data_path: Weak<DataPath>,
}

#[derive(Debug, Default)]
struct Script {
    faults: Vec<Fault>,
    files: Vec<FileFault>,
    delays: Vec<(Option<Opcode>, Duration)>,
    unplugged: bool,
    /// The node is off, and nothing plugs the NIC back in.
    off: bool,
}

impl Script {
    fn is_empty(&self) -> bool {
        self.faults.is_empty()
            && self.files.is_empty()
            && self.delays.is_empty()
            && !self.is_unplugged()
    }

    fn is_unplugged(&self) -> bool {
        self.unplugged || self.off
    }
}

impl Faults {
    pub(crate) fn of(data_path: &Arc<DataPath>) -> Self {
        Self { data_path: Arc::downgrade(data_path), ..Self::default() }
    }

    /// Adds a fault after the existing ones.
    pub fn inject(&self, fault: Fault) {
        self.change(|script| script.faults.push(fault));
    }

    /// Adds a fault of a file after the existing ones.
    pub fn inject_file(&self, fault: FileFault) {
        self.change(|script| script.files.push(fault));
    }

    /// Result of reading a file, by its path below the directory of the PCI function. Each
    /// call counts as a reading.
    #[must_use]
    pub fn reading(&self, path: &str) -> Reading {
        let Some(mut script) = self.script() else { return Reading::default() };
        let delay = script.files.iter().map(|fault| fault.delay(path)).sum();
        Reading { errno: script.files.iter_mut().find_map(|fault| fault.strike(path)), delay }
    }

    /// Returns whether a file or directory is not there.
    #[must_use]
    pub fn is_gone(&self, path: &str) -> bool {
        self.script().is_some_and(|script| script.files.iter().any(|fault| fault.hides(path)))
    }

    /// Delays one command, or every command. The model does not sleep; a front end does, for the
    /// time that [`delay_of`](Self::delay_of) returns.
    pub fn delay(&self, opcode: Option<Opcode>, delay: Duration) {
        self.change(|script| script.delays.push((opcode, delay)));
    }

    /// Returns the time by which a front end must delay a command: the sum of all delays that
    /// apply.
    #[must_use]
    pub fn delay_of(&self, opcode: Opcode) -> Option<Duration> {
        self.script()?
            .delays
            .iter()
            .filter(|(only, _)| only.is_none_or(|only| only == opcode))
            .map(|(_, delay)| *delay)
            .reduce(Duration::saturating_add)
    }

    /// Removes the NIC: commands and opening fail with EIO until it is [put back in](Self::plug).
    pub fn unplug(&self) {
        self.change(|script| script.unplugged = true);
    }

    /// Plugs the NIC back in, unchanged.
    pub fn plug(&self) {
        self.change(|script| script.unplugged = false);
    }

    /// Removes the NIC for good.
    pub(crate) fn power_off(&self) {
        self.change(|script| script.off = true);
    }

    /// Removes all faults and delays, and puts the NIC back in.
    pub fn clear(&self) {
        self.change(|script| {
            *script = Script { off: script.off, ..Script::default() };
        });
    }

    /// Returns whether the NIC has been removed ([`Self::unplug`]).
    #[must_use]
    pub fn is_unplugged(&self) -> bool {
        self.script().is_some_and(|script| script.is_unplugged())
    }

    pub(crate) fn strike(&self, opcode: Opcode, command: &[u8]) -> Option<Strike> {
        self.script()?.faults.iter_mut().find_map(|fault| fault.strike(opcode, command))
    }

    /// Returns the script, if there is one.
    fn script(&self) -> Option<MutexGuard<'_, Script>> {
        self.any.load(Ordering::Acquire).then(|| self.lock())
    }

    fn change(&self, change: impl FnOnce(&mut Script)) {
        let mut script = self.lock();
        change(&mut script);
        self.any.store(!script.is_empty(), Ordering::Release);
        // The lock is still held, so that the data path sees changes in their order.
        if let Some(data_path) = self.data_path.upgrade() {
            data_path.set_plugged(!script.is_unplugged());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use cxi_ioctl::Errno;

    use super::*;

    fn struck(faults: &Faults, opcode: Opcode) -> Option<Errno> {
        faults.strike(opcode, &[]).map(|strike| strike.errno)
    }

    #[test]
    fn faults_come_and_go() {
        let faults = Faults::default();
        assert!(faults.script().is_none());
        faults.unplug();
        faults.inject(Fault::errno(Errno::EIO));
        assert!(faults.is_unplugged());
        faults.plug();
        assert!(!faults.is_unplugged());
        assert_eq!(struck(&faults, Opcode::SVC_GET), Some(Errno::EIO));
        faults.clear();
        assert_eq!(struck(&faults, Opcode::SVC_GET), None);
        assert!(faults.script().is_none());
    }

    #[test]
    fn delays_add_up() {
        let faults = Faults::default();
        faults.delay(None, Duration::from_millis(1));
        faults.delay(Some(Opcode::SVC_ALLOC), Duration::from_millis(2));
        assert_eq!(faults.delay_of(Opcode::SVC_ALLOC), Some(Duration::from_millis(3)));
        assert_eq!(faults.delay_of(Opcode::SVC_GET), Some(Duration::from_millis(1)));
    }
}
