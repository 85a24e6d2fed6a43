//! The calls of the library. Each sets up what it needs on a working file, arms the stage,
//! and makes one call.
#![allow(missing_docs, reason = "a table")]

mod device;
mod lni;
mod objects;
mod services;

use cxi::{Device, DriverRelease};
use cxi_ioctl::Opcode;

use crate::stage::{Stage, Value};

/// One call of the library.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub name: &'static str,
    /// The functions of libcxi that it replaces.
    pub aliases: &'static [&'static str],
    /// Function that says whether a release supports it.
    pub possible: fn(DriverRelease) -> bool,
    /// Commands whose refusal means "there is none", as the call documents.
    pub takes_for_an_answer: &'static [Opcode],
    pub act: fn(&Stage) -> cxi::Result<Value>,
}

impl Call {
    pub const fn new(name: &'static str, act: fn(&Stage) -> cxi::Result<Value>) -> Self {
        Self { name, aliases: &[], possible: |_| true, takes_for_an_answer: &[], act }
    }

    const fn like(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn since_13_1(mut self) -> Self {
        self.possible = |release| release >= DriverRelease::Shs13_1;
        self
    }

    const fn since_14_0(mut self) -> Self {
        self.possible = |release| release >= DriverRelease::Shs14_0_0;
        self
    }

    const fn since_november_2026(mut self) -> Self {
        self.possible = |release| release >= DriverRelease::Main2026_11;
        self
    }

    const fn taking_for_an_answer(mut self, opcodes: &'static [Opcode]) -> Self {
        self.takes_for_an_answer = opcodes;
        self
    }
}

/// The results of all calls that a release supports, on a NIC without services that `open` opens.
///
/// # Panics
///
/// A call fails.
pub fn said(release: DriverRelease, open: &dyn Fn() -> Device) -> Vec<String> {
    let possible = all().filter(|call| (call.possible)(release));
    let said = possible.map(|call| {
        let stage = Stage::on(open(), open(), || ());
        let value = (call.act)(&stage).unwrap_or_else(|error| panic!("{}: {error}", call.name));
        stage.end();
        format!("{}: {}", call.name, value.text)
    });
    said.collect()
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Call> {
    [device::CALLS, services::CALLS, lni::CALLS, objects::CALLS].into_iter().flatten()
}
