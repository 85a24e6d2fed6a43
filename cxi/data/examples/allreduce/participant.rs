//! A process in a multicast tree, whose switches add up what processes put into it.

use cxi::lni::{LeList, PtOptions, Pte, PteMapping};
use cxi_data::{
    Append, Buffer, Event, EventType, Reduce, ReduceOp, ReductionPacket, Sequence, SetState,
    TargetFlags,
};

use super::common::{PATIENCE, Problem, Process};

/// A process in the tree; rank 0 is on the root's NIC.
pub(crate) struct Participant {
    process: Process,
    inbox: Buffer,
    tree: u16,
    rank: u32,
    _pte: (PteMapping, Pte),
}

impl Participant {
    pub(crate) fn new(mut process: Process, tree: u16, rank: u32) -> Result<Self, Problem> {
        // Long events say where in the buffer a packet is.
        let options = PtOptions::USE_LONG_EVENT;
        let events = process.events.queue();
        let pte = process.lni.alloc_pte(options, Some(events))?;
        let mapping = pte.map_multicast(&process.domain, tree.into())?;
        let inbox = Buffer::new(&process.lni, 1 << 16)?;
        let entry = Append::new(&pte, LeList::Priority, inbox.whole());
        process.target.post(&SetState::enable(&pte))?;
        process.target.post(&entry.flags(TargetFlags::OP_PUT).managed(64))?;
        process.expect(EventType::LINK, 1)?;
        Ok(Self { process, inbox, tree, rank, _pte: (mapping, pte) })
    }

    /// Adds up with the others, round by round. All others must be there before the root starts.
    pub(crate) fn run(&mut self, participants: u32, rounds: u64) -> Result<(), Problem> {
        let sums = match self.rank {
            0 => self.root(participants, rounds)?,
            _ => self.leaf(rounds)?,
        };
        let n = u64::from(participants);
        let expected = (0..rounds).map(|round| [round * n, n * (n - 1) / 2, n, 0]);
        if sums.into_iter().eq(expected) { Ok(()) } else { Err("a sum is wrong".into()) }
    }

    fn send(&mut self, packet: &ReductionPacket) -> Result<(), Problem> {
        Ok(self.process.transmit.post(&Reduce::new(packet, self.tree, 0))?)
    }

    fn receive(&mut self) -> Result<ReductionPacket, Problem> {
        let Event::Arrival(arrival) = self.process.events.wait(PATIENCE)? else {
            return Err("something else happened".into());
        };
        arrival.result?;
        let position = arrival.start.and_then(|start| self.inbox.position(start));
        let mut bytes = [0; ReductionPacket::BYTES];
        self.inbox.read(position.ok_or("not in the buffer")?, &mut bytes)?;
        Ok(ReductionPacket::decode(&bytes).ok_or("no packet of a reduction")?)
    }

    /// Returns the numbers that this process adds in a round.
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
    fn root(&mut self, participants: u32, rounds: u64) -> Result<Vec<[u64; 4]>, Problem> {
        let mut sequence = Sequence::default();
        self.send(&ReductionPacket {
            sequence,
            arm: true,
            retry: true,
            ..ReductionPacket::default()
        })?;
        let mut sums = Vec::new();
        for round in 0..rounds {
            let mut all = self.contribution(round, sequence);
            while all.count < participants {
                let packet = self.receive()?;
                if packet.answered == sequence {
                    all.add(&packet);
                }
            }
            sequence = sequence.next();
            self.send(&ReductionPacket { sequence, arm: true, ..all })?;
            sums.push(all.payload);
        }
        Ok(sums)
    }

    fn leaf(&mut self, rounds: u64) -> Result<Vec<[u64; 4]>, Problem> {
        let mut sequence = self.receive()?.sequence;
        let mut sums = Vec::new();
        for round in 0..rounds {
            self.send(&self.contribution(round, sequence))?;
            let result = self.receive()?;
            sequence = result.sequence;
            sums.push(result.payload);
        }
        Ok(sums)
    }
}
