//! Parsing an input.

/// Bytes that are handed out from the front; zeros when they are used up.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// Returns whether all bytes are used up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// The next two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// The next four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// The lowest bit of the next byte.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 != 0
    }

    /// At most the next `len` bytes.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(len.min(self.0.len()));
        self.0 = tail;
        head
    }

    /// The bytes of a block whose length comes before it, in one byte.
    pub fn block(&mut self) -> &'a [u8] {
        let len = self.byte();
        self.take(len.into())
    }

    /// A text whose length comes before it, in one byte.
    pub fn text(&mut self) -> String {
        String::from_utf8_lossy(self.block()).into_owned()
    }

    /// One of these, as the next byte says.
    ///
    /// # Panics
    ///
    /// When there are none.
    pub fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let taken = self.take(N);
        bytes[..taken.len()].copy_from_slice(taken);
        bytes
    }
}
