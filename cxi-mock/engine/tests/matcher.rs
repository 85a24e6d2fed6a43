//! Matching against a reference: lists as plain vectors.

mod rig;

use cxi_engine::PortalOptions;
use cxi_hw::{EventType, List, MatchId, ReturnCode, TargetFlags, TargetOp};
use proptest::prelude::*;
use rig::*;

/// Act of a program. Numbers are small, so that they meet.
#[derive(Clone, Debug)]
enum Act {
    Append(List, Entry),
    Put { bits: u64, from: u32, len: u32 },
    Unlink { list: List, buffer_id: u16 },
    Search { bits: u64, ignore: u64, once: bool, delete: bool },
}

fn list() -> impl Strategy<Value = List> {
    prop_oneof![3 => Just(List::PRIORITY), 1 => Just(List::OVERFLOW)]
}

fn append() -> impl Strategy<Value = Act> {
    // Of few bits and of many, so that an index has not seen all.
    let ignore = prop_oneof![Just(0), Just(u64::MAX), 0..16_u64];
    let append = (
        (list(), 1..8_u16, 0..4_u64, ignore),
        (proptest::option::of(0..3_u32), any::<bool>(), any::<bool>(), 0..24_u64),
    );
    append.prop_map(|((list, buffer_id, bits, ignore), (from, once, managed, length))| {
        let entry = Entry {
            buffer_id,
            bits,
            ignore,
            from,
            once,
            managed: managed || list == List::OVERFLOW,
            length,
            offset: 0,
        };
        Act::Append(list, entry)
    })
}

fn act() -> impl Strategy<Value = Act> {
    let bits = 0..4_u64;
    prop_oneof![
        3 => append(),
        5 => (bits.clone(), 0..3_u32, 0..12_u32).prop_map(|(bits, from, len)| Act::Put { bits, from, len }),
        1 => (list(), 1..8_u16).prop_map(|(list, buffer_id)| Act::Unlink { list, buffer_id }),
        1 => (bits, prop_oneof![Just(0), Just(u64::MAX)], any::<bool>(), any::<bool>())
            .prop_map(|(bits, ignore, once, delete)| Act::Search { bits, ignore, once, delete }),
    ]
}

/// An event of the program: type, code, list, buffer, bytes.
type Heard = (EventType, ReturnCode, List, u16, u32);

#[derive(Clone, Debug)]
struct Entry {
    buffer_id: u16,
    bits: u64,
    ignore: u64,
    from: Option<u32>,
    once: bool,
    managed: bool,
    length: u64,
    offset: u64,
}

impl Entry {
    fn matches(&self, bits: u64, from: u32) -> bool {
        (self.bits ^ bits) & !self.ignore == 0 && self.from.is_none_or(|id| id == from)
    }

    fn room(&self) -> u64 {
        self.length - self.offset
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    bits: u64,
    from: u32,
    len: u32,
}

#[derive(Default)]
struct Model {
    lists: [Vec<Entry>; 2],
    waiting: Vec<Waiting>,
    heard: Vec<Heard>,
    acks: Vec<(ReturnCode, List, u32)>,
}

impl Model {
    fn hear(&mut self, kind: EventType, code: ReturnCode, list: List, buffer_id: u16, len: u32) {
        self.heard.push((kind, code, list, buffer_id, len));
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Append(list, entry) => self.append(*list, entry),
            Act::Put { bits, from, len } => self.put(*bits, *from, *len),
            Act::Unlink { list, buffer_id } => {
                let entries = &mut self.lists[usize::from(list.0)];
                let found = entries.iter().position(|it| it.buffer_id == *buffer_id);
                let code = match found {
                    Some(at) => {
                        entries.remove(at);
                        ReturnCode::OK
                    }
                    None => ReturnCode::ENTRY_NOT_FOUND,
                };
                self.hear(EventType::UNLINK, code, *list, *buffer_id, 0);
            }
            Act::Search { bits, ignore, once, delete } => {
                self.search(*bits, *ignore, *once, *delete);
            }
        }
    }

    fn append(&mut self, list: List, new: &Entry) {
        let mut entry = new.clone();
        if list == List::PRIORITY {
            let waiting = std::mem::take(&mut self.waiting);
            let mut used_up = false;
            for message in waiting {
                if used_up || !entry.matches(message.bits, message.from) {
                    self.waiting.push(message);
                    continue;
                }
                if entry.managed {
                    entry.offset += u64::from(message.len).min(entry.room());
                }
                used_up = entry.once;
                self.hear(
                    EventType::PUT_OVERFLOW,
                    ReturnCode::OK,
                    list,
                    entry.buffer_id,
                    message.len,
                );
            }
            if used_up {
                return;
            }
        }
        self.hear(EventType::LINK, ReturnCode::OK, list, entry.buffer_id, 0);
        self.lists[usize::from(list.0)].push(entry);
    }

    fn put(&mut self, bits: u64, from: u32, len: u32) {
        for list in [List::PRIORITY, List::OVERFLOW] {
            let overflow = list == List::OVERFLOW;
            let entries = &mut self.lists[usize::from(list.0)];
            // Overflow buffers take what fits alone.
            let fits =
                |it: &Entry| it.matches(bits, from) && (!overflow || u64::from(len) <= it.room());
            let Some(at) = entries.iter().position(fits) else { continue };
            let entry = &mut entries[at];
            if !entry.managed && u64::from(len) > entry.length {
                self.acks.push((ReturnCode::OP_VIOLATION, List::PRIORITY, 0));
                return;
            }
            let moved = if entry.managed { u64::from(len).min(entry.room()) } else { len.into() };
            let moved = u32::try_from(moved).unwrap();
            if entry.managed {
                entry.offset += u64::from(moved);
            }
            let (buffer_id, once) = (entry.buffer_id, entry.once);
            if once {
                entries.remove(at);
                self.hear(EventType::UNLINK, ReturnCode::OK, list, buffer_id, 0);
            }
            if overflow {
                self.waiting.push(Waiting { bits, from, len });
            }
            self.hear(EventType::PUT, ReturnCode::OK, list, buffer_id, moved);
            self.acks.push((ReturnCode::OK, list, moved));
            return;
        }
        self.acks.push((ReturnCode::ENTRY_NOT_FOUND, List::PRIORITY, 0));
    }

    fn search(&mut self, bits: u64, ignore: u64, once: bool, delete: bool) {
        let kind = if delete { EventType::PUT_OVERFLOW } else { EventType::SEARCH };
        let mut at = 0;
        while at < self.waiting.len() {
            let message = self.waiting[at];
            if (message.bits ^ bits) & !ignore != 0 {
                at += 1;
                continue;
            }
            self.hear(kind, ReturnCode::OK, List::UNEXPECTED, 99, message.len);
            if delete {
                self.waiting.remove(at);
            } else {
                at += 1;
            }
            if once {
                return;
            }
        }
        self.hear(EventType::SEARCH, ReturnCode::NO_MATCH, List::UNEXPECTED, 99, 0);
    }
}

fn sender(number: u32) -> MatchId {
    MatchId::new(number, NID, 9)
}

fn send(rig: &mut Rig, act: &Act) {
    match act {
        Act::Append(list, it) => {
            let template = if *list == List::OVERFLOW { overflow } else { entry };
            let command = template(it.buffer_id, BUFFER + 4096, it.length);
            let mut flags = command.flags;
            flags.set(TargetFlags::USE_ONCE, it.once);
            flags.set(TargetFlags::MANAGE_LOCAL, it.managed);
            rig.append(
                &command
                    .with_flags(flags)
                    .with_match_bits(it.bits)
                    .with_ignore_bits(it.ignore)
                    .with_match_id(it.from.map_or(MatchId::ANY, sender)),
            );
        }
        // Each sender is a process with its own queue.
        Act::Put { bits, from, len } => {
            let command = put(*len).with_initiator(sender(*from)).with_match_bits(*bits);
            let queue = 10 + u16::try_from(*from).unwrap();
            rig.submit(queue, &[&command.encode()]);
        }
        Act::Unlink { list, buffer_id } => rig.append(&unlink(*list, *buffer_id)),
        Act::Search { bits, ignore, once, delete } => {
            let op = if *delete { TargetOp::SEARCH_AND_DELETE } else { TargetOp::SEARCH };
            let mut command = search(op, 99, *bits).with_ignore_bits(*ignore);
            command.flags.set(TargetFlags::USE_ONCE, *once);
            rig.append(&command);
        }
    }
}

fn heard(rig: &mut Rig) -> Vec<Heard> {
    std::iter::from_fn(|| {
        let event = rig.try_event(TARGET_EQ)?;
        Some(if event.0.len() == 64 {
            let event = event.long();
            (event.event_type, event.return_code, event.ptl_list, event.buffer_id, event.mlength)
        } else {
            let event = event.short();
            (event.event_type, event.return_code, event.ptl_list, event.buffer_id, event.length)
        })
    })
    .collect()
}

fn acks(rig: &mut Rig) -> Vec<(ReturnCode, List, u32)> {
    std::iter::from_fn(|| {
        let ack = rig.try_event(EQ)?.initiator();
        Some((ack.return_code, ack.ptl_list, ack.mlength))
    })
    .collect()
}

proptest! {
    #[test]
    fn matching_is_as_plain_lists_say(
        // Lists that are long, and then come and go.
        long in proptest::collection::vec(append(), 0..60),
        acts in proptest::collection::vec(act(), 1..80),
    ) {
        let mut rig = Rig::new();
        for from in 0..3 {
            rig.add_tx(10 + from, false);
        }
        rig.portal(PORTAL, 0, PortalOptions::IS_MATCHING);
        let mut model = Model::default();
        for act in long.iter().chain(&acts) {
            send(&mut rig, act);
            model.act(act);
            prop_assert_eq!(heard(&mut rig), std::mem::take(&mut model.heard), "{:?}", act);
            prop_assert_eq!(acks(&mut rig), std::mem::take(&mut model.acks), "{:?}", act);
            let status = rig.engine.portal_status(PORTAL).unwrap();
            prop_assert_eq!(status.unexpected.len(), model.waiting.len());
            let entries = model.lists.iter().map(Vec::len).sum::<usize>() + model.waiting.len();
            prop_assert_eq!(usize::from(status.les_allocated), entries);
        }
    }
}
