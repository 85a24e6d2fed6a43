//! Groups over the data path, with a process on each of several mock nodes.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cxi::lni::Pid;
use cxi::{Device, ServiceId, ServiceSpec, TrafficClass, Vni};
use cxi_data::collective::{Cause, Combine, Endpoint, Error, Failure, Group, RoundTrips, Timing};
use cxi_data::{Address, ReturnCode};
use cxi_mock::{Fabric, FabricFaults, MockCluster, NicConfig};

/// Silences of operations that must fail. Where a process got no processor for that long, another one than the
/// dead one seems to be silent: a test then tries the next one.
const SILENCES: [u64; 4] = [120, 400, 1200, 4000];
/// For operations that must succeed, however busy the machine is.
const PATIENT: Timing = Timing {
    retry: Duration::from_millis(20),
    silence: Duration::from_secs(10),
    deadline: Duration::from_secs(20),
};
const WIDTH: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// A chance of one in a hundred.
const PERCENT: u16 = 655;

fn timing(silence: u64) -> Timing {
    Timing {
        retry: Duration::from_millis(20),
        silence: Duration::from_millis(silence),
        deadline: Duration::from_millis(silence * 5 / 2),
    }
}

fn device(cluster: &MockCluster, node: usize) -> Device {
    Device::cxi0(cluster.node(node).unwrap().nics()[0].root().unwrap())
}

/// A service of a job on one node, for its VNI.
fn service(device: &Device, vni: Vni) -> ServiceId {
    let spec = ServiceSpec::builder().vni(vni).build().unwrap();
    device.services().create(&spec).unwrap()
}

fn endpoint(cluster: &MockCluster, node: usize, vni: u16) -> Endpoint {
    let (device, vni) = (device(cluster, node), Vni::new(vni).unwrap());
    let service = service(&device, vni);
    Endpoint::new(&device, service, vni, TrafficClass::BestEffort, None).unwrap()
}

/// Ends the work of the NICs, also when a test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does something while the NICs of a cluster work, as real ones do by themselves.
fn with_nics_at_work<'env, T>(
    cluster: &'env MockCluster,
    act: impl for<'scope> FnOnce(&'scope thread::Scope<'scope, 'env>) -> T,
) -> T {
    let ended = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let _end = End(&ended);
        let ended = Arc::clone(&ended);
        scope.spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                cluster.run_until_idle();
                thread::sleep(Duration::from_micros(200));
            }
        });
        act(scope)
    })
}

/// A process on each node, with its VNI. `trouble` happens when all are there; then
/// each runs `act`.
fn on_nodes<T: Send>(
    timing: Timing,
    vnis: &[u16],
    trouble: impl FnOnce(&Fabric, &[Address]),
    act: impl Fn(Group) -> T + Sync,
) -> Vec<T> {
    let nodes = u16::try_from(vnis.len()).unwrap();
    let cluster = MockCluster::with_nics(nodes, 1, &NicConfig::new()).unwrap();
    with_nics_at_work(&cluster, |scope| {
        let endpoints: Vec<_> =
            vnis.iter().enumerate().map(|(node, vni)| endpoint(&cluster, node, *vni)).collect();
        let addresses: Vec<_> = endpoints.iter().map(Endpoint::address).collect();
        let join = |endpoint: Endpoint| endpoint.join(5, &addresses, WIDTH, timing).unwrap();
        let groups: Vec<_> = endpoints.into_iter().map(join).collect();
        trouble(cluster.fabric(), &addresses);
        let act = &act;
        let running = groups.into_iter().map(|group| scope.spawn(move || act(group)));
        let running: Vec<_> = running.collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// Performs each operation, and returns how many messages were repeated.
fn everything(mut group: Group, nodes: u64) -> u64 {
    let rank = u64::from(group.rank());
    for round in 0..5 {
        group.barrier().unwrap();
        assert_eq!(group.broadcast([rank + round; 8]).unwrap(), [round; 8]);
        let sum = group.allreduce(Combine::Sum, [rank, 1, round, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(sum, [nodes * (nodes - 1) / 2, nodes, nodes * round, 0, 0, 0, 0, 0]);
        let most = group.reduce(Combine::Max, [rank; 8]).unwrap();
        assert_eq!(most, if rank == 0 { [nodes - 1; 8] } else { [0; 8] });
    }
    let retries = group.counts().retries;
    group.leave().unwrap();
    retries
}

/// End of a barrier that must fail, as one member has seen it.
#[derive(Debug, PartialEq)]
struct Seen {
    failure: Failure,
    /// The reason that the NIC gave.
    undelivered: Option<ReturnCode>,
    /// A dead member was named by the time that the timing promises.
    is_in_time: bool,
}

const fn seen(rank: u32, cause: Cause, undelivered: Option<ReturnCode>) -> Seen {
    Seen { failure: Failure { rank, cause }, undelivered, is_in_time: true }
}

fn barrier_fails(mut group: Group, timing: Timing) -> Seen {
    let start = Instant::now();
    let error = group.barrier().unwrap_err();
    let is_in_time = start.elapsed() < timing.deadline + timing.silence;
    group.leave().unwrap();
    match error {
        Error::Failed { failure, undelivered } => {
            Seen { failure, undelivered: undelivered.map(|why| why.0), is_in_time }
        }
        other => panic!("{other}"),
    }
}

/// Expects what members see, if they have enough time.
fn sees<T: PartialEq + std::fmt::Debug>(expected: &T, see: impl Fn(Timing) -> T) {
    let mut last = None;
    for silence in SILENCES {
        let now = see(timing(silence));
        if now == *expected {
            return;
        }
        last = Some(now);
    }
    assert_eq!(last.as_ref(), Some(expected));
}

#[test]
fn all_operations_have_the_right_results_on_two_and_eight_nodes() {
    for nodes in [2, 8] {
        on_nodes(PATIENT, &vec![1024; nodes], |_, _| {}, |group| everything(group, nodes as u64));
    }
}

#[test]
fn operations_end_on_a_fabric_that_loses_repeats_and_delays_packets() {
    let faults = FabricFaults {
        seed: 4,
        loss: 5 * PERCENT,
        duplication: 5 * PERCENT,
        reordering: 5 * PERCENT,
        delay: 20,
    };
    on_nodes(
        PATIENT,
        &[1024; 5],
        |fabric, _| fabric.set_faults(faults),
        |group| everything(group, 5),
    );
}

#[test]
fn a_process_that_is_dead_is_named_with_the_reason() {
    let dead = |why| Some(seen(3, Cause::Silent, why));
    // Member 1 is the parent, and knows what the NIC says.
    let expected =
        vec![dead(None), dead(Some(ReturnCode::VNI_NOT_FOUND)), dead(None), None, dead(None)];
    sees(&expected, |timing| {
        on_nodes(
            timing,
            &[1024; 5],
            |_, _| {},
            |group| match group.rank() {
                3 => {
                    drop(group);
                    None
                }
                _ => Some(barrier_fails(group, timing)),
            },
        )
    });
}

#[test]
fn a_node_behind_a_dead_link_is_named() {
    let cut = |fabric: &Fabric, addresses: &[Address]| fabric.set_link(addresses[2].nid, false);
    // Who is behind the link sees the same of the root.
    sees(&vec![2, 2, 0], |timing| {
        let seen = on_nodes(timing, &[1024; 3], cut, |group| barrier_fails(group, timing));
        let silent = |seen: Seen| match seen {
            Seen { failure: Failure { rank, cause: Cause::Silent }, is_in_time: true, .. } => rank,
            other => panic!("{other:?}"),
        };
        seen.into_iter().map(silent).collect()
    });
}

#[test]
fn a_node_with_another_vni_is_named_with_the_reason() {
    let why = Some(ReturnCode::VNI_NOT_FOUND);
    let expected = vec![
        seen(1, Cause::Silent, why),
        seen(0, Cause::Silent, why),
        seen(1, Cause::Silent, None),
    ];
    sees(&expected, |timing| {
        on_nodes(timing, &[1024, 1025, 1024], |_, _| {}, |group| barrier_fails(group, timing))
    });
}

#[test]
fn a_process_that_is_there_and_does_not_enter_is_late() {
    let late = || Some(seen(3, Cause::Late, None));
    sees(&vec![late(), late(), late(), None], |timing| {
        on_nodes(
            timing,
            &[1024; 4],
            |_, _| {},
            |mut group| match group.rank() {
                3 => {
                    group.linger(timing.deadline + timing.silence).unwrap();
                    None
                }
                _ => Some(barrier_fails(group, timing)),
            },
        )
    });
}

/// Two jobs share three nodes, and use the same PIDs on their own VNIs. One has two processes on each node, in a
/// group each; the group of the other one fails meanwhile.
#[test]
fn groups_side_by_side_do_not_disturb_each_other() {
    const NODES: usize = 3;
    let jobs = [(1024, 10), (1024, 11), (1025, 10)];
    let cluster = MockCluster::with_nics(3, 1, &NicConfig::new()).unwrap();
    let ends = with_nics_at_work(&cluster, |scope| {
        let mut groups: Vec<Vec<Group>> = Vec::new();
        for (number, (vni, pid)) in jobs.into_iter().enumerate() {
            let (vni, pid) = (Vni::new(vni).unwrap(), Pid::new(pid).unwrap());
            let endpoint = |node| {
                let device = device(&cluster, node);
                let service = service(&device, vni);
                Endpoint::new(&device, service, vni, TrafficClass::BestEffort, Some(pid)).unwrap()
            };
            let endpoints: Vec<_> = (0..NODES).map(endpoint).collect();
            let addresses: Vec<_> = endpoints.iter().map(Endpoint::address).collect();
            assert!(addresses.iter().all(|address| address.pid == pid.get()));
            // The third one may take long to be found dead, without harm to the others.
            let timing = if number == 2 { timing(1000) } else { PATIENT };
            let join = |one: Endpoint| one.join(5, &addresses, WIDTH, timing).unwrap();
            groups.push(endpoints.into_iter().map(join).collect());
        }
        let mut failing = groups.pop().unwrap();
        drop(failing.pop());
        let failing: Vec<_> = failing
            .into_iter()
            .map(|group| scope.spawn(move || barrier_fails(group, timing(1000)).failure.cause))
            .collect();
        let good: Vec<_> = groups
            .into_iter()
            .flatten()
            .map(|group| scope.spawn(move || everything(group, NODES as u64)))
            .collect();
        for one in good {
            one.join().unwrap();
        }
        failing.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(ends, [Cause::Silent; 2]);
}

#[test]
fn times_that_do_not_fit_together_are_refused() {
    let usual = timing(600);
    let cases = [
        (Timing { retry: Duration::ZERO, ..usual }, "retry 0ns: expected more than zero"),
        (
            Timing { silence: Duration::from_millis(39), ..usual },
            "silence 39ms: expected at least two retries",
        ),
        (
            Timing { deadline: usual.silence, ..usual },
            "deadline 600ms: expected longer than the silence",
        ),
        // The least that cannot be doubled.
        (
            Timing { retry: Duration::MAX, silence: Duration::from_secs(1), ..usual },
            "silence 1s: expected at least two retries",
        ),
    ];
    for (timing, text) in cases {
        assert_eq!(timing.check().unwrap_err().to_string(), text);
        let cluster = MockCluster::with_nics(1, 1, &NicConfig::new()).unwrap();
        with_nics_at_work(&cluster, |_| {
            let endpoint = endpoint(&cluster, 0, 1024);
            let members = [endpoint.address()];
            let error = endpoint.join(1, &members, WIDTH, timing).unwrap_err();
            assert_eq!(error.to_string(), text);
        });
    }
    for timing in [usual, PATIENT, Timing::default()] {
        timing.check().unwrap();
    }
}

#[test]
fn a_list_of_members_that_cannot_be_right_is_refused() {
    let cluster = MockCluster::with_nics(1, 1, &NicConfig::new()).unwrap();
    with_nics_at_work(&cluster, |_| {
        let other = Address { nid: 0x77, pid: 3 };
        let lists = |own: Address| [vec![other, other, own], vec![other], vec![]];
        let errors = (0..3).map(|list| {
            let endpoint = endpoint(&cluster, 0, 1024);
            let members = &lists(endpoint.address())[list];
            endpoint.join(1, members, WIDTH, PATIENT).unwrap_err()
        });
        let errors: Vec<_> = errors.collect();
        let texts = errors.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(texts[0], "NIC 0x77, PID 3 is in the list of members twice: expected each once");
        assert!(texts[1].ends_with("is not in the list of members"), "{}", texts[1]);
        assert!(texts[2].ends_with("is not in the list of members"), "{}", texts[2]);
    });
}

/// Each asks all others, who answer meanwhile.
#[test]
fn pairs_are_asked_and_answer() {
    let cluster = MockCluster::with_nics(3, 1, &NicConfig::new()).unwrap();
    let count = NonZeroU32::new(3).unwrap();
    let retry = Duration::from_millis(20);
    let done = AtomicUsize::new(0);
    let asked: Vec<Vec<RoundTrips>> = with_nics_at_work(&cluster, |scope| {
        let endpoints: Vec<_> = [1024, 1024, 1025]
            .iter()
            .zip(0..)
            .map(|(vni, node)| endpoint(&cluster, node, *vni))
            .collect();
        let addresses: Vec<_> = endpoints.iter().map(Endpoint::address).collect();
        let done = &done;
        let ask = |endpoint: Endpoint| {
            let mut pings = endpoint.pings(7, &addresses).unwrap();
            scope.spawn(move || {
                let others = (0..3).filter(|rank| *rank != pings.rank()).collect::<Vec<_>>();
                let trips = others.iter().map(|rank| {
                    // The third one hears nobody.
                    let is_apart = *rank == 2 || pings.rank() == 2;
                    let silence = if is_apart { 300 } else { 10_000 };
                    pings.ask(*rank, count, retry, Duration::from_millis(silence)).unwrap()
                });
                let trips = trips.collect();
                done.fetch_add(1, Ordering::SeqCst);
                while done.load(Ordering::SeqCst) < 3 {
                    pings.answer_for(retry).unwrap();
                }
                trips
            })
        };
        let asking: Vec<_> = endpoints.into_iter().map(ask).collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for (from, to) in [(0, 0), (1, 0)] {
        assert_eq!(asked[from][to].answered, 3, "{asked:?}");
    }
    let apart = &asked[0][1];
    assert_eq!((apart.answered, apart.undelivered.unwrap().0), (0, ReturnCode::VNI_NOT_FOUND));
    assert!(asked[2].iter().all(|trips| trips.answered == 0), "{asked:?}");
}

/// Answers of a process that is late for several times `retry`.
fn late_answer(retry: Duration) -> RoundTrips {
    let cluster = MockCluster::with_nics(2, 1, &NicConfig::new()).unwrap();
    with_nics_at_work(&cluster, |scope| {
        let endpoints = [endpoint(&cluster, 0, 1024), endpoint(&cluster, 1, 1024)];
        let addresses = endpoints.each_ref().map(Endpoint::address);
        let [mut first, mut second] =
            endpoints.map(|endpoint| endpoint.pings(7, &addresses).unwrap());
        let asking = scope
            .spawn(move || first.ask(1, NonZeroU32::MIN, retry, Duration::from_secs(60)).unwrap());
        thread::sleep(3 * retry);
        while !asking.is_finished() {
            second.answer_for(retry).unwrap();
        }
        asking.join().unwrap()
    })
}

#[test]
fn an_answer_that_is_late_is_no_message_that_was_lost() {
    // Where the NICs got no processor for that long, a question had not arrived, and the next time is tried.
    let trips = SILENCES.map(Duration::from_millis).into_iter().map(late_answer);
    let mut trips = trips.inspect(|trips| assert_eq!(trips.answered, 1, "{trips:?}"));
    let late = trips.find(|trips| trips.retries == 0).unwrap();
    // Which of several questions it answers cannot be told.
    assert_eq!(late.times, []);
}
