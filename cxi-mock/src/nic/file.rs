//! Open files and what they hold.

use std::collections::BTreeSet;

use cxi_ioctl::Errno;

use super::Device;
use super::cp::CpHandle;
use super::ids::Ids;
use super::table::Table;

/// An open file.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// `None` for the physical function.
    pub(crate) virtual_function: Option<u32>,
    pub(crate) lnis: BTreeSet<u32>,
    pub(crate) domains: BTreeSet<u32>,
    pub(crate) cp_ids: Ids,
    pub(crate) cps: Table<CpHandle>,
}

/// All open files.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    ids: Ids,
    files: Table<File>,
}

impl Files {
    pub(crate) fn new() -> Self {
        Self {
            ids: Ids::new(1, u32::MAX),
            files: Table::default(),
        }
    }

    pub(crate) fn open(&mut self, virtual_function: Option<u32>) -> Result<u32, Errno> {
        let id = self.ids.alloc().ok_or(Errno::EMFILE)?;
        self.files.put(
            id,
            File {
                virtual_function,
                lnis: BTreeSet::new(),
                domains: BTreeSet::new(),
                cp_ids: Ids::new(0, u32::MAX),
                cps: Table::default(),
            },
        );
        Ok(id)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&File> {
        self.files.get(id)
    }
}

impl Device {
    /// EIO for a file that is closed, which no caller can have.
    pub(super) fn file_mut(&mut self, id: u32) -> Result<&mut File, Errno> {
        self.files.files.get_mut(id).ok_or(Errno::EIO)
    }

    /// Closes a file: everything that it holds goes, users before what they use.
    pub(super) fn close(&mut self, id: u32) {
        let Some(file) = self.files.get(id).cloned() else {
            return;
        };
        for domain in file.domains {
            let _ = self.domain_free(id, domain);
        }
        for (handle, _) in file.cps.iter() {
            let _ = self.cp_free(id, handle);
        }
        for lni in file.lnis {
            let _ = self.lni_free(id, lni);
        }
        self.files.files.remove(id);
        self.files.ids.free(id);
    }
}
