//! Hostile input: what each fuzz target does with its bytes.
//!
//! A target must not panic, must end, and checks what must hold whatever the bytes were. The
//! bodies are here so that a stable toolchain can run them too: `cargo run --release --bin smoke`.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod dispatch;
pub mod file;
pub mod input;
pub mod mutate;
pub mod response;
pub mod scenarios;
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
    /// What it does with an input.
    pub run: fn(&[u8]),
    /// Inputs that reach deep.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Longest input worth trying.
    pub longest: usize,
    /// Most bytes that a run may hold at once.
    pub memory: u64,
}

/// A kibibyte.
const KIB: u64 = 1 << 10;

/// Every target.
pub const TARGETS: [Target; 8] = [
    Target {
        name: "dispatch",
        run: dispatch::run,
        seeds: dispatch::seeds,
        longest: 8192,
        memory: 4096 * KIB,
    },
    Target {
        name: "response",
        run: response::run,
        seeds: response::seeds,
        longest: 4096,
        // A list of services may have 65,536 entries.
        memory: 65_536 * KIB,
    },
    Target {
        name: "specification",
        run: specification::run,
        seeds: specification::seeds,
        longest: 1024,
        memory: 256 * KIB,
    },
    Target {
        name: "sequence",
        run: sequence::run,
        seeds: sequence::seeds,
        longest: 1024,
        memory: 16_384 * KIB,
    },
    Target {
        name: "sysfs",
        run: sysfs::run,
        seeds: sysfs::seeds,
        longest: 2048,
        memory: 4096 * KIB,
    },
    Target {
        name: "text",
        run: text::run,
        seeds: text::seeds,
        longest: 2048,
        memory: 16_384 * KIB,
    },
    Target {
        name: "file",
        run: file::run,
        seeds: file::seeds,
        longest: 16_384,
        memory: 65_536 * KIB,
    },
    Target {
        name: "snapshot",
        run: snapshot::run,
        seeds: snapshot::seeds,
        longest: 65_536,
        memory: 65_536 * KIB,
    },
];

/// The target of that name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}
