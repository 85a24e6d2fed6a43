//! Everything that happens on a node at the same time: jobs that start twice, run, end, are killed
//! or fail, cleanups, and a pool that is replayed at the same time. For two seconds, or as many as
//! `CXI_SOAK_SECONDS` says.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, slice, thread};

use cxi::Vni;
use cxi_ioctl::{Errno, Fault, Opcode};
use cxi_job::{Filter, JobRequest, Node, ReleaseOptions, ReleaseStatus};
use cxi_mock::MockNode;
use cxi_site::pool::{Event, PoolConfig, Timestamp, VniPool, VniRequest};
use cxi_site::{FileLock, IdSet, JobId};
use cxi_test_kit::Random;

use crate::support::{cxi, faulty, lock, mock, mortal, node, pool, user_services};

const NICS: u8 = 4;
const WORKERS: u64 = 9;
/// Time by which a slow machine may be later than it should.
const LATEST: Duration = Duration::from_secs(60);
const AT: Timestamp = Timestamp::from_millis(0);

/// Books of a scheduler.
#[derive(Debug)]
struct Books {
    pool: VniPool,
    log: Vec<Event>,
    /// VNIs of jobs that live, recorded before they get a service.
    records: IdSet,
    /// Jobs whose services must be there.
    running: BTreeMap<u16, u32>,
}

#[derive(Debug)]
struct Scene {
    mock: MockNode,
    lock: FileLock,
    books: Mutex<Books>,
    started: AtomicU64,
    /// Jobs that had their services.
    ran: AtomicU64,
    /// Services that a cleanup destroyed.
    cleaned: AtomicU64,
    begun: Instant,
    time: Duration,
}

impl Scene {
    fn change<T>(&self, change: impl FnOnce(&mut Books) -> T) -> T {
        change(&mut self.books.lock().unwrap())
    }

    /// Until the time is over and enough has happened, however slow the machine is.
    fn is_on(&self) -> bool {
        let elapsed = self.begun.elapsed();
        assert!(elapsed < self.time + LATEST, "{self:?}");
        elapsed < self.time || !self.is_enough()
    }

    fn is_enough(&self) -> bool {
        let seen = |count: &AtomicU64| count.load(Ordering::SeqCst);
        seen(&self.ran) > 20 && seen(&self.cleaned) > 0
    }

    /// A process that works on the node: a sound one, one whose commands fail, or one that is
    /// killed after some.
    fn process(&self, dice: &mut Random) -> Node {
        let node = match dice.below(4) {
            0 => mortal(&self.mock, dice.below(60)),
            1 => {
                let (node, faults) = faulty(&self.mock);
                let fault = &faults[dice.below(usize::from(NICS))];
                let (opcode, errno) = match dice.below(4) {
                    0 => (Opcode::SVC_DESTROY, Errno::EBUSY),
                    1 => (Opcode::SVC_ALLOC, Errno::ENOSPC),
                    2 => (Opcode::SVC_ALLOC, Errno::EFAULT),
                    _ => (Opcode::SVC_LIST_GET, Errno::ENOMEM),
                };
                let injection = Fault::errno(errno).on(opcode).after(dice.below(2));
                let lost = errno == Errno::EFAULT;
                let injection = injection.times(1);
                fault.inject(if lost { injection.carried_out() } else { injection });
                node
            }
            _ => node(&self.mock),
        };
        node.with_lock(self.lock.clone())
    }

    /// The life of one job.
    fn job(&self, dice: &mut Random) {
        let number = self.started.fetch_add(1, Ordering::SeqCst);
        let job = JobId::new(format!("job{number}")).unwrap();
        let uid = 1000 + dice.below(3);
        let vni = self.change(|books| {
            let reserved = books.pool.reserve(&job, &VniRequest::vnis(1), AT).ok()?;
            books.log.extend(reserved.event);
            let vni = reserved.result.iter().next()?;
            assert!(books.records.insert(vni.get()), "VNI {vni} is a live job's");
            Some(vni)
        });
        let Some(vni) = vni else { return };
        let request = JobRequest::builder()
            .uid(uid)
            .vni(vni)
            .limits(cxi_job::JobLimits::Fixed(cxi::Limits::default()));
        let request = request.build().unwrap();
        // The prolog, sometimes twice at the same time.
        let (first, second) = (self.process(dice), self.process(dice));
        let twice = dice.below(3) == 0;
        let runs = thread::scope(|scope| {
            let again = twice.then(|| scope.spawn(|| second.allocate(&request).is_ok()));
            let once = first.allocate(&request).is_ok();
            once | again.is_some_and(|again| again.join().unwrap())
        });
        if runs {
            self.ran.fetch_add(1, Ordering::SeqCst);
            self.change(|books| books.running.insert(vni.get(), uid));
            for _ in 0..dice.below(6) {
                self.check(vni, uid);
                thread::sleep(Duration::from_micros(dice.below(500)));
            }
            self.check(vni, uid);
            self.change(|books| books.running.remove(&vni.get()));
        }
        let filter = Filter::vnis([vni]).uid(uid);
        let options = ReleaseOptions::until(Duration::from_millis(2));
        let ended = self.process(dice).release(&filter, &options).status();
        self.change(|books| {
            let released = books.pool.release(&job, &[], AT).unwrap();
            books.log.extend(released.event);
            books.records.remove(vni.get());
            // An epilog that asked all NICs knows; else a cleanup finds what is left.
            if matches!(ended, ReleaseStatus::Done | ReleaseStatus::NothingToDo) {
                let confirmed = books.pool.confirm_all(slice::from_ref(&job), AT).unwrap();
                books.log.extend(confirmed.event);
            }
        });
    }

    /// A live job has its service on every NIC.
    fn check(&self, vni: Vni, uid: u32) {
        let filter = Filter::vnis([vni]).uid(uid);
        let services = user_services(&self.mock);
        for number in 0..u32::from(NICS) {
            let mine = |service| filter.selects(cxi(number), service);
            let there = services.iter().filter(|(nic, _)| *nic == cxi(number));
            let count = there.filter(|(_, service)| mine(service)).count();
            assert!(count > 0, "the live job of VNI {vni} lost its service on cxi{number}");
        }
    }

    fn clean(&self, node: &Node) {
        let records = || Ok(self.change(|books| books.records.clone()));
        let policy = pool().live(&records);
        let policy = policy.unfinished(Some(Duration::from_millis(1)));
        let options = ReleaseOptions::until(Duration::from_millis(2));
        let release = node.clean(&policy, &options).unwrap().release.unwrap();
        let gone = release.services.iter().filter(|one| one.is_gone()).count();
        self.cleaned.fetch_add(gone as u64, Ordering::SeqCst);
    }

    /// Jobs that have ended free their VNIs when no NIC shows them.
    fn confirm(&self) {
        let _held = self.lock.acquire().unwrap();
        self.change(|books| {
            let shown: IdSet = user_services(&self.mock)
                .iter()
                .flat_map(|(_, service)| service.vnis().iter().map(Vni::get).collect::<Vec<_>>())
                .collect();
            let gone = |held: &cxi_site::pool::Holding| {
                let draining = matches!(held.phase, cxi_site::pool::Phase::Draining { .. });
                draining && held.vnis.iter().all(|vni| !shown.contains(vni.get()))
            };
            let jobs = books.pool.jobs().filter(|(_, held)| gone(held));
            let jobs: Vec<JobId> = jobs.map(|(job, _)| job.clone()).collect();
            let confirmed = books.pool.confirm_all(&jobs, AT).unwrap();
            books.log.extend(confirmed.event);
        });
    }

    fn replay(&self) {
        let (pool, log) = self.change(|books| (books.pool.clone(), books.log.clone()));
        assert_eq!(VniPool::replay(config(), &log).unwrap(), pool);
    }
}

fn config() -> PoolConfig {
    PoolConfig::new("1024-1055".parse().unwrap())
}

#[test]
fn live_jobs_lose_nothing_and_nothing_is_left() {
    let seconds = env::var("CXI_SOAK_SECONDS").map_or(2, |text| text.parse().unwrap());
    let (_directory, lock) = lock();
    let scene = Scene {
        mock: mock(NICS),
        lock,
        books: Mutex::new(Books {
            pool: VniPool::new(config()).unwrap(),
            log: Vec::new(),
            records: IdSet::new(),
            running: BTreeMap::new(),
        }),
        started: AtomicU64::new(0),
        ran: AtomicU64::new(0),
        cleaned: AtomicU64::new(0),
        begun: Instant::now(),
        time: Duration::from_secs(seconds),
    };
    thread::scope(|scope| {
        let scene = &scene;
        for worker in 0..WORKERS {
            scope.spawn(move || {
                let mut dice = Random::new(2 * worker);
                while scene.is_on() {
                    scene.job(&mut dice);
                }
            });
        }
        for worker in 0..2 {
            scope.spawn(move || {
                let mut dice = Random::new(2 * worker + 1);
                while scene.is_on() {
                    scene.clean(&scene.process(&mut dice));
                    scene.confirm();
                }
            });
        }
        scope.spawn(|| {
            while scene.is_on() {
                scene.replay();
                thread::sleep(Duration::from_millis(5));
            }
        });
    });
    scene.clean(&node(&scene.mock).with_lock(scene.lock.clone()));
    assert_eq!(user_services(&scene.mock), []);
    scene.confirm();
    scene.replay();
    let free = scene.change(|books| books.pool.metrics(AT).free);
    assert_eq!(free, 32, "every VNI is free again");
    assert!(scene.is_enough());
}
