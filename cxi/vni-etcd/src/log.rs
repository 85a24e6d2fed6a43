//! The log of a pool as keys of etcd.
//!
//! `PREFIX/epoch` is the highest epoch that has written, and `PREFIX/events/N` the record of event
//! N. Numbers have twenty digits, so that the order of the keys is that of the numbers.

use std::time::Duration;

use cxi_site::fabric::{HttpTransport, Patience};
use cxi_site::pool::log::{AppendError, EventLog, LogError, Record};

use crate::gateway::{Bytes, Gateway, GatewayError, is_absent, is_less, is_there};

/// Roughly how many bytes one request reads: enough that a long log takes few requests.
const PAGE: usize = 1 << 20;
/// Number of records that the first request asks for; [`PAGE`] decides for the others. One record
/// may name all nodes of a large machine.
const FIRST: u32 = 16;

/// The log of a VNI pool in etcd.
#[derive(Debug)]
pub struct EtcdLog {
    gateway: Gateway,
    prefix: String,
}

impl EtcdLog {
    /// A log in an etcd with members at these URLs, such as `https://etcd1.example:2379`, in keys that
    /// begin with `prefix`. Nothing is sent yet. The transport decides how a member is verified, and
    /// which certificate it is shown.
    ///
    /// The first member that answers is asked until it no longer does. A single URL is enough, as
    /// long as most of the members reach each other.
    #[must_use]
    pub fn new(
        transport: impl HttpTransport + 'static,
        endpoints: &[impl AsRef<str>],
        prefix: &str,
    ) -> Self {
        Self {
            gateway: Gateway::new(transport, endpoints),
            prefix: prefix.trim_end_matches('/').to_owned(),
        }
    }

    /// Logs in with a password, where etcd has authentication enabled. The user needs to read and
    /// write the keys. The password is sent over `https://`, or to this machine.
    #[must_use]
    pub fn user(mut self, name: &str, password: &str) -> Self {
        self.gateway.log_in_as(name, password);
        self
    }

    /// Also sends the password over `http://`, where everyone on the network can read it.
    #[must_use]
    pub const fn allow_clear_password(mut self) -> Self {
        self.gateway.allow_clear = true;
        self
    }

    /// Sets how long a read is tried again (by default 20 s), and how long one request may take. A
    /// write is a single request: see [`AppendError::Unknown`].
    #[must_use]
    pub const fn patience(mut self, patience: Patience) -> Self {
        self.gateway.patience = patience;
        self
    }

    fn key(&self, sequence: u64) -> Bytes {
        Bytes::of(&format!("{}/events/{}", self.prefix, digits(sequence)))
    }

    fn epoch_key(&self) -> Bytes {
        Bytes::of(&format!("{}/epoch", self.prefix))
    }

    /// The highest epoch that has written; `None` if the log is empty.
    fn epoch(&mut self) -> Result<Option<u64>, GatewayError> {
        let key = self.epoch_key();
        let mut end = key.clone();
        end.0.push(0);
        let found = self.gateway.range(&key, &end, &mut 1)?.kvs;
        let Some(found) = found.first() else { return Ok(None) };
        let value = String::from_utf8_lossy(&found.value.0);
        let epoch = value.parse().ok().filter(|epoch| digits(*epoch) == *value);
        epoch.map(Some).ok_or_else(|| GatewayError::Refused {
            url: self.gateway.url(),
            reason: format!("{}/epoch is {value:?}: expected the number of an epoch", self.prefix),
        })
    }

    /// Appends unless a record was added since the log was read. Returns whether the conditions
    /// held.
    fn try_append(&mut self, record: &Record) -> Result<bool, AppendError> {
        let value =
            serde_json::to_vec(record).map_err(|error| AppendError::Failed(error.into()))?;
        let (sequence, epoch) = (record.event.sequence, record.epoch);
        let mut compare = vec![is_absent(&self.key(sequence))];
        if let Some(before) = sequence.checked_sub(2) {
            compare.push(is_there(&self.key(before + 1)));
            let later = digits(epoch.saturating_add(1));
            compare.push(is_less(&self.epoch_key(), &Bytes::of(&later)));
        } else {
            compare.push(is_absent(&self.epoch_key()));
        }
        let puts =
            [(self.key(sequence), Bytes(value)), (self.epoch_key(), Bytes::of(&digits(epoch)))];
        let before = (self.key(0), self.key(sequence));
        let removed = record.is_beginning().then_some(&before);
        self.gateway.write_if(&compare, &puts, removed).map_err(failed)
    }
}

impl EventLog for EtcdLog {
    fn load(&mut self, after: u64) -> Result<Vec<Record>, LogError> {
        let unreadable = |error: GatewayError| LogError(error.into());
        let end = Bytes::of(&format!("{}/events0", self.prefix));
        let mut records: Vec<Record> = Vec::new();
        let (mut last, mut limit) = (after, FIRST);
        loop {
            let from = self.key(last.saturating_add(1));
            let page = self.gateway.range(&from, &end, &mut limit).map_err(unreadable)?;
            let size: usize = page.kvs.iter().map(|found| found.value.0.len()).sum();
            if size < PAGE / 2 {
                limit = limit.saturating_mul(2);
            } else if size > PAGE {
                limit = (limit / 2).max(1);
            }
            for found in &page.kvs {
                let record: Record = serde_json::from_slice(&found.value.0).map_err(|error| {
                    let prefix = &self.prefix;
                    LogError(format!("{prefix}: not a change of a pool: {error}").into())
                })?;
                let sequence = record.event.sequence;
                if found.key != self.key(sequence) {
                    let name = String::from_utf8_lossy(&found.key.0);
                    return Err(LogError(format!("{name}: it has change {sequence}").into()));
                }
                last = sequence;
                records.push(record);
            }
            if !page.more {
                break;
            }
        }
        // Every record was written together with the epoch.
        if records.is_empty() && after == 0 && self.epoch().map_err(unreadable)?.is_some() {
            // It may have been written since the records were read.
            let first = self.gateway.range(&self.key(0), &end, &mut 1).map_err(unreadable)?;
            if first.kvs.is_empty() {
                let gone = format!("{}: there is an epoch, and no change of a pool", self.prefix);
                return Err(LogError(gone.into()));
            }
            return self.load(after);
        }
        Ok(records)
    }

    fn within(&mut self, time: Duration) {
        self.gateway.within(time);
    }

    fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        if record.event.sequence == 0 {
            return Err(AppendError::Failed("invalid event number 0: expected 1 or more".into()));
        }
        if self.try_append(record)? {
            return Ok(());
        }
        match self.epoch().map_err(|error| AppendError::Failed(error.into()))? {
            Some(epoch) if epoch > record.epoch => Err(AppendError::Deposed { epoch }),
            _ => Err(AppendError::Moved),
        }
    }
}

fn failed(error: GatewayError) -> AppendError {
    match error {
        error if error.is_open() => AppendError::Unknown(error.into()),
        error => AppendError::Failed(error.into()),
    }
}

fn digits(number: u64) -> String {
    format!("{number:020}")
}
