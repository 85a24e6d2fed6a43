//! The characters that a terminal shows.

use std::fs::File;
use std::io::Read as _;

/// The characters of a terminal, as far as `cxi top` controls one.
#[derive(Default)]
pub(crate) struct Screen {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// Bytes that have arrived and are not complete.
    rest: Vec<u8>,
}

impl Screen {
    /// Reads until the terminal shows what is wanted.
    pub(crate) fn until(&mut self, terminal: &mut File, shows: impl Fn(&str) -> bool) {
        while !shows(&self.text()) {
            let mut bytes = [0; 4096];
            let count = terminal.read(&mut bytes).unwrap();
            self.rest.extend(&bytes[..count]);
            self.take();
        }
    }

    fn text(&self) -> String {
        let lines = self.lines.iter().map(|line| line.iter().collect::<String>());
        lines.map(|line| line.trim_end().to_owned() + "\n").collect()
    }

    fn take(&mut self) {
        let all = std::mem::take(&mut self.rest);
        // A character may be cut.
        let (text, rest) = match std::str::from_utf8(&all) {
            Ok(text) => (text, &[][..]),
            Err(error) => {
                let (good, bad) = all.split_at(error.valid_up_to());
                (std::str::from_utf8(good).unwrap(), bad)
            }
        };
        let mut left = text;
        while let Some(letter) = left.chars().next() {
            if letter != '\u{1b}' {
                self.put(letter);
                left = &left[letter.len_utf8()..];
                continue;
            }
            let is_end = |letter: char| letter.is_ascii_alphabetic();
            let Some(end) = left.find(is_end) else { break };
            let sequence = &left[..=end];
            left = &left[end + 1..];
            self.obey(sequence);
        }
        self.rest = [left.as_bytes(), rest].concat();
    }

    fn obey(&mut self, sequence: &str) {
        if let Some(place) = sequence.strip_prefix("\u{1b}[").and_then(|it| it.strip_suffix('H')) {
            let mut numbers = place.split(';').map(|number| number.parse().unwrap_or(1));
            let mut next = || numbers.next().unwrap_or(1) - 1;
            (self.row, self.column) = (next(), next());
        } else if sequence.ends_with('J') || sequence.ends_with("1049h") {
            self.lines.clear();
        }
    }

    fn put(&mut self, letter: char) {
        if letter.is_control() {
            return;
        }
        self.lines.resize(self.lines.len().max(self.row + 1), Vec::new());
        let line = &mut self.lines[self.row];
        line.resize(line.len().max(self.column + 1), ' ');
        line[self.column] = letter;
        self.column += 1;
    }
}
