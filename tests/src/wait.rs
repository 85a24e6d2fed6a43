//! Wait objects through the safe library, on a node with sysfs.

use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use cxi::{Device, ServiceId, ServiceSpec, Vni};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::process::Problem;

/// Longer than any operation takes; a test that waits this long fails.
const LONG: Duration = Duration::from_secs(20);

/// Sleeps on a wait object until `wake CLIENT WAIT` sends its interrupt.
///
/// # Errors
///
/// The library's error.
///
/// # Panics
///
/// An interrupt does not arrive or arrives too early, or a freed object remains.
pub fn sleeps_until_woken(device: &Device, wake: &dyn Fn() -> Command) -> Result<(), Problem> {
    let spec = ServiceSpec::builder().vni(Vni::new(64_040)?).build()?;
    let service = device.services().create_scoped(&spec)?;
    let lni = device.alloc_lni(service.id())?;
    let wait = lni.alloc_wait()?;
    let sysfs = Path::new("/sys");
    let path = wait.path(sysfs);
    let client = path.components().rev().nth(3).expect("a client");
    let interrupt = wait.open(sysfs)?;
    assert!(!interrupt.wait(Some(Duration::ZERO))?, "it comes too early");
    for _ in 0..2 {
        let mut waker = wake();
        let waker = waker.arg(client).arg(wait.id().to_string()).spawn();
        assert!(interrupt.wait(Some(LONG))?, "it does not come");
        let sent = waker.and_then(|mut waker| waker.wait());
        assert!(sent.is_ok_and(|status| status.success()), "it is not sent");
        assert!(!interrupt.wait(Some(Duration::ZERO))?, "it is not armed");
    }
    drop(wait);
    assert!(!path.exists(), "its directory is left");
    Ok(())
}

/// Watches a wait object that many times, says what ends that and after how many, and keeps them.
///
/// # Errors
///
/// The library's error.
pub fn watch(device: &Device, times: usize) -> Result<String, Problem> {
    let wait = device.alloc_lni(ServiceId::DEFAULT)?.alloc_wait()?;
    let mut interrupts = Vec::new();
    let ended = (0..times).find_map(|_| match wait.open(Path::new("/sys")) {
        Ok(interrupt) => {
            interrupts.push(interrupt);
            None
        }
        Err(error) => Some(error),
    });
    let ended = ended.map_or_else(|| "nothing".to_owned(), |error| error.to_string());
    writeln!(std::io::stdout(), "{ended}\n{}\nready", interrupts.len())?;
    std::thread::sleep(LONG);
    Ok("ok".to_owned())
}

/// Polls a wait object that many times for a moment, says which one, and returns once it is woken.
///
/// # Errors
///
/// The library's error; that of `ppoll(2)`.
///
/// # Panics
///
/// Something is reported before, or nothing is.
pub fn polls(device: &Device, times: usize) -> Result<String, Problem> {
    let lni = device.alloc_lni(ServiceId::DEFAULT)?;
    let wait = lni.alloc_wait()?;
    let sysfs = Path::new("/sys");
    let path = wait.path(sysfs);
    let client = path.iter().nth_back(3).and_then(|name| name.to_str()).expect("a client");
    let interrupt = wait.open(sysfs)?;
    // Without any time to wait, a server is not asked to report anything later.
    let moment = TimeSpec::new(0, 1);
    for _ in 0..times {
        let mut files = [PollFd::new(interrupt.as_fd(), PollFlags::POLLPRI)];
        assert_eq!(ppoll(&mut files, Some(moment), None)?, 0, "it comes too early");
    }
    writeln!(std::io::stdout(), "{client} {}", wait.id())?;
    assert!(interrupt.wait(Some(LONG))?, "it does not come");
    Ok("woken".to_owned())
}
