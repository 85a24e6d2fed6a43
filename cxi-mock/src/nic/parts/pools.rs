//! LE and TLE pools of the hardware.

use crate::data_path::ELEMENTS;

/// LE pools of each processing element; all services without a reservation share pool 0.
const LE_POOLS: u32 = 16;
/// TLE pools; the default service has pool 0.
const TLE_POOLS: u32 = 4;

/// Pools that are taken, and those that are free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Pools {
    /// For each element, a bit for each pool.
    le: [u32; ELEMENTS as usize],
    tle: u32,
}

/// LE pools that a group has, one on each element.
pub(crate) type LePools = [u8; ELEMENTS as usize];

impl Pools {
    /// Takes pool 0 on each element.
    pub(crate) fn take_default_le(&mut self) -> LePools {
        for taken in &mut self.le {
            *taken |= 1;
        }
        LePools::default()
    }

    /// Takes a pool on each element, or none at all.
    pub(crate) fn take_le(&mut self) -> Option<LePools> {
        let mut pools = LePools::default();
        for (pool, taken) in pools.iter_mut().zip(&self.le) {
            *pool = lowest(*taken, 1, LE_POOLS)?;
        }
        for (pool, taken) in pools.iter().zip(&mut self.le) {
            *taken |= 1 << pool;
        }
        Some(pools)
    }

    pub(crate) fn give_le(&mut self, pools: LePools) {
        for (pool, taken) in pools.iter().zip(&mut self.le) {
            *taken &= !(1 << pool);
        }
    }

    pub(crate) fn take_default_tle(&mut self) -> u8 {
        self.tle |= 1;
        0
    }

    pub(crate) fn take_tle(&mut self) -> Option<u8> {
        let pool = lowest(self.tle, 1, TLE_POOLS)?;
        self.tle |= 1 << pool;
        Some(pool)
    }

    pub(crate) fn give_tle(&mut self, pool: u8) {
        self.tle &= !(1 << pool);
    }

    /// Takes these pools, unless one of them is taken or does not exist.
    pub(crate) fn claim_le(&mut self, pools: LePools) -> bool {
        let places = pools.iter().zip(&self.le);
        let free =
            |(pool, taken): (&u8, &u32)| u32::from(*pool) < LE_POOLS && taken >> pool & 1 == 0;
        if !places.into_iter().all(free) {
            return false;
        }
        for (pool, taken) in pools.iter().zip(&mut self.le) {
            *taken |= 1 << pool;
        }
        true
    }

    /// Takes this pool, unless it is taken or does not exist.
    pub(crate) fn claim_tle(&mut self, pool: u8) -> bool {
        let free = u32::from(pool) < TLE_POOLS && self.tle >> pool & 1 == 0;
        if free {
            self.tle |= 1 << pool;
        }
        free
    }

    /// Marks the pools as taken that are taken in a snapshot.
    pub(crate) fn mark(&mut self, more: &Self) {
        for (taken, more) in self.le.iter_mut().zip(more.le) {
            *taken |= more & ((1 << LE_POOLS) - 1);
        }
        self.tle |= more.tle & ((1 << TLE_POOLS) - 1);
    }

    pub(crate) fn le_used(&self) -> [u32; ELEMENTS as usize] {
        self.le.map(u32::count_ones)
    }

    pub(crate) fn tle_used(&self) -> u32 {
        self.tle.count_ones()
    }
}

fn lowest(taken: u32, first: u8, count: u32) -> Option<u8> {
    let free = !taken >> first << first;
    let pool = free.trailing_zeros();
    (pool < count).then(|| u8::try_from(pool).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_zero_is_not_for_reservations() {
        let mut pools = Pools::default();
        assert_eq!(pools.take_le(), Some([1; 4]));
        for _ in 0..14 {
            assert!(pools.take_le().is_some());
        }
        assert_eq!(pools.take_le(), None);
        pools.give_le([7; 4]);
        assert_eq!(pools.take_le(), Some([7; 4]));
        assert_eq!(
            [pools.take_tle(), pools.take_tle(), pools.take_tle()],
            [Some(1), Some(2), Some(3)]
        );
        assert_eq!(pools.take_tle(), None);
    }

    #[test]
    fn pools_are_claimed_once_and_only_those_there_are() {
        let mut pools = Pools::default();
        assert!(pools.claim_le([3, 4, 5, 15]));
        assert_eq!(pools.le, [1 << 3, 1 << 4, 1 << 5, 1 << 15]);
        // One that is taken, or is not there, and nothing is taken.
        for refused in [[3, 1, 1, 1], [1, 1, 1, 15], [1, 16, 1, 1]] {
            assert!(!pools.claim_le(refused), "{refused:?}");
        }
        assert!(pools.claim_le([4, 3, 6, 14]));
        assert!(pools.claim_tle(3) && !pools.claim_tle(3) && !pools.claim_tle(4));
        assert!(pools.claim_tle(2));
        assert_eq!(pools.tle_used(), 2);
        assert_eq!(pools.take_tle(), Some(1));
    }

    #[test]
    fn pools_that_are_marked_are_taken_too() {
        let mut pools = Pools::default();
        pools.take_default_le();
        pools.take_default_tle();
        let (le, tle) = ([2, 4, 0x1_0000, 0], 0x14);
        pools.mark(&Pools { le, tle });
        assert_eq!((pools.le, pools.tle), ([3, 5, 1, 1], 5));
    }
}
