//! Styles of a terminal, apart from whatever else a terminal obeys.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::OnceLock;

use anstyle::AnsiColor;
use cxi_site::misleads;

/// A style. `{style}` begins it and `{style:#}` ends it, in a text that goes through [`shown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style(anstyle::Style);

pub(crate) const PLAIN: Style = Style(anstyle::Style::new());
pub(crate) const ERROR: Style = Style(AnsiColor::Red.on_default().bold());
pub(crate) const WARNING: Style = Style(AnsiColor::Yellow.on_default().bold());
pub(crate) const DEBUG: Style = Style(anstyle::Style::new().dimmed());
pub(crate) const HEADING: Style = Style(anstyle::Style::new().bold());
/// A row about something that has no effect, such as a disabled service.
pub(crate) const OFF: Style = Style(anstyle::Style::new().dimmed());
/// A row about something that does not work, such as a link that is down.
pub(crate) const DOWN: Style = Style(AnsiColor::Red.on_default());
/// A row about something that is nearly used up.
pub(crate) const SHORT: Style = Style(AnsiColor::Yellow.on_default());

/// Characters on both sides of a style's codes. Nobody who chooses a part of the text can know it: these
/// characters are for use within a program only, and which they are is random.
fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let random = RandomState::new().hash_one(0).to_ne_bytes();
        let letters = random.into_iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        letters.filter_map(|letter| char::from_u32(0xfdd0 + u32::from(letter))).collect()
    })
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_plain() {
            return Ok(());
        }
        let mark = mark();
        f.write_str(mark)?;
        fmt::Display::fmt(&self.0, f)?;
        f.write_str(mark)
    }
}

/// A text in which a terminal obeys nothing but new lines, tabs and this program's styles, which are
/// left out where they are not wanted. Parts of it may have been chosen by anybody: names of processes,
/// users, files and jobs, and what servers answer.
pub(crate) fn shown(text: &str, is_styled: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    // Between the marks, every second part is a style.
    for (index, part) in text.split(mark()).enumerate() {
        if index % 2 == 0 {
            let is_replaced = |letter| misleads(letter) && !matches!(letter, '\n' | '\t');
            shown.push_str(&part.replace(is_replaced, "\u{fffd}"));
        } else if is_styled {
            shown.push_str(part);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_new_lines_and_styles_of_this_program_only() {
        for (text, safe) in [
            ("a\n\tb é", "a\n\tb é"),
            ("\u{1b}[1;31merror\u{1b}[0m: x", "\u{fffd}[1;31merror\u{fffd}[0m: x"),
            ("\u{1b}[2J\u{7}\r\u{8}", "\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}"),
            ("\u{1b}]0;title\u{7}", "\u{fffd}]0;title\u{fffd}"),
            ("\u{9b}2J \u{1b}", "\u{fffd}2J \u{fffd}"),
            ("\u{202e}txt.exe\u{2066}\u{200b}", "\u{fffd}txt.exe\u{fffd}\u{fffd}"),
            ("\u{fdd0}\u{1b}[8m\u{fdd0}", "\u{fdd0}\u{fffd}[8m\u{fdd0}"),
        ] {
            assert_eq!(shown(text, true), safe, "{text:?}");
            let styled = format!("{ERROR}{text}{ERROR:#}");
            assert_eq!(shown(&styled, true), format!("\u{1b}[1m\u{1b}[31m{safe}\u{1b}[0m"));
            assert_eq!(shown(&styled, false), safe);
            assert_eq!(shown(&format!("{PLAIN}{text}{PLAIN:#}"), true), safe);
        }
    }
}
