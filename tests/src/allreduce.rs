//! Processes of several nodes add numbers up in the fabric.

use std::io::Write;
use std::time::Duration;

use cxi::lni::{
    CommunicationProfile, Domain, EventQueueOptions, LeList, PtOptions, Pte, PteMapping,
    TgqOptions, TxqOptions,
};
use cxi::{Device, Lni, ServiceId, TrafficClass, Vni};
use cxi_data::{
    Append, Buffer, Event, Events, Reduce, ReduceOp, ReductionPacket, Sequence, SetState,
    TargetFlags, TargetQueue, TransmitQueue,
};

use crate::endpoint::Problem;

/// A VNI of the default service.
const VNI: u16 = 10;
const PATIENCE: Duration = Duration::from_secs(20);

/// A process in a multicast tree.
struct Participant {
    rank: u32,
    tree: u16,
    transmit: TransmitQueue,
    events: Events,
    inbox: Buffer,
    _target: TargetQueue,
    _pte: (PteMapping, Pte),
    _domain: Domain,
    _profile: CommunicationProfile,
    _lni: Lni,
}

/// Adds numbers up in a tree of so many processes, round by round. Rank 0 is on the root's NIC; it
/// starts when all others have said `ready`.
///
/// # Errors
///
/// A sum is wrong, or something does not come.
pub fn allreduce(
    device: &Device,
    tree: u16,
    (rank, size): (u32, u32),
    rounds: u64,
) -> Result<String, Problem> {
    let mut participant = Participant::new(device, tree, rank)?;
    writeln!(std::io::stdout(), "ready")?;
    let sums = match rank {
        0 => participant.root(size, rounds)?,
        _ => participant.leaf(rounds)?,
    };
    let n = u64::from(size);
    let expected = (0..rounds).map(|round| [round * n, n * (n - 1) / 2, n, 0]);
    if sums.into_iter().eq(expected) {
        Ok(format!("{rounds} sums"))
    } else {
        Err("a sum is wrong".into())
    }
}

impl Participant {
    fn new(device: &Device, tree: u16, rank: u32) -> Result<Self, Problem> {
        let (info, vni) = (device.info()?, Vni::new(VNI)?);
        let lni = device.alloc_lni(ServiceId::DEFAULT)?;
        let mut events = Events::new(lni.alloc_eq(&EventQueueOptions::new(1 << 16))?, &info)?;
        let profile = lni.alloc_cp(vni, TrafficClass::BestEffort)?;
        let domain = lni.alloc_domain(vni, None)?;
        let options = TxqOptions::new(256).event_queue(events.queue());
        let transmit = TransmitQueue::new(lni.alloc_txq(&profile, &options)?, &info, &domain)?;
        let options = TgqOptions::new(256).event_queue(events.queue());
        let mut target = TargetQueue::new(lni.alloc_tgq(&options)?, &info)?;
        // Long events say where in the buffer a packet is.
        let pte = lni.alloc_pte(PtOptions::USE_LONG_EVENT, Some(events.queue()))?;
        let mapping = pte.map_multicast(&domain, tree.into())?;
        let inbox = Buffer::new(&lni, 1 << 16)?;
        let entry = Append::new(&pte, LeList::Priority, inbox.whole());
        target.post(&SetState::enable(&pte))?;
        target.post(&entry.flags(TargetFlags::OP_PUT).managed(64))?;
        for _ in 0..2 {
            match events.wait(PATIENCE)? {
                Event::State(change) => change.result?,
                Event::Entry(change) => change.result?,
                other => return Err(format!("{other:?} came first").into()),
            }
        }
        Ok(Self {
            rank,
            tree,
            transmit,
            events,
            inbox,
            _target: target,
            _pte: (mapping, pte),
            _domain: domain,
            _profile: profile,
            _lni: lni,
        })
    }

    fn send(&mut self, packet: &ReductionPacket) -> Result<(), Problem> {
        Ok(self.transmit.post(&Reduce::new(packet, self.tree, 0))?)
    }

    fn receive(&mut self) -> Result<ReductionPacket, Problem> {
        let Event::Arrival(arrival) = self.events.wait(PATIENCE)? else {
            return Err("something else happened".into());
        };
        arrival.result?;
        let position = arrival.start.and_then(|start| self.inbox.position(start));
        let mut bytes = [0; ReductionPacket::BYTES];
        self.inbox
            .read(position.ok_or("not in the buffer")?, &mut bytes)?;
        Ok(ReductionPacket::decode(&bytes).ok_or("no packet of a reduction")?)
    }

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

    /// Collects what the others send, and sends them the result, which arms the switches again.
    fn root(&mut self, size: u32, rounds: u64) -> Result<Vec<[u64; 4]>, Problem> {
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
            while all.count < size {
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

    fn leaf(&mut self, rounds: u64) -> Result<Vec<[u64; 4]>, Problem> {
        let mut sequence = self.receive()?.sequence;
        let mut sums = Vec::new();
        for round in 0..rounds {
            let contribution = self.contribution(round, sequence);
            self.send(&contribution)?;
            let result = self.receive()?;
            sequence = result.sequence;
            sums.push(result.payload);
        }
        Ok(sums)
    }
}
