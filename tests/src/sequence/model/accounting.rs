//! Reservations of services on the NIC, and their use.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::service::{Limits, SvcFailInfo};
use zerocopy::FromZeros;

use super::{Model, Service};

/// Device totals, in the order PTE, TXQ, TGQ, EQ, CT, LE (each processing element), TLE, AC.
pub const TOTALS: [u16; 8] = [2048, 1024, 512, 2047, 2047, 16384, 2048, 1022];
pub const PTE: usize = 0;
pub const TXQ: usize = 1;
pub const TGQ: usize = 2;
pub const EQ: usize = 3;
pub const CT: usize = 4;
pub const LE: usize = 5;
pub const TLE: usize = 6;
pub const AC: usize = 7;

/// Not applicable, in a usage figure.
const NOT_APPLICABLE: u16 = 0xFFFF;

/// Smallest TLE reservation of a service that has one.
const LEAST_TLES: u16 = 8;

/// Reservation of one service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Per resource type, as adjusted.
    pub limits: [Limits; 8],
    pub le_pool: Option<u32>,
    pub tle_pool: Option<u32>,
}

/// Reservations on the device.
#[derive(Clone, Debug, Default)]
pub struct Reservations {
    pub reserved: [u16; 8],
    /// Units in use beyond a reservation.
    pub shared_use: [u16; 8],
    le_pools: [bool; 16],
    tle_pools: [bool; 4],
}

impl Reservations {
    /// The device as loaded: the default service has TLEs and pool 0 of both kinds.
    pub fn loaded() -> (Self, Reservation) {
        let mut device = Self::default();
        let mut limits = everything();
        limits[TLE] = exactly(512);
        device.reserved[TLE] = 512;
        device.le_pools[0] = true;
        device.tle_pools[0] = true;
        let default = Reservation { limits, le_pool: None, tle_pool: Some(0) };
        (device, default)
    }

    /// Reserves what a new service asks for; `None` is a service without limits.
    pub fn take(&mut self, asked: Option<[Limits; 8]>) -> Result<Reservation, SvcFailInfo> {
        let mut limits = asked.unwrap_or_else(everything);
        if asked.is_none() {
            limits[TLE] = exactly(LEAST_TLES);
        }
        let mut info = SvcFailInfo::new_zeroed();
        for (kind, limit) in limits.iter_mut().enumerate() {
            if (limit.max, limit.res) == (0, 0) {
                continue;
            }
            if kind == TLE {
                *limit = exactly(LEAST_TLES.max(limit.res));
                continue;
            }
            info.rsrc_avail[kind] = TOTALS[kind] - self.reserved[kind];
            if limit.res > info.rsrc_avail[kind] {
                return Err(info);
            }
        }
        let le_pool = if limits[LE].res > 0 {
            let free = lowest_pool(&self.le_pools);
            info.no_le_pools = free.is_none().into();
            Some(free.ok_or(info)?)
        } else {
            None
        };
        let tle_pool = if limits[TLE].res > 0 {
            if limits[TLE].res > TOTALS[TLE] - self.reserved[TLE] {
                return Err(info);
            }
            let free = lowest_pool(&self.tle_pools);
            info.no_tle_pools = free.is_none().into();
            Some(free.ok_or(info)?)
        } else {
            None
        };
        for (total, limit) in self.reserved.iter_mut().zip(limits) {
            *total += limit.res;
        }
        self.mark(le_pool, tle_pool, true);
        Ok(Reservation { limits, le_pool, tle_pool })
    }

    /// Returns everything.
    pub fn give_back(&mut self, held: &Reservation) {
        for (total, limit) in self.reserved.iter_mut().zip(held.limits) {
            *total -= limit.res;
        }
        self.mark(held.le_pool, held.tle_pool, false);
    }

    pub fn tle_pools_used(&self) -> usize {
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

/// All of the device, and nothing reserved.
fn everything() -> [Limits; 8] {
    TOTALS.map(|max| Limits { max, res: 0 })
}

fn exactly(units: u16) -> Limits {
    Limits { max: units, res: units }
}

fn lowest_pool(pools: &[bool]) -> Option<u32> {
    let index = pools.iter().position(|used| !used)?;
    u32::try_from(index).ok()
}

impl Model {
    /// Takes one unit for the service of an LNI.
    pub(super) fn charge(&mut self, svc_id: u32, kind: usize) -> Result<(), Errno> {
        let service = self.services.get_mut(&svc_id).ok_or(Errno::EINVAL)?;
        let Limits { max, res } = service.held.limits[kind];
        if (max, res) == (0, 0) {
            return Err(Errno::EBADR);
        }
        let in_use = &mut service.in_use[kind];
        if *in_use >= res {
            let shared_use = &mut self.device.shared_use[kind];
            if *in_use >= max || *shared_use >= TOTALS[kind] {
                return Err(Errno::ENOSPC);
            }
            *shared_use += 1;
        }
        *in_use += 1;
        Ok(())
    }

    /// Returns one unit.
    pub(super) fn return_unit(&mut self, svc_id: u32, kind: usize) {
        let Some(service) = self.services.get_mut(&svc_id) else {
            panic!("service {svc_id} is gone, and has units in use");
        };
        if service.in_use[kind] > service.held.limits[kind].res {
            self.device.shared_use[kind] -= 1;
        }
        service.in_use[kind] -= 1;
    }

    /// Takes one unit and the lowest free number.
    pub(super) fn take_numbered(&mut self, svc_id: u32, kind: usize) -> Result<u32, Errno> {
        self.charge(svc_id, kind)?;
        self.numbers.take(kind).ok_or_else(|| {
            self.return_unit(svc_id, kind);
            Errno::ENOSPC
        })
    }

    /// Returns one unit and its number.
    pub(super) fn return_numbered(&mut self, svc_id: u32, kind: usize, number: u32) {
        self.numbers.give_back(kind, number);
        self.return_unit(svc_id, kind);
    }

    /// The use that the driver reports for a service.
    pub fn usage(&self, service: &Service) -> [u16; 8] {
        let counts_hardware = self.release >= cxi_ioctl::DriverRelease::Main2026_07;
        let mut usage = service.in_use;
        usage[LE] = match service.held.le_pool {
            Some(pool) if counts_hardware => {
                let largest = self.les_in_use.iter().map(|pools| pools[pool as usize]);
                largest.max().unwrap_or(0)
            }
            None if counts_hardware => NOT_APPLICABLE,
            _ => 0,
        };
        usage[TLE] = match service.held.tle_pool {
            Some(pool) => self.tles_in_use[pool as usize],
            None if counts_hardware => NOT_APPLICABLE,
            None => self.tles_in_use[0],
        };
        usage
    }
}
