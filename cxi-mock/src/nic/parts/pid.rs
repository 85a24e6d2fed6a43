//! The PIDs of a VNI that are in use or reserved.

use std::collections::BTreeSet;

/// Number of PIDs that a table has room for.
pub(crate) const TABLE_PIDS: u32 = 512;

/// The PIDs of one receive profile, or of one VNI.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PidTable {
    /// In use or reserved.
    taken: BTreeSet<u32>,
    /// PIDs that only one LNI may use, until a domain of it uses them up.
    reserved: Vec<(u32, BTreeSet<u32>)>,
}

impl PidTable {
    /// Returns whether the PID is in use or reserved, or does not exist.
    pub(crate) fn is_taken(&self, pid: u32) -> bool {
        pid >= TABLE_PIDS || self.taken.contains(&pid)
    }

    fn reservation(&self, pid: u32, lni: u32) -> Option<usize> {
        let mut runs = self.reserved.iter();
        runs.position(|(of, left)| *of == lni && left.contains(&pid))
    }

    /// Returns whether the PID is reserved for this LNI.
    pub(crate) fn is_reserved_for(&self, pid: u32, lni: u32) -> bool {
        self.reservation(pid, lni).is_some()
    }

    pub(crate) fn take(&mut self, pid: u32) {
        self.taken.insert(pid);
    }

    /// Removes a PID from the LNI's reservation, and the reservation if it was the last one.
    /// Returns whether it was.
    pub(crate) fn use_up(&mut self, pid: u32, lni: u32) -> bool {
        let Some(index) = self.reservation(pid, lni) else { return false };
        let (_, left) = &mut self.reserved[index];
        left.remove(&pid);
        let last = left.is_empty();
        if last {
            self.reserved.remove(index);
        }
        last
    }

    pub(crate) fn give(&mut self, pid: u32) {
        self.taken.remove(&pid);
    }

    /// The first run of free PIDs at or above `from` and below `end`.
    pub(crate) fn free_run(&self, from: u32, count: u32, end: u32) -> Option<u32> {
        let mut start = from;
        for taken in self.taken.range(from..) {
            if *taken >= start.checked_add(count)? {
                break;
            }
            start = taken + 1;
        }
        (start.checked_add(count)? <= end).then_some(start)
    }

    pub(crate) fn reserve(&mut self, lni: u32, first: u32, count: u32) {
        let run = first..first + count;
        self.taken.extend(run.clone());
        self.reserved.push((lni, run.collect()));
    }

    /// Ends the reservations of an LNI.
    pub(crate) fn release(&mut self, lni: u32) {
        for (_, left) in self.reserved.extract_if(.., |(of, _)| *of == lni) {
            self.taken.retain(|pid| !left.contains(pid));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_start_behind_what_is_taken() {
        let mut pids = PidTable::default();
        pids.take(12);
        assert_eq!(pids.free_run(10, 2, 511), Some(10));
        assert_eq!(pids.free_run(10, 3, 511), Some(13));
        assert_eq!(pids.free_run(509, 3, 511), None);
        assert_eq!(pids.free_run(500, u32::MAX, 511), None);
    }

    #[test]
    fn long_runs_are_stepped_over() {
        let mut pids = PidTable::default();
        for pid in 0..130 {
            pids.take(pid);
        }
        assert_eq!(pids.free_run(0, 1, 511), Some(130));
        assert_eq!(pids.free_run(64, 2, 511), Some(130));
        for pid in 131..511 {
            pids.take(pid);
        }
        assert_eq!(pids.free_run(0, 1, 511), Some(130));
        assert_eq!(pids.free_run(131, 1, 511), None);
    }

    #[test]
    fn reservations_belong_to_an_lni() {
        let mut pids = PidTable::default();
        pids.reserve(1, 5, 2);
        pids.reserve(2, 7, 1);
        assert!(pids.is_reserved_for(6, 1) && !pids.is_reserved_for(7, 1));
        pids.release(1);
        assert!(!pids.is_taken(5) && pids.is_taken(7));
    }

    #[test]
    fn a_reserved_pid_is_used_up_once() {
        let mut pids = PidTable::default();
        pids.reserve(1, 63, 2);
        assert!(!pids.use_up(63, 1));
        pids.give(63);
        assert!(!pids.is_taken(63) && !pids.is_reserved_for(63, 1));
        assert!(!pids.use_up(64, 2));
        assert!(pids.use_up(64, 1));
        assert!(!pids.use_up(64, 1));
        assert_eq!(pids.reserved, []);
        pids.release(1);
        assert!(pids.is_taken(64));
    }
}
