//! Users of a served node, and what they cannot do to another user, to root, or to the node.

mod answers;
mod control;
mod descriptors;
mod polls;
mod rights;
mod windows;
