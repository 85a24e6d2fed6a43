//! PIDs of a VNI: which are in use or reserved.

/// Room for the widest PID space.
const WORDS: usize = 8;
/// PIDs that a table has room for.
pub(crate) const TABLE_PIDS: u32 = 512;

/// The PIDs of one receive profile, or of one VNI.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PidTable {
    taken: [u64; WORDS],
    reserved: Vec<Reserved>,
}

/// PIDs that only one LNI may use, until a domain of it uses them up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reserved {
    lni: u32,
    left: [u64; WORDS],
}

impl Reserved {
    fn pids(&self) -> impl Iterator<Item = u32> + use<> {
        let left = self.left;
        (0..TABLE_PIDS).filter(move |pid| has(&left, *pid))
    }
}

fn has(words: &[u64; WORDS], pid: u32) -> bool {
    let word = words.get((pid / 64) as usize);
    word.is_some_and(|word| word >> (pid % 64) & 1 == 1)
}

fn set(words: &mut [u64; WORDS], pid: u32, to: bool) {
    if let Some(word) = words.get_mut((pid / 64) as usize) {
        *word = *word & !(1 << (pid % 64)) | u64::from(to) << (pid % 64);
    }
}

/// What a domain took of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Used {
    /// Nothing: the PID was not reserved for the LNI.
    Nothing,
    /// A PID, and others are left.
    Pid,
    /// The last PID: the reservation is gone.
    Last,
}

impl PidTable {
    /// Whether the PID is in use or reserved; one that does not exist is.
    pub(crate) fn is_taken(&self, pid: u32) -> bool {
        pid >= TABLE_PIDS || has(&self.taken, pid)
    }

    /// Whether the PID is reserved for that LNI.
    pub(crate) fn is_reserved_for(&self, pid: u32, lni: u32) -> bool {
        let mut runs = self.reserved.iter();
        runs.any(|run| run.lni == lni && has(&run.left, pid))
    }

    /// Takes a PID, out of the LNI's reservation if it has one.
    pub(crate) fn take(&mut self, pid: u32, lni: u32) -> Used {
        set(&mut self.taken, pid, true);
        let reserves = |run: &Reserved| run.lni == lni && has(&run.left, pid);
        let Some(index) = self.reserved.iter().position(reserves) else {
            return Used::Nothing;
        };
        let run = &mut self.reserved[index];
        set(&mut run.left, pid, false);
        if run.left == [0; WORDS] {
            self.reserved.remove(index);
            return Used::Last;
        }
        Used::Pid
    }

    pub(crate) fn give(&mut self, pid: u32) {
        set(&mut self.taken, pid, false);
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
        let mut left = [0; WORDS];
        for pid in first..first + count {
            set(&mut self.taken, pid, true);
            set(&mut left, pid, true);
        }
        self.reserved.push(Reserved { lni, left });
    }

    /// Ends the reservations of an LNI.
    pub(crate) fn release(&mut self, lni: u32) {
        let (ended, kept) = std::mem::take(&mut self.reserved)
            .into_iter()
            .partition::<Vec<_>, _>(|run| run.lni == lni);
        self.reserved = kept;
        for pid in ended.iter().flat_map(Reserved::pids) {
            self.give(pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_start_behind_what_is_taken() {
        let mut pids = PidTable::default();
        pids.take(12, 1);
        assert_eq!(pids.free_run(10, 2, 511), Some(10));
        assert_eq!(pids.free_run(10, 3, 511), Some(13));
        assert_eq!(pids.free_run(509, 3, 511), None);
        assert_eq!(pids.free_run(500, u32::MAX, 511), None);
    }

    #[test]
    fn whole_words_are_stepped_over() {
        let mut pids = PidTable::default();
        for pid in 0..130 {
            pids.take(pid, 1);
        }
        assert_eq!(pids.free_run(0, 1, 511), Some(130));
        assert_eq!(pids.free_run(64, 2, 511), Some(130));
        for pid in 131..511 {
            pids.take(pid, 1);
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
        assert_eq!(pids.take(63, 1), Used::Pid);
        pids.give(63);
        assert!(!pids.is_taken(63) && !pids.is_reserved_for(63, 1));
        assert_eq!(pids.take(64, 1), Used::Last);
        assert_eq!(pids.take(65, 1), Used::Nothing);
        assert_eq!(pids.reserved, []);
        pids.release(1);
        assert!(pids.is_taken(64));
    }
}
