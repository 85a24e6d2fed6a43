//! Wait objects.

use cxi_ioctl::Errno;

use super::file::handles;
use super::{Model, Values, lowest_free};

impl Model {
    pub(super) fn wait_alloc(&mut self, file: usize, lni: u32) -> Values {
        self.lni(file, lni)?;
        let client = self.open[file].ok_or(Errno::EBADF)?;
        let wait = lowest_free(1, handles(&self.waits, file));
        self.waits.insert((file, wait), lni);
        Ok(vec![client, wait])
    }

    pub(super) fn wait_free(&mut self, file: usize, wait: u32) -> Values {
        if !self.waits.contains_key(&(file, wait)) {
            return Err(Errno::EINVAL);
        }
        let mut of_file = self.eqs.values().filter(|eq| eq.file == file);
        if of_file.any(|eq| eq.waits.contains(&wait)) {
            return Err(Errno::EBUSY);
        }
        self.waits.remove(&(file, wait));
        Ok(vec![])
    }
}
