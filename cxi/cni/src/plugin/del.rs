//! DEL and GC: taking back the resources of an attachment.

use std::thread;
use std::time::{Duration, Instant};

use cxi::Backoff;

use super::Plugin;
use crate::error::{Code, Error};
use crate::record::{Attachment, Record};

impl Plugin<'_> {
    /// Takes back the resources in the record of an attachment, because its namespace may be gone.
    /// Without a record there is nothing to do.
    pub(super) fn del(&self, attachment: &Attachment) -> Result<Option<String>, Error> {
        self.end(attachment).map(|()| None)
    }

    /// Takes back the resources of attachments that no longer exist. Continues after errors, and
    /// reports them together.
    pub(super) fn gc(&self) -> Result<Option<String>, Error> {
        let Some(valid) = &self.config.valid else {
            return Err(Error::new(
                Code::Configuration,
                "no cni.dev/valid-attachments: expected the attachments that exist",
            ));
        };
        let gone = |record: &Record| {
            let attachment = &record.attachment;
            attachment.network == self.config.network
                && !valid.iter().any(|valid| valid.is(attachment))
        };
        let mut errors = Vec::new();
        for record in self.records.all()? {
            let ended = match record {
                Ok(record) if gone(&record) => self.end(&record.attachment),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            errors.extend(ended.err());
        }
        let Some(first) = errors.first() else { return Ok(None) };
        let details: Vec<_> = errors.iter().map(Error::to_string).collect();
        Err(Error::new(first.code(), "not everything could be taken back")
            .details(details.join("\n")))
    }

    /// Destroys the services of an attachment and forgets it. Services in use are retried for a
    /// while; then the record is kept for the next call.
    pub(super) fn end(&self, attachment: &Attachment) -> Result<(), Error> {
        let start = Instant::now();
        let mut pauses = Backoff::default().pauses();
        loop {
            let held = self.records.lock()?;
            let Some(mut record) = self.records.read(attachment)? else { return Ok(()) };
            let error = match self.take_back(&record) {
                Ok(()) => return self.forget(&mut record),
                Err(error) => error,
            };
            // Other calls can run in the meantime.
            drop(held);
            let left = self.config.settings.retry_busy().saturating_sub(start.elapsed());
            if left.is_zero() || error.code() != Code::TryAgain {
                return Err(error);
            }
            let pause = pauses.next().unwrap_or(Duration::ZERO);
            thread::sleep(pause.min(left));
        }
    }

    /// Forgets a record whose services are gone, once the source of its VNIs has been notified.
    fn forget(&self, record: &mut Record) -> Result<(), Error> {
        let own = record.attachment.network == self.config.network;
        let told = if own {
            self.config.settings.vnis.released(&record.attachment)
        } else {
            // Only a call for its network knows its source.
            Err(Error::new(Code::TryAgain, "it belongs to another network"))
        };
        match told {
            Ok(()) => self.records.remove(&record.attachment),
            Err(error) => {
                // Its ids may be reused.
                record.vnis.clear();
                if let Some(grant) = &mut record.grant {
                    grant.services.clear();
                }
                self.records.write(record)?;
                if own { Err(error) } else { Ok(()) }
            }
        }
    }
}
