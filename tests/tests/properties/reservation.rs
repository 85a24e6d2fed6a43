//! What services hold back of the NIC, in the reference model.

/// Device totals, in the order PTE, TXQ, TGQ, EQ, CT, LE (each processing element), TLE, AC.
pub(crate) const TOTALS: [u16; 8] = [2048, 1024, 512, 2047, 2047, 16384, 2048, 1022];
pub(crate) const LE: usize = 5;
pub(crate) const TLE: usize = 6;

/// Smallest TLE reservation of a service that has one.
const LEAST_TLES: u16 = 8;

/// Why SVC_ALLOC failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FailInfo {
    pub rsrc_avail: [u16; 8],
    pub no_le_pools: bool,
    pub no_tle_pools: bool,
}

/// What one service holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    /// `(max, res)` per resource type, as adjusted.
    pub limits: [(u16, u16); 8],
    pub le_pool: Option<u32>,
    pub tle_pool: Option<u32>,
}

/// What is held on the device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reservations {
    pub reserved: [u16; 8],
    le_pools: [bool; 16],
    tle_pools: [bool; 4],
}

impl Reservations {
    /// The device as loaded: the default service has TLEs and pool 0 of both kinds.
    pub(crate) fn loaded() -> (Self, Reservation) {
        let mut device = Self::default();
        let mut limits = TOTALS.map(|total| (total, 0));
        limits[TLE] = (512, 512);
        device.reserved[TLE] = 512;
        device.le_pools[0] = true;
        device.tle_pools[0] = true;
        let default = Reservation {
            limits,
            le_pool: None,
            tle_pool: Some(0),
        };
        (device, default)
    }

    /// Takes what a new service asks for; `None` is a service without limits.
    pub(crate) fn take(&mut self, asked: Option<[(u16, u16); 8]>) -> Result<Reservation, FailInfo> {
        let mut limits = asked.unwrap_or_else(|| {
            let mut all = TOTALS.map(|total| (total, 0));
            all[TLE] = (LEAST_TLES, LEAST_TLES);
            all
        });
        let mut info = FailInfo::default();
        for (kind, (max, res)) in limits.iter_mut().enumerate() {
            if (*max, *res) == (0, 0) {
                continue;
            }
            if kind == TLE {
                *res = LEAST_TLES.max(*res);
                *max = *res;
                continue;
            }
            info.rsrc_avail[kind] = TOTALS[kind] - self.reserved[kind];
            if *res > info.rsrc_avail[kind] {
                return Err(info);
            }
        }
        let le_pool = if limits[LE].1 > 0 {
            let free = lowest_free(&self.le_pools);
            info.no_le_pools = free.is_none();
            Some(free.ok_or(info)?)
        } else {
            None
        };
        let tle_pool = if limits[TLE].1 > 0 {
            if limits[TLE].1 > TOTALS[TLE] - self.reserved[TLE] {
                return Err(info);
            }
            let free = lowest_free(&self.tle_pools);
            info.no_tle_pools = free.is_none();
            Some(free.ok_or(info)?)
        } else {
            None
        };
        for (total, (_, res)) in self.reserved.iter_mut().zip(limits) {
            *total += res;
        }
        self.mark(le_pool, tle_pool, true);
        Ok(Reservation {
            limits,
            le_pool,
            tle_pool,
        })
    }

    /// Gives everything back.
    pub(crate) fn give_back(&mut self, held: &Reservation) {
        for (total, (_, res)) in self.reserved.iter_mut().zip(held.limits) {
            *total -= res;
        }
        self.mark(held.le_pool, held.tle_pool, false);
    }

    pub(crate) fn tle_pools_used(&self) -> usize {
        self.tle_pools.iter().filter(|used| **used).count()
    }

    fn mark(&mut self, le_pool: Option<u32>, tle_pool: Option<u32>, used: bool) {
        if let Some(pool) = le_pool {
            self.le_pools[pool as usize] = used;
        }
        if let Some(pool) = tle_pool {
            self.tle_pools[pool as usize] = used;
        }
    }
}

fn lowest_free(pools: &[bool]) -> Option<u32> {
    let index = pools.iter().position(|used| !used)?;
    u32::try_from(index).ok()
}
