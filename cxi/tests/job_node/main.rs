//! The scheduler layer on mock NICs: nodes, allocation, explanations, release, clean-up, audit.

mod accounting;
mod allocate;
mod release;
mod support;
