//! The stored instruction counts: `benches/instructions.toml`.
//!
//! The file is TOML of the simplest kind: comments, two tables, a line for each entry. In
//! `[conditions]` stands what counts depend on beside the code; `[instructions]` has a count for
//! each series, in instructions a call. The names of series are `layer/what`; a layer is
//!
//! | layer | what a call is |
//! | --- | --- |
//! | `write` | `write(2)` of the commands' bytes to `/dev/null`, nothing else |
//! | `library` | `cxi` on a device that writes to `/dev/null` and answers from memory |
//! | `mock` | the same commands' bytes, handed to the mock; with the release behind an `@` |
//! | others | the function of that name |
//!
//! So `library/x` less `write/x` is what the library adds to the system calls of `x`.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.toml");

const HEAD: &str = "\
# Instructions a call of each series, and what they depend on beside the code. Written by
#     cargo bench -p cxi-benches --bench instructions -- --renew
# and read by cxi_benches::instructions, which says what the series are.
";

/// Instruction counts, and what they depend on beside the code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Compiler, target, profile, C library.
    pub conditions: BTreeMap<String, String>,
    /// Instructions a call, by series.
    pub instructions: BTreeMap<String, u32>,
}

impl Counts {
    /// The counts in the repository.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not what [`store`](Self::store) writes.
    pub fn stored() -> io::Result<Self> {
        let text = std::fs::read_to_string(FILE)?;
        Self::parse(&text).map_err(|text| io::Error::new(ErrorKind::InvalidData, text))
    }

    /// Puts the counts into the repository in place of those that are there.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn store(&self) -> io::Result<&'static Path> {
        std::fs::write(FILE, self.to_string())?;
        Ok(Path::new(FILE))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut counts = Self::default();
        let mut table = "";
        for (number, line) in (1..).zip(text.lines()) {
            let wrong = |expected| format!("{FILE}:{number}: expected {expected}, found '{line}'");
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.starts_with('[') {
                table = line;
                continue;
            }
            let (key, value) = line.split_once(" = ").ok_or_else(|| wrong("key = value"))?;
            let (key, value) = (key.trim_matches('"'), value.trim_matches('"'));
            match table {
                "[conditions]" => {
                    counts.conditions.insert(key.into(), value.into());
                }
                "[instructions]" => {
                    let count = value.parse().map_err(|_| wrong("a count"))?;
                    counts.instructions.insert(key.into(), count);
                }
                _ => return Err(wrong("[conditions] or [instructions]")),
            }
        }
        Ok(counts)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HEAD}\n[conditions]\n")?;
        for (name, value) in &self.conditions {
            writeln!(f, "{name} = \"{value}\"")?;
        }
        write!(f, "\n[instructions]\n")?;
        for (series, count) in &self.instructions {
            writeln!(f, "\"{series}\" = {count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_they_were_written() {
        let counts = Counts {
            conditions: BTreeMap::from([("rustc".into(), "rustc 1.0 (abc)".into())]),
            instructions: BTreeMap::from([("mock/a + b@main".into(), 7), ("x/y".into(), 8)]),
        };
        assert_eq!(Counts::parse(&counts.to_string()), Ok(counts));
    }

    #[test]
    fn a_bad_line_is_named() {
        let text = "# head\n[instructions]\n\"a/b\" = many\n";
        let error = Counts::parse(text).unwrap_err();
        assert!(
            error.ends_with("instructions.toml:3: expected a count, found '\"a/b\" = many'"),
            "{error}"
        );
        assert!(Counts::parse("a = 1\n").is_err());
    }

    #[test]
    fn the_stored_counts_can_be_read() {
        let stored = Counts::stored().unwrap();
        assert!(stored.conditions.contains_key("rustc"));
        assert!(stored.instructions.contains_key("write/service get"));
    }
}
