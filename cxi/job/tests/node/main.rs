//! The scheduler layer on mock NICs: nodes, allocation, explanations, release, cleanup, audit.

mod accounting;
mod allocate;
mod around;
mod audit;
mod clean;
mod cluster;
mod explain;
mod explain_holders;
mod health_check;
mod le_pools;
mod live;
mod meanwhile;
mod node;
mod parallel;
mod rare;
mod release;
mod releases;
mod reused_ids;
mod rgids;
mod second_prolog;
mod soak;
mod support;
mod unfinished;
