//! The command `cxi`.
#![forbid(unsafe_code)]

fn main() {}
