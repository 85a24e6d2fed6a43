//! A model of a patent, not of Slingshot: see README.md.

mod member;
mod properties;
mod sequences;
mod system;
