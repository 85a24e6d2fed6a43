//! Processes of several nodes add numbers up in the fabric, each waiting for the sum before the next.
#![allow(clippy::print_stdout)]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{PATIENCE, Problem, Process, device, service};
use cxi::lni::{LeList, PtOptions, Pte, PteMapping};
use cxi_data::{
    Append, Buffer, Event, Reduce, ReduceOp, ReductionPacket, Sequence, SetState, TargetFlags,
};
use cxi_mock::{MockCluster, MulticastTree, NicConfig};

/// A fabric manager gives numbers to trees.
const TREE: u16 = 100;
const ROUNDS: u64 = 20;

/// A process in the tree.
struct Participant {
    process: Process,
    inbox: Buffer,
    rank: u32,
    _pte: (PteMapping, Pte),
}

impl Participant {
    fn new(mut process: Process, rank: u32) -> Result<Self, Problem> {
        // Long events say where in the buffer a packet is.
        let options = PtOptions::USE_LONG_EVENT;
        let events = process.events.queue();
        let pte = process.lni.alloc_pte(options, Some(events))?;
        let mapping = pte.map_multicast(&process.domain, TREE.into())?;
        let inbox = Buffer::new(&process.lni, 1 << 16)?;
        let entry = Append::new(&pte, LeList::Priority, inbox.whole());
        process.target.post(&SetState::enable(&pte))?;
        process
            .target
            .post(&entry.flags(TargetFlags::OP_PUT).managed(64))?;
        process.expect(2)?;
        Ok(Self {
            process,
            inbox,
            rank,
            _pte: (mapping, pte),
        })
    }

    fn send(&mut self, packet: &ReductionPacket) -> Result<(), Problem> {
        Ok(self.process.transmit.post(&Reduce::new(packet, TREE, 0))?)
    }

    fn receive(&mut self) -> Result<ReductionPacket, Problem> {
        let Event::Arrival(arrival) = self.process.events.wait(PATIENCE)? else {
            return Err("something else happened".into());
        };
        arrival.result?;
        let position = arrival.start.and_then(|start| self.inbox.position(start));
        let mut bytes = [0; ReductionPacket::BYTES];
        self.inbox
            .read(position.ok_or("not in the buffer")?, &mut bytes)?;
        Ok(ReductionPacket::decode(&bytes).ok_or("no packet of a reduction")?)
    }

    /// What this process adds in a round.
    fn contribution(&self, round: u64, sequence: Sequence) -> ReductionPacket {
        ReductionPacket {
            sender: self.rank,
            sequence,
            answered: sequence,
            op: ReduceOp::Sum.number(),
            count: 1,
            payload: [round, u64::from(self.rank), 1, 0],
            ..ReductionPacket::default()
        }
    }

    /// Collects what the others send, and tells them the result, which arms the switches for the next
    /// round. A program on a real fabric also asks again for what was lost.
    fn root(&mut self, participants: u32) -> Result<Vec<[u64; 4]>, Problem> {
        let mut sequence = Sequence::default();
        self.send(&ReductionPacket {
            sequence,
            arm: true,
            retry: true,
            ..ReductionPacket::default()
        })?;
        let mut sums = Vec::new();
        for round in 0..ROUNDS {
            let mut all = self.contribution(round, sequence);
            while all.count < participants {
                let packet = self.receive()?;
                if packet.answered == sequence {
                    all.add(&packet);
                }
            }
            sequence = sequence.next();
            self.send(&ReductionPacket {
                sequence,
                arm: true,
                ..all
            })?;
            sums.push(all.payload);
        }
        Ok(sums)
    }

    fn leaf(&mut self) -> Result<Vec<[u64; 4]>, Problem> {
        let mut sequence = self.receive()?.sequence;
        let mut sums = Vec::new();
        for round in 0..ROUNDS {
            self.send(&self.contribution(round, sequence))?;
            let result = self.receive()?;
            sequence = result.sequence;
            sums.push(result.payload);
        }
        Ok(sums)
    }
}

fn allreduce(nodes: u16) -> Result<(), Problem> {
    let cluster = MockCluster::with_nodes(nodes, 1, &NicConfig::new())?;
    let places: Vec<_> = (0..cluster.len())
        .filter_map(|node| cluster.node(node))
        .collect();
    let nids: Vec<_> = places.iter().flat_map(|node| node.addresses()).collect();
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
                let process = Process::new(&device, service(&device)?)?;
                participants.push(Participant::new(process, rank)?);
            }
            let run = |mut it: Participant| {
                scope.spawn(move || match it.rank {
                    0 => it.root(nodes.into()),
                    _ => it.leaf(),
                })
            };
            let running: Vec<_> = participants.into_iter().map(run).collect();
            let n = u64::from(nodes);
            for participant in running {
                let sums = participant.join().map_err(|_| "a process has failed")??;
                let expected = (0..ROUNDS).map(|round| [round * n, n * (n - 1) / 2, n, 0]);
                assert!(sums.into_iter().eq(expected));
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
