//! Command queues: commands are posted one by one, or in batches that share a doorbell.

use cxi::lni::{Domain, Tgq, Txq};
use cxi::{DeviceInfo, Mapping};
use cxi_hw::{CState, Class, CommandByte, CtOp};

use crate::kind::{Target, Transmit, Triggered};
use crate::ring::Ring;
use crate::{Address, Result};

/// A queue for operations on other processes.
pub type TransmitQueue = Queue<Transmit>;
/// A queue for counters and for operations that wait for them.
pub type TriggeredQueue = Queue<Triggered>;
/// A queue for the lists of this process's PtlTEs.
pub type TargetQueue = Queue<Target>;

/// A command queue. Commands are read by the NIC in the order in which they were posted.
#[derive(Debug)]
pub struct Queue<K> {
    pub(crate) kind: K,
    handle: Handle,
    ring: Ring,
    pub(crate) pid_bits: u32,
}

/// A command that queues of a kind take.
pub trait Command<K>: Post<K> {}

impl<K, C: Post<K>> Command<K> for C {}

pub(crate) use sealed::Post;

mod sealed {
    use super::Queue;
    use crate::Result;

    /// Encodes a command and writes it into the ring.
    pub trait Post<K> {
        fn write(&self, queue: &mut Queue<K>) -> Result<()>;
    }
}

/// A queue of the driver, for its windows.
#[derive(Debug)]
enum Handle {
    Txq(Txq),
    Tgq(Tgq),
}

impl Handle {
    /// The command slots and the page of the write pointer.
    fn windows(&self) -> cxi::Result<(&Mapping, &Mapping)> {
        Ok(match self {
            Self::Txq(queue) => (queue.commands()?, queue.write_pointer()?),
            Self::Tgq(queue) => (queue.commands()?, queue.write_pointer()?),
        })
    }
}

/// A command without effect that takes one slot.
const NOOP: CommandByte = CommandByte(0);
/// A command without effect that takes a unit: queues for triggered commands have no shorter ones.
const COUNTER_NOOP: CommandByte = CommandByte::new(Class::CT, 1, CtOp::NOOP.0);

impl TransmitQueue {
    /// Takes over a new queue. Its operations come from the process of a domain.
    ///
    /// # Errors
    ///
    /// The windows of the queue cannot be mapped.
    pub fn new(queue: Txq, info: &DeviceInfo, domain: &Domain) -> Result<Self> {
        let kind = Transmit {
            initiator: Address::new(info, domain).match_id(info.pid_bits),
            state: CState::default(),
        };
        let units = queue.slots();
        Self::with(kind, Handle::Txq(queue), units, NOOP, info)
    }
}

impl TriggeredQueue {
    /// Takes over a new queue that was requested with
    /// [`TxqOptions::triggered`](cxi::lni::TxqOptions::triggered).
    ///
    /// # Errors
    ///
    /// The windows of the queue cannot be mapped.
    pub fn new(queue: Txq, info: &DeviceInfo, domain: &Domain) -> Result<Self> {
        let kind = Triggered { initiator: Address::new(info, domain).match_id(info.pid_bits) };
        let units = queue.slots();
        Self::with(kind, Handle::Txq(queue), units, COUNTER_NOOP, info)
    }
}

impl TargetQueue {
    /// Takes over a new queue.
    ///
    /// # Errors
    ///
    /// The windows of the queue cannot be mapped.
    pub fn new(queue: Tgq, info: &DeviceInfo) -> Result<Self> {
        let units = queue.slots();
        Self::with(Target(()), Handle::Tgq(queue), units, NOOP, info)
    }
}

impl<K> Queue<K> {
    fn with(
        kind: K,
        handle: Handle,
        units: u32,
        filler: CommandByte,
        info: &DeviceInfo,
    ) -> Result<Self> {
        let ring = Ring::new(handle.windows()?.0, units, filler)?;
        Ok(Self { kind, handle, ring, pid_bits: info.pid_bits })
    }

    /// Posts a command and rings the doorbell.
    ///
    /// # Errors
    /// [`Error::Full`](crate::Error::Full): the command can be posted later.
    /// [`Error::Stopped`](crate::Error::Stopped), which is noticed only when the queue seems full.
    /// The errors of the command.
    pub fn post(&mut self, command: &impl Command<K>) -> Result<()> {
        self.batch().push(command)
    }

    /// Begins a batch: its commands share one doorbell, which is rung when the batch is dropped.
    ///
    /// ```no_run
    /// # use cxi_data::{Dma, Result, TransmitQueue};
    /// # fn put_all(queue: &mut TransmitQueue, puts: &[Dma<'_>]) -> Result<()> {
    /// let mut batch = queue.batch();
    /// for put in puts {
    ///     batch.push(put)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn batch(&mut self) -> Batch<'_, K> {
        Batch { queue: self }
    }

    /// Returns whether the NIC has read all commands. It need not have executed the last ones.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`](crate::Error::Stopped) if the NIC has refused a command.
    pub fn is_idle(&mut self) -> Result<bool> {
        self.ring.is_idle(self.handle.windows()?.0)
    }

    /// Writes a command of whole slots.
    pub(crate) fn write(&mut self, command: &[u8]) -> Result<()> {
        self.ring.push(self.handle.windows()?.0, command)
    }

    fn ring(&mut self) -> Result<()> {
        let (commands, launch) = self.handle.windows()?;
        self.ring.ring(commands, launch)
    }
}

/// Commands that share a doorbell, which is rung when the batch is dropped.
#[derive(Debug)]
pub struct Batch<'a, K> {
    queue: &'a mut Queue<K>,
}

impl<K> Batch<'_, K> {
    /// Adds a command.
    ///
    /// # Errors
    ///
    /// As [`Queue::post`]. What was added before stays in the batch.
    pub fn push(&mut self, command: &impl Command<K>) -> Result<()> {
        command.write(self.queue)
    }
}

impl<K> Drop for Batch<'_, K> {
    fn drop(&mut self) {
        // The windows were mapped and written before.
        let _ = self.queue.ring();
    }
}
