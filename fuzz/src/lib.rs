//! Hostile input: what each fuzz target does with its bytes.
//!
//! A target must not panic, and checks what must hold whatever the bytes were. The bodies are here
//! so that a stable toolchain can run them too: `cargo run --release --bin smoke`.
#![forbid(unsafe_code)]

pub mod dispatch;
pub mod input;
pub mod response;
pub mod snapshot;
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
}

/// Every target.
pub const TARGETS: [Target; 4] = [
    Target {
        name: "dispatch",
        run: dispatch::run,
        seeds: dispatch::seeds,
    },
    Target {
        name: "response",
        run: response::run,
        seeds: response::seeds,
    },
    Target {
        name: "text",
        run: text::run,
        seeds: text::seeds,
    },
    Target {
        name: "snapshot",
        run: snapshot::run,
        seeds: snapshot::seeds,
    },
];
