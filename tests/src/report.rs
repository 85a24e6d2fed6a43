//! The outcome of a scenario, as text.

use std::fmt;

use serde_json::Value;

use crate::compare::Difference;
use crate::scenario::{Caller, Step};

/// The outcome of one scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// All as recorded.
    Passed,
    /// Steps that differ, in order.
    Failed(Vec<Failure>),
}

/// A step that differs, or a scenario that cannot be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Step number from 0, and for steps inside others the pass and the number there.
    pub step: String,
    /// The operation.
    pub op: String,
    /// Who asked, on which open file.
    pub caller: String,
    /// The command.
    pub command: String,
    /// What is not as recorded.
    pub differences: Vec<Difference>,
}

impl Failure {
    /// A failing step.
    pub fn of(step: &Step, at: &str, differences: Vec<Difference>) -> Self {
        Self {
            step: at.to_owned(),
            op: step.op.clone(),
            caller: describe(step.caller.as_ref(), step.fd.as_deref()),
            command: Value::Object(step.cmd.clone()).to_string(),
            differences,
        }
    }

    /// A scenario as a whole.
    pub fn whole(path: &str, expected: &str, got: impl ToString) -> Self {
        Self {
            step: "-".to_owned(),
            op: "scenario".to_owned(),
            caller: String::new(),
            command: String::new(),
            differences: vec![Difference::new(path, expected, got)],
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  step {}: {}", self.step, self.op)?;
        if !self.caller.is_empty() {
            write!(f, " by {}", self.caller)?;
        }
        if self.command.len() > 2 {
            write!(f, " {}", self.command)?;
        }
        for difference in &self.differences {
            write!(f, "\n      {difference}")?;
        }
        Ok(())
    }
}

fn describe(caller: Option<&Caller>, fd: Option<&str>) -> String {
    let mut words = Vec::new();
    if let Some(caller) = caller {
        words.push(format!("uid {} gid {}", caller.uid, caller.gid));
        if !caller.groups.is_empty() {
            words.push(format!("groups {:?}", caller.groups));
        }
        if caller.admin {
            words.push("admin".to_owned());
        }
        match caller.net_raw {
            Some(true) if !caller.admin => words.push("net_raw".to_owned()),
            Some(false) if caller.admin => words.push("without net_raw".to_owned()),
            _ => {}
        }
        if caller.netns != cxi_mock::Credentials::INITIAL_NETNS {
            words.push(format!("netns {}", caller.netns));
        }
    }
    words.extend(fd.map(|fd| format!("on '{fd}'")));
    words.join(" ")
}
