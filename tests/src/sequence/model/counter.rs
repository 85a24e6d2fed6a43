//! Counting events: number and unit of a freed one are lost until its LNI ends.

use cxi_ioctl::Errno;

use super::accounting::CT;
use super::file::owned;
use super::memory::USER_END;
use super::{Model, Values};

#[derive(Clone, Copy, Debug)]
pub struct Counter {
    pub file: usize,
    pub lni: u32,
}

/// Returns whether a process can have memory for a write-back there.
const fn has_memory(writeback: u64) -> bool {
    writeback <= USER_END - 8
}

impl Model {
    pub(super) fn ct_alloc(&mut self, file: usize, lni: u32, writeback: u64) -> Values {
        let svc_id = self.lni(file, lni)?.svc_id;
        if !writeback.is_multiple_of(8) {
            return Err(Errno::EINVAL);
        }
        let number = self.take_numbered(svc_id, CT)?;
        if !has_memory(writeback) {
            self.return_numbered(svc_id, CT, number);
            return Err(Errno::EOPNOTSUPP);
        }
        self.cts.insert(number, Counter { file, lni });
        Ok(vec![number])
    }

    pub(super) fn ct_free(&mut self, file: usize, number: u32) -> Values {
        owned(&self.cts, file, number)?;
        self.drop_ct(number);
        Ok(vec![])
    }

    pub(super) fn ct_update(&self, file: usize, number: u32, writeback: u64) -> Values {
        owned(&self.cts, file, number)?;
        if writeback == 0 {
            return Err(Errno::EINVAL);
        }
        has_memory(writeback).then(Vec::new).ok_or(Errno::EOPNOTSUPP)
    }

    pub(super) fn drop_ct(&mut self, number: u32) {
        let ct = self.cts.remove(&number).unwrap();
        self.lni_mut(ct.lni).spent_cts.push(number);
    }
}
