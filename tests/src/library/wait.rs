//! Wait objects through the safe library, on a node that has a sysfs.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{Opener, Outcome, ensure, modest};

/// Longer than anything takes; a test that waits for it fails.
const LONG: Duration = Duration::from_secs(20);

/// Sleeps on a wait object until `wake CLIENT WAIT` sends its interrupt.
///
/// # Errors
///
/// What is wrong.
pub fn sleeps_until_woken(open: Opener<'_>, wake: &mut dyn FnMut() -> Command) -> Outcome {
    let device = open()?;
    let service = device.services().create_scoped(&modest(40)?.build()?)?;
    let lni = device.alloc_lni(service.id())?;
    let wait = lni.alloc_wait()?;
    let sysfs = Path::new("/sys");
    let path = wait.path(sysfs);
    let client = path.components().rev().nth(3);
    let client = client.ok_or("the path has no client")?;
    let interrupt = wait.open(sysfs)?;
    ensure(!interrupt.wait(Some(Duration::ZERO))?, "nothing came yet")?;
    for _ in 0..2 {
        let mut waker = wake().arg(client).arg(wait.id().to_string()).spawn()?;
        ensure(interrupt.wait(Some(LONG))?, "the interrupt comes")?;
        ensure(waker.wait()?.success(), "it was sent")?;
        ensure(!interrupt.wait(Some(Duration::ZERO))?, "it is armed again")?;
    }
    wait.close()?;
    let gone = !path.exists();
    lni.close()?;
    service.destroy()?;
    ensure(gone, "its directory is gone")
}
