//! Devices: which there are, what their driver is, what is left of them, and the values they speak of.

#[path = "../common/mod.rs"]
mod common;

mod availability;
mod discovery;
mod driver;
mod values;
