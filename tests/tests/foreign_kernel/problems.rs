//! Collects everything that is wrong: a table of calls can have several failures.

use cxi::{ErrorKind, ServiceId};
use cxi_ioctl::{Errno, Opcode};

use crate::calls::Call;
use crate::stage::{DEVICE, Run, Value};

/// Number of problems that are shown.
const SHOWN: usize = 40;

/// Fails at the end, and shows everything that was found.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    /// Records a case that is not as it should be.
    pub(crate) fn ensure(&mut self, holds: bool, case: &str, what: impl std::fmt::Display) {
        if !holds {
            self.0.push(format!("{case}: {what}"));
        }
    }

    /// Checks the parts that every error has, and that its kind claims nothing false, as the
    /// service and the NIC exist.
    pub(crate) fn check_error(&mut self, error: &cxi::Error, case: &str) {
        let wrong = match error.kind() {
            ErrorKind::NoSuchService { .. } | ErrorKind::ServiceDisabled { .. } => true,
            ErrorKind::Removed => error.errno() != Errno::EIO,
            _ => false,
        };
        self.ensure(!wrong, case, format!("the error is wrong: {error}"));
        let start = error.command().map(|opcode| format!("{DEVICE}: {opcode}: "));
        let named = start.is_some_and(|start| error.to_string().starts_with(&start));
        self.ensure(
            named && error.device() == Some(DEVICE),
            case,
            format!("names no device or command: {error}"),
        );
    }

    /// If there is a value all the same, it is the right one, unless the command's failure
    /// answers the call.
    pub(crate) fn check_value(
        &mut self,
        (value, right): (&Value, &Value),
        call: &Call,
        opcode: Opcode,
        case: &str,
    ) {
        self.ensure(
            value.text == right.text || call.takes_for_an_answer.contains(&opcode),
            case,
            format!("{value:?} instead of {right:?}"),
        );
    }

    /// Checks that the created services are those that the call returns, or that its error names.
    pub(crate) fn check_made(&mut self, run: &Run, case: &str) {
        let named = named(run);
        let text = format!("made {:?}, named {named:?}: {:?}", run.made, run.result);
        self.ensure(run.made == named, case, text);
    }

    pub(crate) fn report(self) {
        let shown: Vec<&str> = self.0.iter().take(SHOWN).map(String::as_str).collect();
        assert!(self.0.is_empty(), "{} problems:\n{}", self.0.len(), shown.join("\n"));
    }
}

/// The services that the call reports to have created or left in place.
pub(crate) fn named(run: &Run) -> Vec<ServiceId> {
    match &run.result {
        Ok(value) => value.made.clone(),
        Err(error) => error.leftover().iter().map(|left| left.service).collect(),
    }
}
