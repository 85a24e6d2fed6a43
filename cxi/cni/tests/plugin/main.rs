//! The plugin on mock NICs, in process, with real network namespaces.

mod attachments;
mod bad_input;
mod crash;
mod records;
mod support;
mod vni_sources;
