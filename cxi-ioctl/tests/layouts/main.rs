//! Checks every struct, constant and opcode of this crate against the recorded interfaces of the
//! driver releases, and that nothing recorded there is missing here without a reason.

#![allow(missing_docs, reason = "a test has no users")]

use std::collections::BTreeSet;

mod constants;
mod opcodes;
mod recorded;
mod structs;

/// Structs that are recorded but not defined here: the reason, and names. One that ends in `_` is
/// the beginning of names.
type Reasons = [(&'static str, &'static [&'static str])];

/// Reasons, and which of their names have been found.
struct LeftOut {
    reasons: &'static Reasons,
    found: BTreeSet<&'static str>,
}

impl LeftOut {
    fn new(reasons: &'static Reasons) -> Self {
        let found = BTreeSet::new();
        Self { reasons, found }
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.reasons.iter().flat_map(|(_, names)| *names).copied()
    }

    fn has(&mut self, name: &str) -> bool {
        let same = |left: &&str| name == *left || left.ends_with('_') && name.starts_with(left);
        let found = self.names().find(same);
        self.found.extend(found);
        found.is_some()
    }

    /// Panics with all problems, one of which is a name that has not been found.
    fn report(self, mut problems: Vec<String>) {
        let unknown = self.names().filter(|name| !self.found.contains(name));
        problems.extend(unknown.map(|name| format!("{name}: left out, but not recorded")));
        report(&problems);
    }
}

/// Panics with all problems at once.
fn report(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
