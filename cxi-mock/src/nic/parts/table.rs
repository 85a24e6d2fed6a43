//! Objects by number.

/// Objects by number, for numbers that stay small.
#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    slots: Vec<Option<T>>,
    count: u32,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            count: 0,
        }
    }
}

impl<T> Table<T> {
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Puts an object at a number that is free.
    pub(crate) fn put(&mut self, id: u32, object: T) {
        let index = id as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        if self.slots[index].replace(object).is_none() {
            self.count += 1;
        }
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<T> {
        let object = self.slots.get_mut(id as usize)?.take()?;
        self.count -= 1;
        Some(object)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        self.slots.get(id as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.slots.get_mut(id as usize)?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..)
            .zip(&self.slots)
            .filter_map(|(id, slot)| Some((id, slot.as_ref()?)))
    }
}
