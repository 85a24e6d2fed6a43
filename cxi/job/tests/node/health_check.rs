//! Health checks while a job starts: the job loses nothing, and what an
//! ended one left goes.

use std::sync::mpsc;
use std::time::Duration;
use std::{fs, hint, thread};

use cxi_job::{CleanPolicy, Filter, ReleaseOptions, ReleaseStatus, live_vnis};
use cxi_test_kit::full;

use crate::support::{allocate, ids, job, mock, node, user_services, vni};

/// Longer than a round takes on any machine.
const LIMIT: Duration = Duration::from_secs(60);
const LEFT: u16 = 2000;

/// 300 rounds; 10,000 with `CXI_TEST_FULL`. No lock keeps the two apart.
#[test]
fn a_job_that_starts_during_a_health_check_loses_nothing() {
    let rounds = if full() { 10_000 } else { 300 };
    let mock = mock(2);
    let records = tempfile::tempdir().unwrap();
    let (checking, starting) = (node(&mock), node(&mock));
    let (begin, begins) = mpsc::channel();
    let (end, ends) = mpsc::channel();
    thread::scope(|scope| {
        let records = records.path();
        scope.spawn(move || {
            for () in begins {
                let live = || live_vnis(records);
                let policy =
                    CleanPolicy::new("1024-2047".parse().unwrap()).live(&live).foreign(true);
                let clean = checking.clean(&policy, &ReleaseOptions::once());
                let destroyed = clean.unwrap().release.unwrap();
                end.send((destroyed.status(), destroyed.services.len())).unwrap();
            }
        });
        let begin = begin;
        for round in 0..rounds {
            allocate(&starting, job(1001, LEFT));
            let number = 1024 + u16::try_from(round % 64).unwrap();
            let record = records.join(format!("{number}.vnis"));
            begin.send(()).unwrap();
            // So that the job starts at different times in the health check.
            (0..round * 101 % 5000).for_each(|_| hint::spin_loop());
            fs::write(&record, number.to_string()).unwrap();
            let grant = allocate(&starting, job(1000, number));
            let destroyed = ends.recv_timeout(LIMIT).unwrap();
            assert_eq!(destroyed, (ReleaseStatus::Done, 2), "round {round}");
            let granted = grant.services.iter().map(|entry| (entry.device, entry.service));
            let granted: Vec<_> = granted.collect();
            assert_eq!(ids(&user_services(&mock)), granted, "round {round}");
            let ended = starting.release(&Filter::vnis([vni(number)]), &ReleaseOptions::once());
            assert_eq!(ended.services.len(), 2);
            fs::remove_file(&record).unwrap();
        }
    });
    assert_eq!(user_services(&mock).len(), 0);
}
