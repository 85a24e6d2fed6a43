//! Parses numbers as scanf(3) does, which C libcxi uses for the files in sysfs.

/// A number at the start of a text: white space, a sign, digits. What follows is ignored.
///
/// Base 0 means that the prefix decides, as for `%i`; base 16 accepts a `0x`. A negative number wraps
/// around; one that is too large becomes the largest.
pub(crate) fn number(text: &[u8], base: u32) -> Option<(u64, &[u8])> {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let (base, digits) = prefixed(digits, base);
    let digit = |byte: &u8| char::from(*byte).to_digit(base);
    let len = digits.iter().take_while(|byte| digit(byte).is_some()).count();
    let (digits, rest) = digits.split_at(len);
    if digits.is_empty() {
        return None;
    }
    let value = digits
        .iter()
        .filter_map(digit)
        .fold(0_u64, |value, digit| value.saturating_mul(base.into()).saturating_add(digit.into()));
    let value = if negative { value.wrapping_neg() } else { value };
    Some((value, rest))
}

fn prefixed(digits: &[u8], base: u32) -> (u32, &[u8]) {
    let hexadecimal = match digits {
        [b'0', b'x' | b'X', rest @ ..] if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
            Some(rest)
        }
        _ => None,
    };
    match (base, hexadecimal) {
        (0 | 16, Some(rest)) => (16, rest),
        (0, None) if digits.first() == Some(&b'0') => (8, digits),
        (0, None) => (10, digits),
        (base, _) => (base, digits),
    }
}

/// The first word, as `%s` parses it.
pub(crate) fn word(text: &[u8]) -> Option<&[u8]> {
    text.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())
}

/// Returns the text after the first occurrence of a character.
pub(crate) fn after(text: &[u8], character: u8) -> Option<&[u8]> {
    text.split_first().filter(|(first, _)| **first == character).map(|(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_scanf_reads_them() {
        let read = |text: &str, base| number(text.as_bytes(), base).map(|(value, _)| value);
        assert_eq!(read(" \n12abc", 10), Some(12));
        assert_eq!(read("0x1aG", 16), Some(26));
        assert_eq!(read("1a", 16), Some(26));
        assert_eq!(read("0x10", 0), Some(16));
        assert_eq!(read("010", 0), Some(8));
        assert_eq!(read("0x", 0), Some(0));
        assert_eq!(read("-1", 10), Some(u64::MAX));
        assert_eq!(read("+7", 10), Some(7));
        assert_eq!(read("99999999999999999999", 10), Some(u64::MAX));
        for none in ["", "x", "- 1", " "] {
            assert_eq!(read(none, 10), None, "{none:?}");
        }
        assert_eq!(number(b"5@9", 10), Some((5, &b"@9"[..])));
        assert_eq!(word(b"  1.1\n"), Some(&b"1.1"[..]));
        assert_eq!(word(b" \n"), None);
        assert_eq!(after(b"@9", b'@'), Some(&b"9"[..]));
        assert_eq!(after(b"9", b'@'), None);
    }
}
