//! Hostile input: what each fuzz target does with its bytes.
//!
//! A target must neither panic nor hang, and checks what must hold for any bytes. The bodies are
//! here so that a stable toolchain can run them too, with the program `smoke`.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod dispatch;
pub mod file;
pub mod input;
pub mod mutate;
pub mod response;
pub mod sequence;
pub mod snapshot;
pub mod specification;
pub mod sysfs;
pub mod text;

/// A fuzz target by name, with the inputs it starts from.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Function that tries an input.
    pub run: fn(&[u8]),
    /// Inputs that reach deep.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Longest input worth trying.
    pub longest: usize,
    /// The most bytes that a run may hold at once.
    pub memory: u64,
}

/// Defines every target: its module, the longest input worth trying, and KiB of memory.
macro_rules! targets {
    ($($module:ident: $longest:literal, $kib:literal;)*) => {
        /// Every target.
        pub const TARGETS: &[Target] = &[$(Target {
            name: stringify!($module),
            run: $module::run,
            seeds: $module::seeds,
            longest: $longest,
            memory: $kib << 10,
        }),*];
    };
}

targets! {
    dispatch: 8192, 4096;
    // A list of services may have 65,536 entries.
    response: 4096, 65_536;
    specification: 1024, 256;
    sequence: 1024, 16_384;
    sysfs: 2048, 4096;
    text: 2048, 16_384;
    file: 16_384, 65_536;
    snapshot: 65_536, 65_536;
}

/// A result's value; an error must have a text of bounded length.
pub(crate) fn told<T, E: std::fmt::Display>(result: Result<T, E>) -> Option<T> {
    result
        .inspect_err(|error| {
            let text = error.to_string();
            assert!(!text.is_empty(), "an error has a text");
            assert!(text.len() < 1 << 16, "{text}: an error has an end");
        })
        .ok()
}

/// The target of that name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().copied().find(|target| target.name == name)
}
