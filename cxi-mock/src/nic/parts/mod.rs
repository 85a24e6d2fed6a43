//! The parts of a device. Each owns its fields and knows nothing of commands, nor of other parts
//! unless it contains them.

pub(crate) mod access;
pub(crate) mod accounting;
pub(crate) mod cps;
pub(crate) mod descriptor;
pub(crate) mod domains;
pub(crate) mod files;
pub(crate) mod group;
pub(crate) mod ids;
pub(crate) mod link;
pub(crate) mod lnis;
pub(crate) mod mapping;
pub(crate) mod objects;
pub(crate) mod pid;
pub(crate) mod pools;
pub(crate) mod portals;
pub(crate) mod profile;
pub(crate) mod queues;
pub(crate) mod registers;
pub(crate) mod rgid;
pub(crate) mod services;
pub(crate) mod vnis;
