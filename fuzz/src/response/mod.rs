//! A kernel that lies to every call that reads an answer: counts, sizes, enumerations, errors.

mod jobs;
mod liar;
mod objects;
mod services;

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cxi::driver::Quirks;
use cxi::{Clock, Device, Error};
use cxi_ioctl::{DriverRelease, Transport};
use cxi_job::ProcFs;
use cxi_job::explain::Inquiry;
use cxi_mock::{Credentials, Nic, NicConfig};

use crate::input::Input;
use liar::Liar;
use objects::Objects;

/// A clock that nobody waits for.
#[derive(Debug, Default)]
struct Hurry(Mutex<Duration>);

impl Clock for Hurry {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self, time: Duration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Time passes even for those who sleep no time at all.
        *now = now
            .saturating_add(time)
            .saturating_add(Duration::from_micros(1));
    }
}

/// A `/proc` without processes.
fn no_processes() -> ProcFs {
    ProcFs::with_root("/nonexistent")
}

/// What a call said: a value that can be looked at, or an error that says where and what, keeps
/// the driver's errno and can be explained.
fn told<T: Debug>(device: &Device, result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(value) => {
            assert!(!format!("{value:?}").is_empty());
            Some(value)
        }
        Err(error) => {
            refused(device, &error);
            None
        }
    }
}

fn refused(device: &Device, error: &Error) {
    let text = error.to_string();
    let place = format!("{}: ", device.id());
    assert!(text.starts_with(&place), "{text}: says which NIC");
    assert_eq!(error.device(), Some(device.id()), "{text}");
    assert!(text.len() < 8192, "{text}: has an end");
    let explained = Inquiry::new(error)
        .device(device)
        .proc(no_processes())
        .explain();
    assert!(!explained.to_string().is_empty());
}

/// A release, how long the list of calls is, the calls, and the script of the driver.
///
/// # Panics
///
/// When the library does, when an error does not say where, or when something is left behind after
/// everything was closed.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let release = input.choose(&DriverRelease::ALL);
    let calls = input.block();
    let Ok(nic) = Nic::new(NicConfig::new().release(release)) else {
        return;
    };
    let Ok(file) = nic.open() else { return };
    let liar = Arc::new(Liar::new(file.transport(Credentials::root()), input.0));
    let transport: Arc<dyn Transport> = Arc::<Liar>::clone(&liar);
    let mut device = Device::from(transport);
    let mut calls = Input(calls);
    if calls.flag() {
        device = device.allow_quirks(Quirks::all());
    }
    let mut objects = Objects::default();
    while !calls.is_empty() {
        let call = calls.byte();
        match call % 64 {
            0..=27 => services::call(call % 64, &device, &mut calls),
            28..=55 => objects.call(call % 64 - 28, &device, &mut calls),
            _ => jobs::call(call % 64 - 56, &device, &mut calls),
        }
    }
    liar.repent();
    drop(objects);
    drop((device, liar));
    nic.tick();
    let stats = nic.state().stats;
    assert_eq!(
        (stats.lni, stats.eq, stats.md),
        (0, 0, 0),
        "objects of a closed file"
    );
}

/// Each call alone and after those that it needs, with each kind of lie.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let lies: [&[u8]; 9] = [
        &[],
        &[0x80, 0xF0, 11],
        &[0xA0, 0xF0, 0x92, 0x10, 0, 0],
        &[0xA8, 0xF0, 0, 8, 255, 255, 255, 255, 255, 255, 255, 255],
        &[0xA8, 0xF0, 80, 8, 1, 1, 1, 1, 1, 1, 1, 1],
        &[0xC8, 0xF0, 84, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        &[0xE0, 0xF0, 4],
        &[0xE8, 0xF0],
        &[0xF0, 0xF0, 0, 0, 8, 255, 255, 255, 255, 255, 255, 255, 255],
    ];
    // An LNI with one of everything.
    let whole: Vec<u8> = (28..56).flat_map(|call| [call, 1, 1, 1]).collect();
    let mut seeds = Vec::new();
    for (number, lie) in (0..).zip(lies) {
        for call in 0..64_u8 {
            let mut seed = vec![number % 6, 6, call & 1, call, 1, 1, 1, 1];
            seed.extend(lie);
            seeds.push(seed);
        }
        for honest in [0, 8, 24] {
            let mut seed = vec![number % 6, 1 + u8::try_from(whole.len()).unwrap_or(0), 1];
            seed.extend(&whole);
            seed.extend([0].repeat(2 * honest));
            seed.extend(lie);
            seeds.push(seed);
        }
    }
    seeds
}
