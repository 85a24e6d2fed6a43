//! The library on a kernel of another version: answers of other lengths, unknown values, unknown
//! errors, commands that are missing, a NIC that goes away in the middle.
//!
//! Whatever happens, the result is a typed error that names device and command with the errno, or
//! the right value; nothing panics, and nothing is left in place without being named. Each call of
//! the library is a row of a table (`tests/src/calls`), and the tests find out by themselves which
//! commands it sends. `complete` compares the table with what the library has.

#![allow(missing_docs, reason = "a test has no users")]

mod complete;
mod forms;
mod job;
mod lengths;
mod moments;
mod problems;
mod raw;
mod refusals;
mod stage;
mod twist;
mod values;

use cxi_tests::calls;
