//! A model of a patent, not of Slingshot: see README.md.

mod member;
mod promises;
mod properties;
mod system;
