//! A kernel that lies to every call that reads an answer: counts, sizes, enumerations, errors.

mod jobs;
mod liar;

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cxi::driver::Quirks;
use cxi::{Clock, Device, Error};
use cxi_ioctl::DriverRelease;
use cxi_job::explain::Inquiry;
use cxi_mock::{Nic, NicConfig};
use cxi_site::ProcFs;
use cxi_tests::calls;
use cxi_tests::stage::Stage;

use crate::input::Input;
use liar::Liar;

/// A clock on which waiting takes no time.
#[derive(Debug, Default)]
struct Hurry(Mutex<Duration>);

impl Clock for Hurry {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self, time: Duration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Time passes even in a sleep of no time.
        *now = now.saturating_add(time).saturating_add(Duration::from_micros(1));
    }
}

/// A `/proc` without processes.
fn no_processes() -> ProcFs {
    ProcFs::with_root("/nonexistent")
}

/// Checks the result of a call: a value that can be looked at, or an error that says where and
/// what, keeps the driver's errno and can be explained.
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
    let explained = Inquiry::new(error).device(device).proc(no_processes()).explain();
    assert!(!explained.to_string().is_empty());
}

/// A release, whether quirks are allowed, a call, arguments of it, and the script of the driver from
/// the moment on at which the call is made.
///
/// # Panics
///
/// When the library does, when an error does not say where, or when something is left behind after
/// everything was closed.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let release = input.choose(&DriverRelease::ALL);
    let quirks = if input.flag() { Quirks::all() } else { Quirks::empty() };
    let number = usize::from(input.byte()) % (calls::all().count() + jobs::CALLS);
    let arguments = input.block();
    let Ok(nic) = Nic::new(NicConfig::new().release(release)) else { return };
    let Ok(file) = nic.root() else { return };
    let liar = Arc::new(Liar::new(file, input.0));
    let (transport, begins) = (Arc::<Liar>::clone(&liar), Arc::clone(&liar));
    let mut stage = Stage::new(&nic, transport, move || begins.lie(true));
    stage.device = stage.device.clone().allow_quirks(quirks);
    match calls::all().nth(number) {
        Some(call) if (call.possible)(release) => {
            drop(told(&stage.device, (call.act)(&stage)));
        }
        Some(_) => {}
        None => {
            let call = number - calls::all().count();
            jobs::call(call, stage.armed(), &mut Input(arguments));
        }
    }
    // It is honest, so that everything can be given back.
    liar.lie(false);
    drop((stage, liar));
    nic.tick();
    let stats = nic.state().stats;
    assert_eq!((stats.lni, stats.eq, stats.md), (0, 0, 0), "objects of a closed file");
}

/// Each call with each kind of lie, at once and after some true answers.
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
    let mut seeds = Vec::new();
    for (number, lie) in (0..).zip(lies) {
        for (call, _) in (0..u8::MAX).zip(0..calls::all().count() + jobs::CALLS) {
            for honest in [0, 2, 5] {
                let mut seed = vec![(number + call) % 6, call & 1, call, 4, 1, 1, 1, 1];
                seed.extend([0].repeat(2 * honest));
                seed.extend(lie);
                seeds.push(seed);
            }
        }
    }
    seeds
}
