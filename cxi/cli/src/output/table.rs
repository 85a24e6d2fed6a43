//! Aligned columns.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::HEADING;

/// A table without lines: a heading and rows, with two spaces between columns.
pub(crate) struct Columns {
    table: Table,
}

impl Columns {
    pub(crate) fn new(headings: &[&str]) -> Self {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(headings.iter().copied());
        Self { table }
    }

    /// Columns of numbers.
    pub(crate) fn right(mut self, columns: &[usize]) -> Self {
        for &index in columns {
            if let Some(column) = self.table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        self
    }

    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.table.add_row(cells.into_iter().map(Into::into));
    }

    /// The table, with each line indented by `indent` spaces.
    pub(crate) fn render(mut self, indent: usize) -> String {
        for column in self.table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let mut text = String::new();
        for (number, line) in self.table.lines().enumerate() {
            let line = line.trim_end();
            let style = if number == 0 {
                HEADING
            } else {
                anstyle::Style::new()
            };
            let _ = writeln!(text, "{:indent$}{style}{line}{style:#}", "");
        }
        text
    }
}
