//! Users of a served node, and what none of them can do to another, to root, or to the node.

#[path = "../node/mod.rs"]
mod node;

mod answers;
mod control;
mod descriptors;
mod rights;
mod windows;
