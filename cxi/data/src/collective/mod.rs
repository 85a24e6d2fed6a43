//! Barrier, broadcast, reduce and allreduce in software, for groups of processes without MPI.
//!
//! A [`Member`] is one process's part of a group: plain state, without I/O, a clock or an
//! allocation after it was made. Its user gives it messages and the time, and sends the messages
//! that it hands out, over any transport that may lose, repeat, delay and reorder them. A [`Group`]
//! does that over the data path of a NIC, with an [`Endpoint`]. See `docs/COLLECTIVES.md` for what it
//! costs in groups of up to 10,000 members.
//!
//! [`Pings`] say whether two processes reach each other at all, and how fast.
//!
//! # Method
//!
//! The members form a [`Tree`]. Each combines what it and its children contribute and reports it
//! to its parent; the root's release goes down the same way and is acknowledged. This is the
//! combining tree barrier of Yew, Tzeng and Lawrie (1987), with messages instead of shared
//! counters, as in Mellor-Crummey and Scott (1991). Operations are numbered and the numbers are
//! compared in a circle (RFC 1982), so that a message can be told from one of an earlier
//! operation; what is not answered is repeated, as in any protocol that stops and waits. No switch
//! takes part.
//!
//! # Failures
//!
//! An operation ends with a result, or with a [`Failure`] that names a member and a
//! [cause](Cause): one that is silent for longer than [`Timing::silence`], or that is there and has
//! not entered by [`Timing::deadline`]. The failure is passed to all members, and is final: a group
//! that has failed, or that one process has left and joined again, must be made anew with another
//! number.
//!
//! A process is heard only while its member is polled. Between operations, it must therefore poll
//! at least once in every [`Timing::silence`], or the others must allow for it.

mod endpoint;
mod failure;
mod group;
mod member;
mod message;
mod operation;
mod pings;
mod tree;
mod wire;

pub use endpoint::Endpoint;
pub use failure::{Cause, Error, Failure, Refused};
pub use group::Group;
pub use member::{Counts, InvalidTiming, Member, State, Timing};
pub use message::{Message, Packet};
pub use operation::{Combine, Operation, Value};
pub use pings::{Pings, RoundTrips};
pub use tree::Tree;
