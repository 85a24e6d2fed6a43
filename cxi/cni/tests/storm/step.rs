//! Things that may happen to a node, as plain data that a seed makes: any part of it can be left out.

use cxi_ioctl::Errno;
use cxi_test_kit::Random;

/// The controller's jobs.
pub(crate) const JOBS: u32 = 3;
/// Jobs whose scheduler has no controller: their prologs say what they get.
pub(crate) const OWN_JOBS: [u32; 2] = [11, 12];
/// The pods.
pub(crate) const PODS: usize = 2;
/// The first VNI of the pool, which has few, so that they are used again soon.
pub(crate) const FIRST: u16 = 1024;
pub(crate) const POOL: u16 = 4;
/// The VNI of the first job without a controller.
pub(crate) const OWN_VNI: u16 = 1100;

/// One thing that happens, and what goes wrong meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) act: Act,
    pub(crate) mishap: Option<Mishap>,
}

/// Act of somebody.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// The controller decides.
    Reserve(u32),
    /// A job starts on the node.
    Prolog {
        job: u32,
        size: u32,
        replace: bool,
    },
    /// It ends on the node.
    Epilog(u32),
    /// The controller hears that it has ended.
    Release(u32),
    /// The controller ends what the scheduler has lost.
    Sweep,
    /// A health check or a timer.
    Clean {
        foreign: bool,
        none_live: bool,
        dry_run: bool,
    },
    /// Another scheduler, or a plugin, makes a service without this library.
    ForeignMake {
        nic: u32,
        uid: u32,
        vni: u16,
        looks: Looks,
    },
    ForeignDestroy(usize),
    /// An administrator makes a service on all NICs.
    AdminMake {
        uid: u32,
        vni: u16,
    },
    AdminDestroy(usize),
    /// An administrator names a service of somebody else.
    AdminOrders(usize),
    PodAdd(usize),
    PodDel(usize),
    /// All services are gone; the records in `/run` too, or they are of another boot.
    Reboot {
        keeps_records: bool,
    },
    CopyPool,
    RestorePool,
    LosePool,
    /// A job's record is damaged.
    BreakRecord(u32, Damage),
    /// A record of somebody else's service is damaged.
    BreakServiceRecord(usize, Damage),
    LoseRecords,
}

/// Looks of a service of others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Looks {
    Unlimited,
    Small,
    /// Exactly as a running job's service with this user and VNI.
    Twin,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Damage {
    Empty,
    CutOff,
    Garbage,
}

#[derive(Clone, Debug)]
pub(crate) enum Mishap {
    /// Its process is killed before this command to a NIC.
    KilledAtCommand(u32),
    /// Its process is killed before this change of a file.
    KilledAtChange(u32),
    /// From this change of a file on, the disk is full.
    DiskFull(u32),
    /// The driver fails this command, or only its answer is lost.
    Fails { command: u32, errno: Errno, carried_out: bool },
    /// Before this command, somebody else acts.
    Meanwhile(u32, Act),
}

/// Choices in a sequence, which follow from a seed.
pub(crate) struct Dice(Random);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    fn index(&mut self) -> usize {
        self.0.below(1 << 16)
    }

    fn one_in(&mut self, sides: u32) -> bool {
        self.0.below(sides) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index() % all.len()]
    }

    fn job(&mut self) -> u32 {
        if self.one_in(4) { self.of(&OWN_JOBS) } else { 1 + self.0.below(JOBS) }
    }

    fn uid(&mut self) -> u32 {
        1000 + self.0.below(2)
    }

    /// Often one of the pool's.
    fn vni(&mut self) -> u16 {
        match self.0.below(8) {
            0 => 3000,
            1 => OWN_VNI + self.0.below(2),
            _ => FIRST + self.0.below(POOL),
        }
    }

    fn damage(&mut self) -> Damage {
        self.of(&[Damage::Empty, Damage::CutOff, Damage::Garbage])
    }

    fn act(&mut self) -> Act {
        match self.0.below(60) {
            0..=9 => Act::Reserve(1 + self.0.below(JOBS)),
            10..=23 => {
                let size = 1 + u32::from(self.one_in(8));
                Act::Prolog { job: self.job(), size, replace: self.one_in(10) }
            }
            29..=31 => Act::Release(1 + self.0.below(JOBS)),
            32 => Act::Sweep,
            33..=37 => Act::Clean {
                foreign: self.one_in(8),
                none_live: self.one_in(12),
                dry_run: self.one_in(8),
            },
            38..=42 => Act::ForeignMake {
                nic: self.0.below(2),
                uid: self.uid(),
                vni: self.vni(),
                looks: self.of(&[Looks::Unlimited, Looks::Small, Looks::Twin, Looks::Twin]),
            },
            43 | 44 => Act::ForeignDestroy(self.index()),
            45 | 46 => Act::AdminMake { uid: self.uid(), vni: self.vni() },
            47 => Act::AdminDestroy(self.index()),
            48 => Act::AdminOrders(self.index()),
            49 | 50 => Act::PodAdd(self.index() % PODS),
            51 => Act::PodDel(self.index() % PODS),
            52 => Act::Reboot { keeps_records: self.one_in(2) },
            53 => Act::CopyPool,
            54 => Act::RestorePool,
            55 => Act::LosePool,
            56 => Act::BreakRecord(self.job(), self.damage()),
            57 => Act::BreakServiceRecord(self.index(), self.damage()),
            58 => Act::LoseRecords,
            _ => Act::Epilog(self.job()),
        }
    }

    fn mishap(&mut self) -> Option<Mishap> {
        let errnos = [Errno::ENOSPC, Errno::EAGAIN, Errno::EBUSY, Errno::EFAULT, Errno::EIO];
        Some(match self.0.below(12) {
            0 | 1 => Mishap::KilledAtCommand(self.0.below(40)),
            2 => Mishap::KilledAtChange(self.0.below(16)),
            3 => Mishap::DiskFull(self.0.below(16)),
            4 => {
                // Of what a driver has done, it can only fail to say so.
                let carried_out = self.one_in(2);
                let errno = if carried_out { Errno::EFAULT } else { self.of(&errnos) };
                Mishap::Fails { command: self.0.below(40), errno, carried_out }
            }
            5 => Mishap::Meanwhile(self.0.below(40), self.act()),
            _ => return None,
        })
    }

    pub(crate) fn steps(&mut self) -> Vec<Step> {
        let count = 4 + self.0.below(12);
        (0..count).map(|_| Step { act: self.act(), mishap: self.mishap() }).collect()
    }
}
