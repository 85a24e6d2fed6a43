//! A log in memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{AppendError, EventLog, LogError, Record};

/// A log in memory, for tests. Clones are the same log.
#[derive(Debug, Clone, Default)]
pub struct MemoryLog(Arc<Mutex<Vec<Record>>>);

impl MemoryLog {
    /// An empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn records(&self) -> MutexGuard<'_, Vec<Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventLog for MemoryLog {
    fn load(&mut self, after: u64) -> Result<Vec<Record>, LogError> {
        Ok(self.records().iter().filter(|it| it.event.sequence > after).cloned().collect())
    }

    fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        let mut records = self.records();
        let last = records.last();
        let epoch = last.map_or(0, |last| last.epoch);
        if epoch > record.epoch {
            return Err(AppendError::Deposed { epoch });
        }
        if last.map_or(0, |last| last.event.sequence) + 1 != record.event.sequence {
            return Err(AppendError::Moved);
        }
        if record.is_beginning() {
            records.clear();
        }
        records.push(record.clone());
        Ok(())
    }
}
