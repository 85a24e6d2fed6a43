//! A site with many nodes, and one whose processes are killed.

mod life;
mod owners;
mod pools;
mod support;
