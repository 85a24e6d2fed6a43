//! Open files and what they hold.

use std::collections::{BTreeMap, BTreeSet};

use cxi_ioctl::Errno;
use cxi_ioctl::abi::memory::Mminfo;

use super::Device;
use super::cp::CpHandle;
use super::ids::Ids;
use super::table::Table;
use super::wait::Wait;
use super::window::Windows;

/// An open file, with its handles: numbers of its own, and device-wide ones that it may use.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// `None` for the physical function.
    pub(crate) virtual_function: Option<u32>,
    /// Its number among the open files of the function.
    pub(crate) number: u32,
    pub(crate) lnis: BTreeSet<u32>,
    pub(crate) domains: BTreeSet<u32>,
    pub(crate) cqs: BTreeSet<u32>,
    pub(crate) eqs: BTreeSet<u32>,
    pub(crate) ptes: BTreeSet<u32>,
    pub(crate) cts: BTreeSet<u32>,
    pub(crate) mds: BTreeSet<u32>,
    pub(crate) cp_ids: Ids,
    pub(crate) cps: Table<CpHandle>,
    pub(crate) maps: BTreeSet<u32>,
    pub(crate) wait_ids: Ids,
    pub(crate) waits: Table<Wait>,
    /// The window of registers.
    pub(crate) csrs: Option<Mminfo>,
    pub(crate) windows: Windows,
}

impl File {
    fn new(id: u32, virtual_function: Option<u32>, number: u32) -> Self {
        Self {
            virtual_function,
            number,
            lnis: BTreeSet::new(),
            domains: BTreeSet::new(),
            cqs: BTreeSet::new(),
            eqs: BTreeSet::new(),
            ptes: BTreeSet::new(),
            cts: BTreeSet::new(),
            mds: BTreeSet::new(),
            cp_ids: Ids::new(0, u32::MAX),
            cps: Table::default(),
            maps: BTreeSet::new(),
            wait_ids: Ids::new(1, u32::MAX),
            waits: Table::default(),
            csrs: None,
            windows: Windows::new(id),
        }
    }
}

/// All open files.
#[derive(Debug)]
pub(crate) struct Files {
    ids: Ids,
    open: Table<File>,
    /// Numbers of each function's files.
    numbers: BTreeMap<Option<u32>, Ids>,
}

impl Files {
    pub(crate) fn new() -> Self {
        Self {
            ids: Ids::new(1, u32::MAX),
            open: Table::default(),
            numbers: BTreeMap::new(),
        }
    }

    /// The file under a number that no other file has, whatever its function.
    pub(crate) fn open(&mut self, virtual_function: Option<u32>) -> Result<u32, Errno> {
        let numbers = self.numbers.entry(virtual_function);
        let numbers = numbers.or_insert_with(|| Ids::new(1, u32::MAX));
        let number = numbers.alloc().ok_or(Errno::EMFILE)?;
        let id = self.ids.alloc().ok_or(Errno::EMFILE)?;
        self.open.put(id, File::new(id, virtual_function, number));
        Ok(id)
    }

    fn remove(&mut self, id: u32) {
        let Some(file) = self.open.remove(id) else {
            return;
        };
        self.ids.free(id);
        if let Some(numbers) = self.numbers.get_mut(&file.virtual_function) {
            numbers.free(file.number);
        }
    }

    pub(crate) fn get(&self, id: u32) -> Option<&File> {
        self.open.get(id)
    }

    pub(crate) fn all(&self) -> Vec<u32> {
        self.open.iter().map(|(id, _)| id).collect()
    }

    pub(crate) fn of_function(&self, virtual_function: Option<u32>) -> Vec<u32> {
        self.open
            .iter()
            .filter(|(_, file)| file.virtual_function == virtual_function)
            .map(|(_, file)| file.number)
            .collect()
    }

    /// The file with a number among those of a function.
    pub(crate) fn numbered(&self, virtual_function: Option<u32>, number: u32) -> Option<&File> {
        let mut files = self.open.iter().map(|(_, file)| file);
        files.find(|file| (file.virtual_function, file.number) == (virtual_function, number))
    }
}

impl Device {
    /// EIO for a file that is closed, which no caller can have.
    pub(super) fn file_mut(&mut self, id: u32) -> Result<&mut File, Errno> {
        self.files.open.get_mut(id).ok_or(Errno::EIO)
    }

    /// Whether a file is one of a virtual function.
    pub(super) fn is_virtual(&self, id: u32) -> bool {
        let file = self.files.get(id);
        file.is_some_and(|file| file.virtual_function.is_some())
    }

    /// Closes a file: everything that it holds goes, users before what they use, so that
    /// nothing is found in use.
    pub(super) fn close(&mut self, id: u32) {
        let Some(file) = self.files.get(id).cloned() else {
            return;
        };
        for map in file.maps {
            let _ = self.pte_unmap(id, map);
        }
        for pte in file.ptes {
            self.pte_close(id, pte);
        }
        for cq in file.cqs {
            let _ = self.cq_free(id, cq);
        }
        for eq in file.eqs {
            let _ = self.eq_free(id, eq);
        }
        for md in file.mds {
            let _ = self.atu_unmap(id, md);
        }
        for (wait, _) in file.waits.iter() {
            let _ = self.wait_free(id, wait);
        }
        for domain in file.domains {
            let _ = self.domain_free(id, domain);
        }
        for ct in file.cts {
            let _ = self.ct_free(id, ct);
        }
        for (cp, _) in file.cps.iter() {
            let _ = self.cp_free(id, cp);
        }
        for lni in file.lnis {
            let _ = self.lni_free(id, lni);
        }
        self.data_path.forget_doorbells(id);
        self.files.remove(id);
    }
}
