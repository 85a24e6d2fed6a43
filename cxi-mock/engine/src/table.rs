//! Objects by number.

/// Objects by number: a vector, as numbers are small and dense.
#[derive(Debug)]
pub(crate) struct Table<T>(Vec<Option<T>>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Table<T> {
    pub(crate) fn get(&self, number: u16) -> Option<&T> {
        self.0.get(usize::from(number))?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u16) -> Option<&mut T> {
        self.0.get_mut(usize::from(number))?.as_mut()
    }

    pub(crate) fn put(&mut self, number: u16, object: T) {
        let index = usize::from(number);
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index] = Some(object);
    }

    pub(crate) fn remove(&mut self, number: u16) -> Option<T> {
        self.0.get_mut(usize::from(number))?.take()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        (0..=u16::MAX).zip(&self.0).filter_map(|(number, slot)| Some((number, slot.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u16, &mut T)> {
        (0..=u16::MAX).zip(&mut self.0).filter_map(|(number, slot)| Some((number, slot.as_mut()?)))
    }
}
