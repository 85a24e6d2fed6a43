//! Prometheus' text format.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// Gauges of one name.
#[derive(Serialize)]
pub(super) struct Family {
    name: &'static str,
    help: &'static str,
    samples: Vec<Sample>,
}

#[derive(Serialize)]
struct Sample {
    labels: BTreeMap<&'static str, String>,
    value: u32,
}

impl Family {
    pub(super) fn new(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            help,
            samples: Vec::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        labels: impl IntoIterator<Item = (&'static str, String)>,
        value: impl Into<u32>,
    ) {
        self.samples.push(Sample {
            labels: labels.into_iter().collect(),
            value: value.into(),
        });
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            help,
            samples,
        } = self;
        writeln!(f, "# HELP {name} {help}\n# TYPE {name} gauge")?;
        for Sample { labels, value } in samples {
            let labels: Vec<_> = labels
                .iter()
                .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
                .collect();
            if labels.is_empty() {
                writeln!(f, "{name} {value}")?;
            } else {
                writeln!(f, "{name}{{{}}} {value}", labels.join(","))?;
            }
        }
        Ok(())
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_break_out_of_its_label() {
        let mut family = Family::new("cxi_test", "A test.");
        family.add(
            [("b", "a\"b\\c\nd".to_owned()), ("a", String::new())],
            7_u16,
        );
        family.add([], true);
        assert_eq!(
            family.to_string(),
            "# HELP cxi_test A test.\n# TYPE cxi_test gauge\n\
             cxi_test{a=\"\",b=\"a\\\"b\\\\c\\nd\"} 7\ncxi_test 1\n"
        );
    }
}
