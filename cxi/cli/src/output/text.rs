//! Text for people: tables, bars, and values that are the same on several NICs.

use std::fmt::{Display, Write as _};
use std::{env, io};

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use cxi::DeviceId;
use cxi_site::printable;
use terminal_size::terminal_size_of;

use super::Format;
use super::style::{HEADING, PLAIN, SHORT, Style};

/// From which percentage on it is.
const SHORT_FROM: f64 = 90.0;

/// The style of a row about something of which this percentage is taken.
pub(crate) fn fullness(percent: f64) -> Style {
    if is_short(percent) { SHORT } else { PLAIN }
}

/// Returns whether nearly everything is taken.
pub(crate) fn is_short(percent: f64) -> bool {
    percent >= SHORT_FROM
}

/// Returns the percentage of a total that is taken.
pub(crate) fn percent(part: impl Into<u32>, total: impl Into<u32>) -> f64 {
    f64::from(part.into()) * 100.0 / f64::from(total.into().max(1))
}

/// The width of bars, in characters.
pub(crate) const BAR_WIDTH: usize = 32;

/// The heading that stands for columns that do not fit on a narrow terminal.
const CUT: &str = "  ...";

/// The maximum width of lines: the variable COLUMNS, or else the width of the terminal; `None` for no
/// maximum.
fn terminal_width() -> Option<usize> {
    if Format::chosen() != Format::Table {
        return None;
    }
    let named = env::var("COLUMNS").ok();
    named
        .and_then(|columns| columns.parse().ok())
        .or_else(|| Some(terminal_size_of(io::stdout())?.0.0.into()))
}

/// Prose whose lines fit the terminal: they are broken between words, and continue indented by two
/// more spaces.
pub(crate) fn wrapped(text: &str) -> String {
    wrapped_within(text, terminal_width().unwrap_or(usize::MAX))
}

fn wrapped_within(text: &str, width: usize) -> String {
    let mut wrapped = String::new();
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            // A word that is wider than the terminal cannot be broken.
            if column > indent && column + word.trim_end().chars().count() > width {
                wrapped.truncate(wrapped.trim_end().len());
                column = indent + 2;
                let _ = write!(wrapped, "\n{:column$}", "");
            }
            wrapped += word;
            column += word.chars().count();
        }
    }
    wrapped
}

/// A table without lines: a heading and rows, with two spaces between columns.
pub(crate) struct Columns {
    table: Table,
    /// Of the heading and of each row.
    styles: Vec<Style>,
}

impl Columns {
    pub(crate) fn new(headings: &[&str]) -> Self {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(headings.iter().copied());
        Self { table, styles: vec![HEADING] }
    }

    /// Aligns these columns, which contain numbers, to the right.
    pub(crate) fn right(mut self, columns: &[usize]) -> Self {
        for &index in columns {
            if let Some(column) = self.table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        self
    }

    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.row_in(PLAIN, cells);
    }

    /// A row whose style says something about it.
    pub(crate) fn row_in<T: Into<String>>(
        &mut self,
        style: Style,
        cells: impl IntoIterator<Item = T>,
    ) {
        // A cell is one line.
        let cells = cells.into_iter().map(Into::into);
        self.table.add_row(cells.map(|cell| printable(&cell).into_owned()));
        self.styles.push(style);
    }

    /// The table, with each line indented by `indent` spaces.
    ///
    /// If that is wider than the terminal, the last columns are left out, and the heading says so. At
    /// least two columns stay, because a name is useless without its value.
    pub(crate) fn render(self, indent: usize) -> String {
        self.render_within(indent, terminal_width())
    }

    /// As [`render`](Self::render), for a terminal of this width.
    pub(crate) fn render_within(mut self, indent: usize, width: Option<usize>) -> String {
        for column in self.table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let mut cut = "";
        if let Some(width) = width {
            for last in (2..self.table.column_count()).rev() {
                let widest = self.table.lines().map(|line| line.trim_end().chars().count()).max();
                if indent + widest.unwrap_or_default() + cut.len() <= width {
                    break;
                }
                if let Some(column) = self.table.column_mut(last) {
                    column.set_constraint(ColumnConstraint::Hidden);
                    cut = CUT;
                }
            }
        }
        let mut text = String::new();
        for (line, style) in self.table.lines().zip(self.styles) {
            let line = line.trim_end();
            let _ = writeln!(text, "{:indent$}{style}{line}{style:#}{cut}", "");
            // Only the heading says so.
            cut = "";
        }
        text
    }
}

/// Characters of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Palette {
    used: char,
    reserved: char,
    rest: char,
}

impl Palette {
    pub(crate) const ASCII: Self = Self { used: '#', reserved: '=', rest: '.' };
    const BLOCKS: Self = Self { used: '█', reserved: '▒', rest: '░' };

    /// Block characters if the locale's character set has them.
    pub(crate) fn of_locale() -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .filter_map(env::var_os)
            .find(|value| !value.is_empty());
        let utf8 = locale.is_some_and(|value| {
            let value = value.to_string_lossy().to_ascii_lowercase();
            value.contains("utf-8") || value.contains("utf8")
        });
        if utf8 { Self::BLOCKS } else { Self::ASCII }
    }

    /// A legend for the characters.
    pub(crate) fn legend(self) -> String {
        let Self { used, reserved, rest } = self;
        format!("{used} in use  {reserved} reserved, not in use  {rest} free")
    }

    /// A bar of `width` characters for `max` units.
    pub(crate) fn bar(self, width: usize, used: u32, reserved: u32, max: u32) -> String {
        self.parts(width, used, reserved, max).concat()
    }

    /// The parts of a bar: in use, reserved, and the rest. Anything above zero is at least one
    /// character wide, so that a small reservation does not look like none.
    pub(crate) fn parts(self, width: usize, used: u32, reserved: u32, max: u32) -> [String; 3] {
        if max == 0 {
            return Default::default();
        }
        let cells = |amount: u32| {
            let amount = amount.min(max) as usize;
            let cells = amount * width / max as usize;
            if amount > 0 { cells.max(1) } else { 0 }
        };
        let used = cells(used);
        let reserved = cells(reserved).max(used) - used;
        let rest = width - used - reserved;
        let run = |character: char, count: usize| std::iter::repeat_n(character, count).collect();
        [run(self.used, used), run(self.reserved, reserved), run(self.rest, rest)]
    }
}

/// A value for a table; a dash if there is none.
pub(crate) fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Groups equal values, with the NICs that have them, in order of first appearance.
pub(crate) fn merge<T: PartialEq>(
    values: impl IntoIterator<Item = (DeviceId, T)>,
) -> Vec<(Vec<DeviceId>, T)> {
    let mut groups: Vec<(Vec<DeviceId>, T)> = Vec::new();
    for (device, value) in values {
        match groups.iter_mut().find(|(_, other)| *other == value) {
            Some((devices, _)) => devices.push(device),
            None => groups.push((vec![device], value)),
        }
    }
    groups
}

/// The names of NICs in the form that `--device` accepts, such as `cxi0-3,cxi5`.
pub(crate) fn nic_names(devices: &[DeviceId]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in devices.iter().map(|device| device.number()) {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let names = runs.into_iter().map(|(first, last)| {
        if first == last { format!("cxi{first}") } else { format!("cxi{first}-{last}") }
    });
    joined(names, ",")
}

/// A line for each text that NICs have, after their names, such as `cxi0-3: no link`.
pub(crate) fn by_nic<T: PartialEq + Display>(
    texts: impl IntoIterator<Item = (DeviceId, T)>,
) -> Vec<String> {
    let lines = merge(texts).into_iter();
    lines.map(|(devices, text)| format!("{}: {text}", nic_names(&devices))).collect()
}

/// Items as text, with a separator between them.
pub(crate) fn joined(items: impl IntoIterator<Item: ToString>, separator: &str) -> String {
    let texts: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    texts.join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASCII: Palette = Palette::ASCII;

    #[test]
    fn parts_add_up() {
        assert_eq!(ASCII.bar(10, 0, 0, 100), "..........");
        assert_eq!(ASCII.bar(10, 20, 50, 100), "##===.....");
        assert_eq!(ASCII.bar(10, 70, 50, 100), "#######...");
        assert_eq!(ASCII.bar(10, 100, 100, 100), "##########");
    }

    #[test]
    fn prose_is_broken_between_words() {
        for (text, width, wrapped) in [
            ("a bc def\n  - gh ij kl\n", 8, "a bc def\n  - gh\n    ij\n    kl\n"),
            ("a bc def", 7, "a bc\n  def"),
            ("  wide: much wider\n", 5, "  wide:\n    much\n    wider\n"),
            ("é é é\n\n", 5, "é é é\n\n"),
            ("any  \nwidth", usize::MAX, "any  \nwidth"),
        ] {
            assert_eq!(wrapped_within(text, width), wrapped, "{text:?}");
        }
    }

    #[test]
    fn little_is_not_nothing() {
        assert_eq!(ASCII.bar(10, 0, 1, 16384), "=.........");
        assert_eq!(ASCII.bar(10, 1, 0, 16384), "#.........");
    }

    #[test]
    fn more_than_the_maximum_stays_within_the_bar() {
        assert_eq!(ASCII.bar(4, 9, 9, 8), "####");
        assert_eq!(ASCII.bar(4, 1, 1, 0), "");
    }

    #[test]
    fn neighbors_become_ranges() {
        let devices =
            |numbers: &[u32]| -> Vec<_> { numbers.iter().copied().map(DeviceId::new).collect() };
        assert_eq!(nic_names(&devices(&[0])), "cxi0");
        assert_eq!(nic_names(&devices(&[0, 1, 2, 3, 5])), "cxi0-3,cxi5");
        assert_eq!(nic_names(&devices(&[u32::MAX])), "cxi4294967295");
    }

    #[test]
    fn equal_values_are_merged_in_order() {
        let nic = DeviceId::new;
        assert_eq!(
            merge([(nic(0), 'a'), (nic(0), 'b'), (nic(1), 'b'), (nic(1), 'a')]),
            [(vec![nic(0), nic(1)], 'a'), (vec![nic(0), nic(1)], 'b'),]
        );
    }
}
