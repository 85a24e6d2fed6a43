//! Open files: what they own, and what closing one releases, even if its process was killed.

use std::collections::BTreeMap;

use cxi_ioctl::Errno;

use super::{Counter, Domain, EventQueue, Mapped, Md, Model, Pte, Queue, lowest_free};

/// An object that belongs to an open file.
pub trait Owned: Copy {
    fn file(&self) -> usize;
}

macro_rules! owned {
    ($($object:ty),*) => { $(
        impl Owned for $object {
            fn file(&self) -> usize {
                self.file
            }
        }
    )* };
}

owned!(Counter, Domain, EventQueue, Mapped, Md, Pte, Queue);

/// An object of that file. To the file, those of others do not exist.
pub(super) fn owned<T: Owned>(
    objects: &BTreeMap<u32, T>,
    file: usize,
    number: u32,
) -> Result<T, Errno> {
    let found = objects.get(&number).filter(|found| found.file() == file);
    found.copied().ok_or(Errno::EINVAL)
}

/// The numbers of a file's objects.
pub fn of_file<T: Owned>(objects: &BTreeMap<u32, T>, file: usize) -> Vec<u32> {
    let own = objects.iter().filter(|(_, object)| object.file() == file);
    own.map(|(number, _)| *number).collect()
}

/// The handles of a file, which each file numbers separately.
pub fn handles<T>(objects: &BTreeMap<(usize, u32), T>, file: usize) -> Vec<u32> {
    let own = objects.keys().filter(|(owner, _)| *owner == file);
    own.map(|(_, handle)| *handle).collect()
}

impl Model {
    /// Files are numbered, lowest free first; number 1 is the file that observes the others.
    pub(super) fn open_file(&mut self, file: usize) {
        let taken = self.open.into_iter().flatten().chain([1]);
        self.open[file] = Some(lowest_free(1, taken));
    }

    pub(super) fn close_file(&mut self, file: usize) {
        self.mappings.retain(|_, mapped| mapped.file != file);
        for pte in of_file(&self.ptes, file) {
            self.drop_pte(pte);
        }
        for queue in of_file(&self.queues, file) {
            self.drop_queue(queue);
        }
        for eq in of_file(&self.eqs, file) {
            self.drop_eq(eq);
        }
        self.mds.retain(|_, md| md.file != file);
        self.waits.retain(|(owner, _), _| *owner != file);
        for domain in of_file(&self.domains, file) {
            self.drop_domain(domain);
        }
        for ct in of_file(&self.cts, file) {
            self.drop_ct(ct);
        }
        for cp in handles(&self.cps, file) {
            self.drop_cp((file, cp));
        }
        for lni in self.lnis_of(file) {
            self.end_lni(lni);
        }
        self.open[file] = None;
    }
}
