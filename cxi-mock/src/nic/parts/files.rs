//! Open files, and the objects that belong to a single file.

use std::collections::{BTreeMap, BTreeSet};

use cxi_ioctl::Errno;
use cxi_ioctl::abi::memory::Mminfo;

use super::ids::Ids;
use super::objects::Objects;
use crate::data_path::Windows;

/// An open file. Handles of communication profiles and wait objects have their own numbers in each
/// file; other objects are the device's.
#[derive(Debug)]
pub(crate) struct File {
    /// `None` for the physical function.
    pub(crate) virtual_function: Option<u32>,
    /// Its number among the open files of the function.
    pub(crate) number: u32,
    pub(crate) cps: Objects<CpHandle>,
    pub(crate) waits: Objects<()>,
    /// The window of registers.
    pub(crate) csrs: Option<Mminfo>,
    pub(crate) windows: Windows,
}

/// A handle of a communication profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpHandle {
    pub(crate) tx: Option<u32>,
    /// RGID and LCID; `None` if nothing was registered.
    pub(crate) place: Option<(u32, usize)>,
}

/// All open files.
#[derive(Debug)]
pub(crate) struct Files {
    ids: Ids,
    open: BTreeMap<u32, File>,
    /// Virtual functions for which the physical one has a client.
    relays: BTreeSet<u32>,
    /// Numbers of each function's files.
    numbers: BTreeMap<Option<u32>, Ids>,
    /// Files that have the registers mapped.
    pub(crate) with_registers: BTreeSet<u32>,
}

impl Files {
    pub(crate) fn new() -> Self {
        Self {
            ids: Ids::new(1, u32::MAX),
            open: BTreeMap::new(),
            relays: BTreeSet::new(),
            numbers: BTreeMap::new(),
            with_registers: BTreeSet::new(),
        }
    }

    /// Opens a file under a number that no other file has, of any function.
    pub(crate) fn open(&mut self, virtual_function: Option<u32>) -> Result<u32, Errno> {
        let numbers = self.numbers.entry(virtual_function).or_insert_with(|| Ids::new(1, u32::MAX));
        let number = numbers.alloc().ok_or(Errno::EMFILE)?;
        let id = self.ids.alloc().ok_or(Errno::EMFILE)?;
        let file = File {
            virtual_function,
            number,
            cps: Objects::new(0, u32::MAX),
            waits: Objects::new(1, u32::MAX),
            csrs: None,
            windows: Windows::new(id),
        };
        self.open.insert(id, file);
        Ok(id)
    }

    pub(crate) fn remove(&mut self, id: u32) {
        let Some(file) = self.open.remove(&id) else { return };
        self.with_registers.remove(&id);
        self.ids.free(id);
        if let Some(numbers) = self.numbers.get_mut(&file.virtual_function) {
            numbers.free(file.number);
        }
    }

    /// EIO for a file that is closed, which no caller can have.
    pub(crate) fn get(&self, id: u32) -> Result<&File, Errno> {
        self.open.get(&id).ok_or(Errno::EIO)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Result<&mut File, Errno> {
        self.open.get_mut(&id).ok_or(Errno::EIO)
    }

    /// Notes that a command goes from a virtual function's file to the physical function, which
    /// makes a client for the virtual function at its first command.
    pub(crate) fn relay(&mut self, id: u32) {
        let function = self.virtual_function(id);
        if function.is_some_and(|function| self.relays.insert(function)) {
            self.numbers.entry(None).or_insert_with(|| Ids::new(1, u32::MAX)).alloc();
        }
    }

    /// The virtual function that a file is one of.
    pub(crate) fn virtual_function(&self, id: u32) -> Option<u32> {
        self.open.get(&id)?.virtual_function
    }

    /// Returns whether a file is one of a virtual function.
    pub(crate) fn is_virtual(&self, id: u32) -> bool {
        self.virtual_function(id).is_some()
    }

    pub(crate) fn all(&self) -> Vec<u32> {
        self.open.keys().copied().collect()
    }

    /// The numbers of a function's files.
    pub(crate) fn of_function(&self, virtual_function: Option<u32>) -> Vec<u32> {
        let files = self.open.values();
        let of_function = files.filter(|file| file.virtual_function == virtual_function);
        of_function.map(|file| file.number).collect()
    }

    /// The file with a number among those of a function.
    pub(crate) fn numbered(&self, virtual_function: Option<u32>, number: u32) -> Option<&File> {
        let mut files = self.open.values();
        files.find(|file| (file.virtual_function, file.number) == (virtual_function, number))
    }
}
