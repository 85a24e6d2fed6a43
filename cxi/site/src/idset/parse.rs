//! Parsing an id set.

use std::str::FromStr;

use super::IdSet;

/// Reason for which a text is not an ID set, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {position}: {reason}")]
pub struct ParseIdSetError {
    position: usize,
    reason: String,
}

impl ParseIdSetError {
    /// Byte offset, from 0, of what is wrong; the length of the text if something is missing at its
    /// end.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }
}

struct Cursor<'a> {
    text: &'a str,
    position: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.position..)?.chars().next()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        if there {
            self.position += wanted.len_utf8();
        }
        there
    }

    fn unexpected(&self, expected: &str) -> ParseIdSetError {
        let found = match self.peek() {
            None => "the end".to_owned(),
            Some(' ' | '\t') => "a blank".to_owned(),
            Some(other) => format!("{other:?}"),
        };
        error(self.position, format!("expected {expected}, found {found}"))
    }

    fn number(&mut self, expected: &str) -> Result<u16, ParseIdSetError> {
        let start = self.position;
        let rest = self.text.get(start..).unwrap_or_default();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(self.unexpected(expected));
        }
        self.position += digits;
        let digits = rest.get(..digits).unwrap_or_default();
        if digits.len() > 1 && digits.starts_with('0') {
            let reason = "id starts with 0: write it without leading zeros";
            return Err(error(start, reason));
        }
        digits.parse().map_err(|_| error(start, "id is too large: the largest is 65535"))
    }
}

fn error(position: usize, reason: impl Into<String>) -> ParseIdSetError {
    let reason = reason.into();
    ParseIdSetError { position, reason }
}

impl FromStr for IdSet {
    type Err = ParseIdSetError;

    /// Parses an id set; its parts may be in any order, but no id may occur twice.
    fn from_str(text: &str) -> Result<Self, ParseIdSetError> {
        let mut set = Self::new();
        let mut cursor = Cursor { text, position: 0 };
        let bracket = cursor.eat('[');
        let at_end = |cursor: &Cursor<'_>| match cursor.peek() {
            None => true,
            Some(c) => bracket && c == ']',
        };
        if !at_end(&cursor) {
            loop {
                member(&mut cursor, &mut set, bracket)?;
                if !cursor.eat(',') {
                    break;
                }
            }
        }
        if bracket && !cursor.eat(']') {
            return Err(cursor.unexpected("']' because the set starts with '['"));
        }
        if cursor.peek().is_some() {
            return Err(cursor.unexpected("the end"));
        }
        Ok(set)
    }
}

fn member(cursor: &mut Cursor<'_>, set: &mut IdSet, bracket: bool) -> Result<(), ParseIdSetError> {
    let start = cursor.position;
    let first = cursor.number("an id (a decimal number up to 65535)")?;
    let ranged = cursor.eat('-');
    let last = if ranged {
        cursor.number(&format!("the last id of the range that starts with {first}"))?
    } else {
        first
    };
    if last < first {
        let reason = format!("range runs from {first} down to {last}: the smaller id comes first");
        return Err(error(start, reason));
    }
    match cursor.peek() {
        None | Some(',') => {}
        Some(']') if bracket => {}
        Some(_) if ranged => return Err(cursor.unexpected("',' or the end")),
        Some(_) => return Err(cursor.unexpected("',', '-' or the end")),
    }
    if let Some(id) = set.next_from(first).filter(|id| *id <= last) {
        return Err(error(start, format!("id {id} is in the set twice")));
    }
    set.insert_range(first..=last);
    Ok(())
}
