//! Objects that commands make.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use cxi_ioctl::Errno;

use super::ids::{Ids, count};

/// An object of an open file, and of an LNI unless it is one.
#[derive(Clone, Debug)]
pub(crate) struct Object<T> {
    pub(crate) file: u32,
    pub(crate) lni: u32,
    /// Number of users that keep the object from being freed.
    users: u32,
    what: T,
}

impl<T> Object<T> {
    pub(crate) fn into_inner(self) -> T {
        self.what
    }
}

impl<T> Deref for Object<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.what
    }
}

impl<T> DerefMut for Object<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.what
    }
}

/// The objects of a kind and their numbers. A number may outlive its object: LNIs keep some.
#[derive(Clone, Debug)]
pub(crate) struct Objects<T> {
    ids: Ids,
    table: BTreeMap<u32, Object<T>>,
}

impl<T> Objects<T> {
    /// Objects with numbers from `first` up to, but not including, `end`.
    pub(crate) fn new(first: u32, end: u32) -> Self {
        Self { ids: Ids::new(first, end), table: BTreeMap::new() }
    }

    /// Takes a number for the next object; ENOSPC when all are taken.
    pub(crate) fn number(&mut self) -> Result<u32, Errno> {
        self.ids.alloc().ok_or(Errno::ENOSPC)
    }

    /// Returns whether a number is free.
    pub(crate) fn has_number(&self) -> bool {
        self.ids.has_free()
    }

    /// Returns the number of an object that is gone.
    pub(crate) fn give_number(&mut self, id: u32) {
        self.ids.free(id);
    }

    pub(crate) fn put(&mut self, id: u32, (file, lni): (u32, u32), what: T) {
        let object = Object { file, lni, users: 0, what };
        self.table.insert(id, object);
    }

    /// As [`put`](Self::put), under a new number.
    pub(crate) fn add(&mut self, owner: (u32, u32), what: T) -> Result<u32, Errno> {
        let id = self.number()?;
        self.put(id, owner, what);
        Ok(id)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Object<T>> {
        self.table.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Object<T>> {
        self.table.get_mut(&id)
    }

    /// The object of a handle; EINVAL if it does not belong to the file.
    pub(crate) fn of(&self, file: u32, id: u32) -> Result<&Object<T>, Errno> {
        self.table.get(&id).filter(|object| object.file == file).ok_or(Errno::EINVAL)
    }

    pub(crate) fn of_mut(&mut self, file: u32, id: u32) -> Result<&mut Object<T>, Errno> {
        self.table.get_mut(&id).filter(|object| object.file == file).ok_or(Errno::EINVAL)
    }

    /// Counts one more user of an object. Number 0 has no effect: most commands use it for none,
    /// and no object has it.
    pub(crate) fn hold(&mut self, id: u32) {
        if let Some(object) = self.table.get_mut(&id) {
            object.users += 1;
        }
    }

    pub(crate) fn release(&mut self, id: u32) {
        if let Some(object) = self.table.get_mut(&id) {
            object.users = object.users.saturating_sub(1);
        }
    }

    /// Forgets all users of an object that is about to be freed with its file.
    pub(crate) fn abandon(&mut self, id: u32) {
        if let Some(object) = self.table.get_mut(&id) {
            object.users = 0;
        }
    }

    /// Removes an object, but keeps its number taken. EINVAL if it does not belong to the file,
    /// EBUSY while it is used.
    pub(crate) fn take(&mut self, file: u32, id: u32) -> Result<Object<T>, Errno> {
        if self.of(file, id)?.users > 0 {
            return Err(Errno::EBUSY);
        }
        self.table.remove(&id).ok_or(Errno::EINVAL)
    }

    /// As [`take`](Self::take), but frees the number, too.
    pub(crate) fn remove(&mut self, file: u32, id: u32) -> Result<Object<T>, Errno> {
        let object = self.take(file, id)?;
        self.ids.free(id);
        Ok(object)
    }

    /// The numbers of a file's objects.
    pub(crate) fn of_file(&self, file: u32) -> Vec<u32> {
        self.iter().filter(|(_, object)| object.file == file).map(|(id, _)| id).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Object<T>)> {
        self.table.iter().map(|(id, object)| (*id, object))
    }

    /// Returns the number of objects.
    pub(crate) fn count(&self) -> u32 {
        count(self.table.len())
    }

    /// Returns the number of identifiers that are taken.
    pub(crate) fn used(&self) -> u32 {
        self.ids.used()
    }
}
