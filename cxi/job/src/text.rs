//! Types that are text in JSON, as a person writes them, and places in files that a person wrote.

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
        letter if letter.is_control() => char::REPLACEMENT_CHARACTER,
        letter => letter,
    });
    let shown: String = shown.collect();
    let before = if start > 0 { "..." } else { "" };
    let after = if start + SHOWN < length { "..." } else { "" };
    let number = line.to_string();
    let (margin, indent) = (number.len(), before.len() + at - start);
    format!("{number} | {before}{shown}{after}\n{:margin$} | {:indent$}^", "", "")
}

/// A text that somebody else chose, such as the name of a process, without characters that a terminal
/// obeys.
#[must_use]
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter })
        .collect()
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
    crate::site::HostList,
    crate::site::NetworkOptions
);

#[cfg(test)]
mod tests {
    use super::excerpt;

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
