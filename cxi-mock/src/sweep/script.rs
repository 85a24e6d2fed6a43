//! Counts the commands of a run, and lets some of them fail.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cxi_ioctl::{Errno, Opcode};

use super::point::{FailureKind, FailurePoint, Failures};
use crate::Nic;

/// A command of a program, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Attempt {
    /// Number of the node, from 0.
    pub node: u16,
    /// Number of the NIC.
    pub nic: u16,
    /// Number of the command on its NIC, from 1.
    pub number: u64,
    /// Opcode of the command.
    #[cfg_attr(feature = "serde", serde(with = "opcode_name"))]
    pub opcode: Opcode,
    /// The errno that it returned, if it failed.
    pub errno: Option<Errno>,
    /// The failure that it was made to have, if any.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none", default))]
    pub failure: Option<FailurePoint>,
}

#[cfg(feature = "serde")]
mod opcode_name {
    use cxi_ioctl::Opcode;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
    pub(super) fn serialize<S: Serializer>(opcode: &Opcode, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(opcode)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Opcode, D::Error> {
        let name = String::deserialize(from)?;
        let number = name.strip_prefix("opcode ").and_then(|number| number.parse().ok());
        let named = Opcode::all().iter().find(|info| info.name == name).map(|info| info.opcode);
        let opcode = named.or(number.map(Opcode::from_number));
        opcode.ok_or_else(|| D::Error::custom(format!("unknown command '{name}'")))
    }
}

/// Things that a script does around a command, which depend on where the caller runs.
pub trait Surroundings {
    /// Kills the caller of the command.
    fn kill(&self);
    /// Removes the NIC.
    fn unplug(&self);
    /// Waits, before the command is carried out late.
    fn delay(&self);
    /// Lets another process do something.
    fn between(&self);
}

/// The failures of a run, and the commands so far.
///
/// A front end passes each command to [`Nic::perform`].
#[derive(Debug)]
pub struct Script {
    failures: Failures,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    counts: BTreeMap<(u16, u16), u64>,
    commands: Vec<Attempt>,
    /// The only caller was killed in this process: nothing has an effect any more.
    is_dead: bool,
    has_ended: bool,
}

/// A script, and which NIC of it this is.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    script: Arc<Script>,
    node: u16,
    nic: u16,
}

impl Script {
    /// A run in which these commands fail.
    #[must_use]
    pub fn new(failures: Failures) -> Self {
        Self { failures, state: Mutex::default() }
    }

    /// Has the NICs of a node follow it, whose number counts from 0. A NIC follows one script.
    pub fn attach(self: &Arc<Self>, node: u16, nics: &[Arc<Nic>]) {
        for (number, nic) in (0..).zip(nics) {
            nic.set_part(Part { script: Arc::clone(self), node, nic: number });
        }
    }

    /// Counts no more, and lets nothing fail; returns the commands so far, in the order in which
    /// they began.
    pub fn end(&self) -> Vec<Attempt> {
        let mut state = self.state();
        state.has_ended = true;
        std::mem::take(&mut state.commands)
    }

    /// Returns whether a caller in this process was killed.
    pub(super) fn has_killed(&self) -> bool {
        self.state().is_dead
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command that is being carried out.
enum Begun {
    /// By this index, with this failure.
    Counted(usize, Option<FailureKind>),
    /// The caller is dead.
    Dead,
    /// The script has ended.
    Unscripted,
}

impl Part {
    fn begin(&self, opcode: Opcode) -> Begun {
        let mut state = self.script.state();
        if state.has_ended {
            return Begun::Unscripted;
        }
        if state.is_dead {
            return Begun::Dead;
        }
        let (node, nic) = (self.node, self.nic);
        let count = state.counts.entry((node, nic)).or_default();
        *count += 1;
        let number = *count;
        let is_it = |point: &&FailurePoint| {
            (point.node, point.nic, point.number, point.opcode) == (node, nic, number, opcode)
        };
        let failure = self.script.failures.0.iter().find(is_it).cloned();
        let kind = failure.as_ref().map(|point| point.kind);
        // Until it is answered: a caller that is killed gets no answer.
        let errno = Some(Errno::EINTR);
        state.commands.push(Attempt { node, nic, number, opcode, errno, failure });
        Begun::Counted(state.commands.len() - 1, kind)
    }

    fn finish(&self, index: usize, errno: Option<Errno>) {
        if let Some(attempt) = self.script.state().commands.get_mut(index) {
            attempt.errno = errno;
        }
    }

    fn perform<T>(
        &self,
        opcode: Opcode,
        surroundings: &dyn Surroundings,
        act: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let (index, kind) = match self.begin(opcode) {
            Begun::Counted(index, kind) => (index, kind),
            Begun::Dead => return Err(Errno::EIO),
            Begun::Unscripted => return act(),
        };
        let result = match kind {
            Some(FailureKind::Errno(errno)) => Err(errno),
            Some(FailureKind::Lost) => act().and(Err(Errno::EFAULT)),
            Some(FailureKind::KillBefore) => {
                surroundings.kill();
                Err(Errno::EINTR)
            }
            Some(FailureKind::KillAfter) => {
                let result = act();
                self.finish(index, result.as_ref().err().copied());
                surroundings.kill();
                result
            }
            Some(FailureKind::Unplug) => {
                surroundings.unplug();
                act()
            }
            Some(FailureKind::Delay) => {
                surroundings.delay();
                act()
            }
            Some(FailureKind::Between) => {
                surroundings.between();
                act()
            }
            None => act(),
        };
        self.finish(index, result.as_ref().err().copied());
        result
    }
}

impl Nic {
    /// Carries out a command of a program: counts it, and lets it fail, if the NIC follows a
    /// [`Script`]. `act` passes it to the driver.
    ///
    /// # Errors
    ///
    /// Those of `act`, or the errno that the script has for it.
    pub fn perform<T>(
        &self,
        opcode: Opcode,
        surroundings: &dyn Surroundings,
        act: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match self.part() {
            Some(part) => part.perform(opcode, surroundings, act),
            None => act(),
        }
    }
}

/// Payload with which a caller in this process unwinds when it is killed.
#[derive(Debug)]
pub(super) struct Killed;

/// A caller in this process.
pub(crate) struct InThisProcess<'a>(pub(crate) &'a Nic);

impl Surroundings for InThisProcess<'_> {
    fn kill(&self) {
        if let Some(part) = self.0.part() {
            part.script.state().is_dead = true;
        }
        // No message, because nothing went wrong.
        resume_unwind(Box::new(Killed));
    }

    fn unplug(&self) {
        self.0.faults().unplug();
    }

    /// There is no clock.
    fn delay(&self) {}

    /// There is no other process.
    fn between(&self) {}
}
