//! A report as JUnit's XML, which CI systems show.

use std::fmt::Write as _;

use cxi_mock::{Failures, Finding, SweepReport};

/// The report. Each run is a test case, and each finding a failure of one.
pub(super) fn of(report: &SweepReport) -> String {
    // A finding of a pair may name fewer failures than its run had.
    let shown: Vec<&Failures> = report
        .cases
        .iter()
        .chain(report.findings.iter().map(|finding| &finding.failures))
        .collect();
    let mut cases: Vec<&Failures> = Vec::new();
    for failures in shown {
        if !cases.contains(&failures) {
            cases.push(failures);
        }
    }
    let of = |failures: &Failures| -> Vec<&Finding> {
        report.findings.iter().filter(|finding| finding.failures == *failures).collect()
    };
    let failed = cases.iter().filter(|failures| !of(failures).is_empty()).count();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        text,
        "<testsuite name=\"cxi-mock sweep\" tests=\"{}\" failures=\"{failed}\" skipped=\"{}\">",
        cases.len(),
        report.missed.len(),
    );
    for failures in cases {
        let class = failures.0.first().map(|point| point.opcode.to_string()).unwrap_or_default();
        let name = escaped(&failures.to_string());
        let _ = write!(text, "  <testcase classname=\"{class}\" name=\"{name}\"");
        let found = of(failures);
        if found.is_empty() && !report.missed.contains(failures) {
            text.push_str("/>\n");
            continue;
        }
        text.push_str(">\n");
        if found.is_empty() {
            text.push_str("    <skipped message=\"the program did not get there\"/>\n");
        }
        for finding in found {
            let _ = writeln!(
                text,
                "    <failure type=\"{}\" message=\"{}\">{}\n{}</failure>",
                finding.kind,
                escaped(&finding.text),
                escaped(&format!("ended with: {}", finding.ended)),
                escaped(&finding.output),
            );
        }
        text.push_str("  </testcase>\n");
    }
    text.push_str("</testsuite>\n");
    text
}

/// Text between tags and in attributes. XML has no way to write most control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(character),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_program_prints_ends_a_tag() {
        assert_eq!(escaped("a<b>&\"c\"\u{1b}[1m\n"), "a&lt;b&gt;&amp;&quot;c&quot;\u{fffd}[1m\n");
    }
}
