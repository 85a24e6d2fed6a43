//! Memory of a process and pages that it shares with a NIC.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cxi_engine::{ClientMemory, CommandPages, EventPages, MemoryFault};

/// Memory by address. What is not mapped is not there.
#[derive(Debug, Default)]
pub struct Memory(Mutex<BTreeMap<u64, Vec<u8>>>);

impl Memory {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn map(&self, va: u64, len: usize) {
        self.0.lock().unwrap().insert(va, vec![0; len]);
    }

    pub fn unmap(&self, va: u64) {
        self.0.lock().unwrap().remove(&va);
    }

    fn with<T>(
        &self,
        va: u64,
        len: usize,
        use_it: impl FnOnce(&mut [u8]) -> T,
    ) -> Result<T, MemoryFault> {
        let mut blocks = self.0.lock().unwrap();
        let (start, block) = blocks.range_mut(..=va).next_back().ok_or(MemoryFault)?;
        let at = usize::try_from(va - start).map_err(|_| MemoryFault)?;
        let end = at.checked_add(len).ok_or(MemoryFault)?;
        block.get_mut(at..end).map(use_it).ok_or(MemoryFault)
    }

    pub fn bytes(&self, va: u64, len: usize) -> Vec<u8> {
        self.with(va, len, |bytes| bytes.to_vec()).unwrap()
    }

    pub fn put(&self, va: u64, bytes: &[u8]) {
        self.with(va, bytes.len(), |to| to.copy_from_slice(bytes)).unwrap();
    }

    pub fn word(&self, va: u64) -> u64 {
        u64::from_le_bytes(self.bytes(va, 8).try_into().unwrap())
    }
}

impl ClientMemory for Memory {
    fn read(&self, va: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        self.with(va, into.len(), |bytes| into.copy_from_slice(bytes))
    }

    fn write(&self, parts: &[(u64, &[u8])]) -> Result<(), MemoryFault> {
        parts
            .iter()
            .try_for_each(|(va, part)| self.with(*va, part.len(), |to| to.copy_from_slice(part)))
    }
}

/// The ring of a command queue.
#[derive(Clone, Debug)]
pub struct Ring(pub Arc<Mutex<Vec<u8>>>);

impl CommandPages for Ring {
    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), MemoryFault> {
        let ring = self.0.lock().unwrap();
        let from = ring.get(offset..offset + into.len()).ok_or(MemoryFault)?;
        into.copy_from_slice(from);
        Ok(())
    }

    fn write_status(&self, status: u64) {
        self.0.lock().unwrap()[..8].copy_from_slice(&status.to_le_bytes());
    }
}

/// The register word of an event queue.
#[derive(Clone, Debug, Default)]
pub struct Word(pub Arc<AtomicU64>);

impl EventPages for Word {
    fn state(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
