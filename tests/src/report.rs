//! Formats the differences from a recording.

use std::fmt;

use serde_json::Value;

use crate::compare::Difference;
use crate::scenario::Step;

/// A step that differs or a scenario that cannot be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Step number from 0, and for steps inside others the pass and the number there.
    pub step: String,
    /// The operation, and who asked for it with which command on which open file.
    pub what: String,
    /// The differences.
    pub differences: Vec<Difference>,
}

impl Failure {
    /// A failing step.
    pub fn of(step: &Step, at: &str, differences: Vec<Difference>) -> Self {
        let command = Value::Object(step.cmd.clone());
        let (op, file, caller) = (&step.op, &step.fd, &step.caller);
        Self {
            step: at.to_owned(),
            what: format!("{op} {command} on {file:?} by {caller:?}"),
            differences,
        }
    }

    /// A scenario as a whole.
    pub fn whole(path: &str, expected: &str, got: impl ToString) -> Self {
        Self {
            step: "-".to_owned(),
            what: "the scenario".to_owned(),
            differences: vec![Difference::new(path, expected, got)],
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  step {}: {}", self.step, self.what)?;
        for difference in &self.differences {
            write!(f, "\n      {difference}")?;
        }
        Ok(())
    }
}
