//! Types that are text in JSON, as a person writes them, and places in files that a person wrote.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Number of characters of a line that [`excerpt`] shows in front of the column. The next constant is
/// their number in all.
const BEFORE: usize = 40;
const SHOWN: usize = 72;

/// The line of a text that an error is about, with a caret below the column, for a terminal.
///
/// Lines and columns count from 1, columns in characters. Of a long line, the part around the column
/// is shown. Empty if there is no such line, or nothing in it.
#[must_use]
pub fn excerpt(text: &str, line: impl TryInto<usize>, column: impl TryInto<usize>) -> String {
    let line: usize = line.try_into().unwrap_or_default();
    let column = column.try_into().unwrap_or_default();
    let source = line.checked_sub(1).and_then(|before| text.lines().nth(before));
    let source = source.unwrap_or_default();
    let length = source.trim_end().chars().count();
    if length == 0 {
        return String::new();
    }
    let at = column.saturating_sub(1).min(length);
    let start = at.saturating_sub(BEFORE);
    let shown = source.trim_end().chars().skip(start).take(SHOWN);
    // One column each, so that the caret is in its place; and a terminal obeys control characters.
    let shown = shown.map(|letter| match letter {
        '\t' => ' ',
        letter if misleads(letter) => char::REPLACEMENT_CHARACTER,
        letter => letter,
    });
    let shown: String = shown.collect();
    let before = if start > 0 { "..." } else { "" };
    let after = if start + SHOWN < length { "..." } else { "" };
    let number = line.to_string();
    let (margin, indent) = (number.len(), before.len() + at - start);
    format!("{number} | {before}{shown}{after}\n{:margin$} | {:indent$}^", "", "")
}

/// Returns whether a character changes how the text around it looks, instead of being seen: control characters,
/// which a terminal obeys; those that reorder text, break lines or have no width; and tags.
#[must_use]
pub fn misleads(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// A line that somebody else chose, such as the name of a process or what a server says, with a
/// replacement for each character that [misleads].
///
/// ```
/// assert_eq!(cxi_site::printable("a\u{1b}[2J\nb"), "a\u{fffd}[2J\u{fffd}b");
/// ```
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(misleads) {
        return text.into();
    }
    text.replace(misleads, "\u{fffd}").into()
}

/// JSON whose texts have each character that [misleads] in its escaped form (`\u202e`), which means the
/// same.
#[must_use]
pub fn printable_json(json: String) -> String {
    // The serializer escapes the first 32, which are blanks elsewhere.
    let is_seen = |letter: char| letter < '\u{7f}' || !misleads(letter);
    if json.chars().all(is_seen) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len());
    for letter in json.chars() {
        if is_seen(letter) {
            escaped.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}

/// Serializes types by `Display`, and deserializes them by `FromStr`.
macro_rules! serde_as_text {
    ($($type:ty),*) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

serde_as_text!(
    crate::IdSet,
    crate::JobId,
    crate::StepId,
    crate::NodeName,
    crate::TenantName,
    crate::HostList
);

#[cfg(test)]
mod tests {
    use super::{excerpt, printable, printable_json};

    #[test]
    fn what_misleads_is_replaced_or_escaped() {
        for letter in [
            '\u{1b}',
            '\u{7}',
            '\n',
            '\t',
            '\u{7f}',
            '\u{9b}',
            '\u{ad}',
            '\u{61c}',
            '\u{200b}',
            '\u{200f}',
            '\u{2028}',
            '\u{2029}',
            '\u{202a}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{2069}',
            '\u{feff}',
            '\u{e0041}',
        ] {
            let text = format!("a{letter}b");
            assert_eq!(printable(&text), "a\u{fffd}b", "{letter:?}");
            let shown = excerpt(&text, 1, 1);
            assert!(letter == '\n' || !shown.starts_with(&format!("1 | {text}")), "{shown:?}");
            let json = printable_json(serde_json::to_string_pretty(&[&text]).unwrap());
            assert!(json.bytes().all(|byte| matches!(byte, b'\n' | b' '..=b'~')), "{json:?}");
            assert_eq!(serde_json::from_str::<[String; 1]>(&json).unwrap(), [text]);
        }
        for text in ["job-17", "Müller ƒ 漢字", ""] {
            assert_eq!(printable(text), text);
            assert_eq!(printable_json(text.to_owned()), text);
        }
    }

    #[test]
    fn a_caret_is_below_the_column() {
        let long = format!("{}é!{}", "a".repeat(100), "b".repeat(100));
        let (before, after) = ("a".repeat(39), "b".repeat(31));
        let cut = format!("1 | ...{before}é!{after}...\n  | {:43}^", "");
        for (text, line, column, shown) in [
            ("vnis:\n  - 65536\n", 2, 5, "2 |   - 65536\n  |     ^"),
            ("é: x", 1, 4, "1 | é: x\n  |    ^"),
            ("\ta: x\r\n", 1, 2, "1 |  a: x\n  |  ^"),
            ("a\u{1b}[31m", 1, 3, "1 | a\u{fffd}[31m\n  |   ^"),
            // The end of a line, and what no parser should say.
            ("a:", 1, 3, "1 | a:\n  |   ^"),
            ("a", 1, 9, "1 | a\n  |  ^"),
            ("a", 1, 0, "1 | a\n  | ^"),
            ("a", 0, 1, ""),
            ("a\n\n", 2, 1, ""),
            ("a", 7, 1, ""),
            (&long, 1, 101 + 1, &cut),
        ] {
            assert_eq!(excerpt(text, line, column), shown, "{text:?}");
        }
        let many = "\n".repeat(99) + "x";
        assert_eq!(excerpt(&many, 100, 1), "100 | x\n    | ^");
    }
}
