//! Processes of several nodes add numbers up in the fabric, each waiting for the sum before the next.
#![allow(clippy::print_stdout)]

#[path = "../common/mod.rs"]
mod common;
mod participant;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{Problem, Process, VNI, device, service};
use cxi::Vni;
use cxi_mock::{MockCluster, MulticastTree, NicConfig};
use participant::Participant;

/// A fabric manager gives numbers to trees.
const TREE: u16 = 100;
const ROUNDS: u64 = 20;

fn allreduce(nodes: u16) -> Result<(), Problem> {
    let cluster = MockCluster::with_nics(nodes, 1, &NicConfig::new())?;
    let places: Vec<_> = (0..cluster.len()).filter_map(|node| cluster.node(node)).collect();
    let nids: Vec<_> = places.iter().flat_map(|node| node.addresses()).collect();
    let vni = Vni::new(VNI)?;
    let tree = MulticastTree::new(nids[0], nids.iter().copied());
    cluster.fabric().set_tree(TREE, &tree);

    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        // Real NICs work by themselves.
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                cluster.run_until_idle();
                thread::yield_now();
            }
        });
        let all = || {
            let mut participants = Vec::new();
            for (rank, node) in (0..).zip(&places) {
                let device = device(node)?;
                let process = Process::new(&device, service(&device)?, vni, None)?;
                participants.push(Participant::new(process, TREE, rank)?);
            }
            let run = |mut it: Participant| scope.spawn(move || it.run(nodes.into(), ROUNDS));
            let running: Vec<_> = participants.into_iter().map(run).collect();
            for participant in running {
                participant.join().map_err(|_| "a process has failed")??;
            }
            println!("{ROUNDS} sums of {nodes} nodes");
            Ok(())
        };
        let result = all();
        ended.store(true, Ordering::Relaxed);
        result
    })
}

fn main() -> Result<(), Problem> {
    allreduce(2)?;
    allreduce(4)
}

#[test]
fn it_runs() {
    main().unwrap();
}
