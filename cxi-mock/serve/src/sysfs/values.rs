//! Values that programs write, read as the kernel reads them.

use cxi_ioctl::Errno;

/// Parses on or off. As for the kernel, the beginning decides: `yes` and `1` are on, `no` and `off` are
/// off.
pub(crate) fn switch(text: &str) -> Option<bool> {
    let mut letters = text.bytes().map(|letter| letter.to_ascii_lowercase());
    match (letters.next()?, letters.next()) {
        (b'y' | b't' | b'1', _) | (b'o', Some(b'n')) => Some(true),
        (b'n' | b'f' | b'0', _) | (b'o', Some(b'f')) => Some(false),
        _ => None,
    }
}

/// Parses a decimal number, a hexadecimal one with 0x, or an octal one with 0. EINVAL for something
/// else, ERANGE for a number that is too large.
pub(crate) fn number<T: TryFrom<i128>>(text: &str) -> Result<T, Errno> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = match hexadecimal {
        Some(digits) => (digits, 16),
        None => (text, if text.starts_with('0') { 8 } else { 10 }),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(Errno::EINVAL);
    }
    let number = u64::from_str_radix(digits, radix).map_err(|_| Errno::ERANGE)?;
    let number = if is_negative { -i128::from(number) } else { i128::from(number) };
    let out_of_range = if is_negative { Errno::EINVAL } else { Errno::ERANGE };
    T::try_from(number).map_err(|_| out_of_range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_kernels() {
        for (text, expected) in [
            ("0", Ok(0)),
            ("64", Ok(64)),
            ("+5", Ok(5)),
            ("0x40", Ok(64)),
            ("0XfF", Ok(255)),
            ("010", Ok(8)),
            ("65535", Ok(65535)),
            ("65536", Err(Errno::ERANGE)),
            ("99999999999999999999", Err(Errno::ERANGE)),
            ("-1", Err(Errno::EINVAL)),
            ("", Err(Errno::EINVAL)),
            ("0x", Err(Errno::EINVAL)),
            ("08", Err(Errno::EINVAL)),
            (" 1", Err(Errno::EINVAL)),
            ("1.5", Err(Errno::EINVAL)),
            ("ten", Err(Errno::EINVAL)),
        ] {
            assert_eq!(number::<u16>(text), expected, "{text}");
        }
        assert_eq!(number::<i32>("-1"), Ok(-1));
    }

    #[test]
    fn the_beginning_of_a_switch_decides() {
        for text in ["1", "y", "Yes", "on", "ON", "true"] {
            assert_eq!(switch(text), Some(true), "{text}");
        }
        for text in ["0", "n", "No", "off", "OF", "false"] {
            assert_eq!(switch(text), Some(false), "{text}");
        }
        for text in ["", "2", "o", "oops", " 1"] {
            assert_eq!(switch(text), None, "{text}");
        }
    }
}
