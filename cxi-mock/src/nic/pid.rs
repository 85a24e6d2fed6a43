//! PIDs of a VNI: which are in use or reserved.

/// Room for the widest PID space.
const WORDS: usize = 8;
/// PIDs that a table has room for.
pub(crate) const TABLE_PIDS: u32 = 512;

/// The PIDs of one receive profile, or of one VNI.
#[derive(Clone, Debug, Default)]
pub(crate) struct PidTable {
    taken: [u64; WORDS],
    reserved: Vec<Reserved>,
}

/// PIDs that only one LNI may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reserved {
    lni: u32,
    first: u32,
    count: u32,
}

impl PidTable {
    pub(crate) fn is_taken(&self, pid: u32) -> bool {
        self.taken
            .get((pid / 64) as usize)
            .is_none_or(|word| word >> (pid % 64) & 1 == 1)
    }

    /// Whether the PID is reserved, and for that LNI.
    pub(crate) fn is_reserved_for(&self, pid: u32, lni: u32) -> bool {
        self.reserved
            .iter()
            .any(|run| run.lni == lni && (run.first..run.first + run.count).contains(&pid))
    }

    pub(crate) fn is_reserved(&self, pid: u32) -> bool {
        self.reserved
            .iter()
            .any(|run| (run.first..run.first + run.count).contains(&pid))
    }

    pub(crate) fn take(&mut self, pid: u32) {
        if let Some(word) = self.taken.get_mut((pid / 64) as usize) {
            *word |= 1 << (pid % 64);
        }
    }

    pub(crate) fn give(&mut self, pid: u32) {
        if let Some(word) = self.taken.get_mut((pid / 64) as usize) {
            *word &= !(1 << (pid % 64));
        }
    }

    /// The first run of free PIDs at or above `from` and below `end`.
    pub(crate) fn free_run(&self, from: u32, count: u32, end: u32) -> Option<u32> {
        let mut start = self.free_from(from);
        while start.checked_add(count)? <= end {
            match (start..start + count).rev().find(|pid| self.is_taken(*pid)) {
                None => return Some(start),
                Some(taken) => start = self.free_from(taken + 1),
            }
        }
        None
    }

    /// The first PID at or above `from` that is not taken; a word of the table at a time.
    fn free_from(&self, from: u32) -> u32 {
        let mut pid = from;
        while let Some(word) = self.taken.get((pid / 64) as usize) {
            let taken = (word >> (pid % 64)).trailing_ones();
            if pid % 64 + taken < 64 {
                return pid + taken;
            }
            pid = (pid / 64 + 1) * 64;
        }
        pid
    }

    pub(crate) fn reserve(&mut self, lni: u32, first: u32, count: u32) {
        for pid in first..first + count {
            self.take(pid);
        }
        self.reserved.push(Reserved { lni, first, count });
    }

    /// Ends the reservations of an LNI, and says how many there were.
    pub(crate) fn release(&mut self, lni: u32) -> u32 {
        let mut count = 0;
        let runs = std::mem::take(&mut self.reserved);
        for run in runs {
            if run.lni == lni {
                for pid in run.first..run.first + run.count {
                    self.give(pid);
                }
                count += 1;
            } else {
                self.reserved.push(run);
            }
        }
        count
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
    fn whole_words_are_stepped_over() {
        let mut pids = PidTable::default();
        (0..130).for_each(|pid| pids.take(pid));
        assert_eq!(pids.free_run(0, 1, 511), Some(130));
        assert_eq!(pids.free_run(64, 2, 511), Some(130));
        (131..511).for_each(|pid| pids.take(pid));
        assert_eq!(pids.free_run(0, 1, 511), Some(130));
        assert_eq!(pids.free_run(131, 1, 511), None);
    }

    #[test]
    fn reservations_belong_to_an_lni() {
        let mut pids = PidTable::default();
        pids.reserve(1, 5, 2);
        pids.reserve(2, 7, 1);
        assert!(pids.is_reserved_for(6, 1) && !pids.is_reserved_for(7, 1));
        assert_eq!(pids.release(1), 1);
        assert!(!pids.is_taken(5) && pids.is_taken(7));
    }
}
