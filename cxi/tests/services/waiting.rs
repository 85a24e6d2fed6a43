//! Waiting for a busy service.

use std::sync::Mutex;
use std::time::Duration;

use crate::common::{create, modest, nic, root, says, user};
use cxi::{Backoff, Clock};
use cxi_ioctl::{DriverRelease, Errno, Opcode};
use cxi_mock::Fault;

/// A clock that sleeps by being set forward, and notes how long it slept.
#[derive(Debug, Default)]
struct Dial {
    now: Mutex<Duration>,
    slept: Mutex<Vec<u128>>,
}

impl Clock for Dial {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn sleep(&self, time: Duration) {
        *self.now.lock().unwrap() += time;
        self.slept.lock().unwrap().push(time.as_millis());
    }
}

#[test]
fn a_busy_service_is_destroyed_when_it_is_idle() {
    let nic = nic(DriverRelease::Main2026_07);
    let services = root(&nic).services();
    let id = create(&services, modest(5));
    nic.faults().inject(Fault::errno(Errno::EBUSY).on(Opcode::SVC_DESTROY).times(4));
    let clock = Dial::default();
    services
        .destroy_when_idle_with(id, Duration::from_secs(1), Backoff::default(), &clock)
        .unwrap();
    assert_eq!(*clock.slept.lock().unwrap(), [1, 2, 4, 8]);
    assert!(services.get(id).is_err());
}

#[test]
fn waiting_for_a_busy_service_ends_at_the_deadline() {
    let nic = nic(DriverRelease::Main2026_07);
    let services = root(&nic).services();
    let id = create(&services, modest(5));
    let holder = user(&nic);
    let form = cxi_ioctl::LniAllocForm::new();
    form.alloc(&**holder.transport(), id.get()).unwrap();
    says(services.destroy(id), "cxi0: SVC_DESTROY: service 2 is still in use");
    let clock = Dial::default();
    let error = says(
        services.destroy_when_idle_with(id, Duration::from_millis(10), Backoff::default(), &clock),
        "cxi0: SVC_DESTROY: service 2 is still in use after 10ms and 5 attempts",
    );
    assert!(error.is_busy());
    assert_eq!(error.errno(), Errno::EBUSY);
    assert_eq!(*clock.slept.lock().unwrap(), [1, 2, 4, 3]);
    // The process ends: now it goes.
    drop(holder);
    services.destroy_when_idle(id, Duration::ZERO).unwrap();
}
