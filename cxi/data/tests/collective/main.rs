//! The properties of collectives in software, on a simulated network.

mod cost;
mod faults;
mod life;
mod simulation;
mod wire;
