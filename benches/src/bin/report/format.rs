//! Numbers and tables as the document writes them.

/// A time in nanoseconds, with three digits.
pub(crate) fn time(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", digits(value))
}

fn digits(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// How many times as long.
pub(crate) fn ratio(ours: f64, baseline: f64) -> String {
    format!("{:.2}", ours / baseline)
}

/// A whole number with commas.
pub(crate) fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A Markdown table; all columns but the first are numbers.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let rule: Vec<String> = (0..head.len())
        .map(|column| if column == 0 { "---" } else { "---:" }.to_owned())
        .collect();
    let lines = [head, rule];
    lines.iter().chain(rows).map(|cells| line(cells)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        for (nanoseconds, text) in [
            (4.256, "4.26 ns"),
            (99.96, "100 ns"),
            (1_234.0, "1.23 µs"),
            (15_250_000.0, "15.2 ms"),
            (2e9, "2.00 s"),
        ] {
            assert_eq!(time(nanoseconds), text);
        }
    }

    #[test]
    fn counts_have_commas() {
        for (number, text) in [(1.0, "1"), (1000.0, "1,000"), (65_000.0, "65,000")] {
            assert_eq!(count(number), text);
        }
    }
}
