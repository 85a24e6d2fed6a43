//! 12: order between queues.

use std::sync::{Arc, Mutex};

use cxi_engine::{
    CommandPages, CounterDoorbell, CounterPages, Engine, EntryPool, MemoryFault, PortalOptions,
    Settings,
};
use cxi_hw::{CtOp, ReturnCode, TargetFlags};

use crate::rig::*;

/// A client that stores to a counter, then a target queue, then a transmit queue, as soon as the
/// engine looks at a page: whatever is asked first has only what came before.
#[derive(Debug, Default)]
struct Page {
    ring: Mutex<Vec<u8>>,
    doorbell: Mutex<Option<u64>>,
}

#[derive(Clone, Debug)]
struct Shared(Arc<Page>);

impl CommandPages for Shared {
    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), MemoryFault> {
        let ring = self.0.ring.lock().unwrap();
        into.copy_from_slice(&ring[offset..offset + into.len()]);
        Ok(())
    }

    fn write_status(&self, _: u64) {}

    fn take_doorbell(&self) -> Option<u64> {
        self.0.doorbell.lock().unwrap().take()
    }
}

impl CounterPages for Shared {
    fn take_doorbell(&self, doorbell: CounterDoorbell) -> Option<u64> {
        (doorbell == CounterDoorbell::AddSuccess)
            .then(|| self.0.doorbell.lock().unwrap().take())
            .flatten()
    }
}

fn page() -> Shared {
    let page = Page { ring: Mutex::new(vec![0; 256 * 64]), doorbell: Mutex::default() };
    Shared(Arc::new(page))
}

#[test]
fn rule_12_1_what_was_stored_before_is_seen_by_what_comes_after() {
    let looks: [fn(&mut Engine); 2] = [|engine| _ = engine.poll(), |engine| engine.remove_queue(3)];
    for look in looks {
        sees_in_order(look);
    }
}

fn sees_in_order(look: fn(&mut Engine)) {
    let mut rig = Rig::matching();
    let (transmit, target, counter_page) = (page(), page(), page());
    rig.add_tx_at(3, false, transmit.clone());
    rig.add_target_at(1030, target.clone());
    let wb = rig.add_ct_at(9, Some(Box::new(counter_page.clone())));
    target.0.ring.lock().unwrap()[256..320].copy_from_slice(&entry(1, BUFFER, 64).encode());
    {
        let mut commands = transmit.0.ring.lock().unwrap();
        commands[256..320].copy_from_slice(&put(1).encode());
        commands[320..344].copy_from_slice(&counter(CtOp::GET, 9).encode());
    }
    *counter_page.0.doorbell.lock().unwrap() = Some(55);
    *target.0.doorbell.lock().unwrap() = Some(5);
    *transmit.0.doorbell.lock().unwrap() = Some(6);
    look(&mut rig.engine);
    rig.engine.run_until_idle();
    // The receive was there before the message, and the count before its GET.
    assert_eq!(rig.events(EQ), [ACK]);
    assert_eq!(rig.written_back(wb), Some((55, 0)));
}

#[test]
fn rule_12_2_a_trigger_may_hit_its_own_counter() {
    let mut rig = Rig::new();
    let wb = rig.add_ct(CT);
    for threshold in 1..=100 {
        let command =
            counter(CtOp::TRIG_INC, CT).with_trig_ct(CT).with_threshold(threshold).with_success(1);
        rig.submit(TRIGQ, &[&command.encode()]);
    }
    rig.ring_counter(CT, CounterDoorbell::AddSuccess, 1);
    assert_eq!(rig.count(CT, wb), (101, 0));
    assert_eq!(rig.engine.commands_in_flight(TRIGQ), 0);
}

/// The engine has no lock and no thread: it moves between processes and threads as it is.
#[test]
fn rule_12_3_the_engine_can_be_sent() {
    fn sendable<T: Send>(_: &T) {}
    sendable(&Rig::new().engine);
}

#[test]
fn rule_12_4_a_freed_queue_executes_what_was_rung() {
    let mut rig = Rig::matching();
    rig.append(&entry(1, BUFFER, 64));
    rig.store(TXQ, &[&put(1).encode(), &put(2).encode()]);
    rig.engine.remove_queue(TXQ);
    assert_eq!(rig.events(EQ), [ACK; 2]);
    rig.engine.ring_queue(TXQ, 9);
    assert!(!rig.engine.run_until_idle());
}

/// A queue that was not rung costs the same, however many queues there are.
#[test]
fn rule_12_4_a_freed_queue_that_was_not_rung_is_the_only_one_that_is_looked_at() {
    let mut rig = Rig::new();
    let (freed, other) = (page(), page());
    rig.add_tx_at(3, false, freed.clone());
    rig.add_tx_at(4, false, other.clone());
    *other.0.doorbell.lock().unwrap() = Some(5);
    rig.engine.remove_queue(3);
    assert_eq!(*other.0.doorbell.lock().unwrap(), Some(5));
}

/// As many receives as a pool has, one after the other, and as many messages.
#[test]
fn rule_12_5_appends_cost_the_same_however_many_there_are() {
    let mut rig = Rig::new();
    let limits = up_to(15_724);
    rig.engine.set_entry_pool(EntryPool::default(), limits);
    rig.portal(PORTAL, 0, PortalOptions::IS_MATCHING);
    let quiet = TargetFlags::OP_PUT
        | TargetFlags::USE_ONCE
        | TargetFlags::EVENT_LINK_DISABLE
        | TargetFlags::EVENT_UNLINK_DISABLE
        | TargetFlags::EVENT_COMM_DISABLE;
    let receive = entry(1, BUFFER, 64).with_flags(quiet);
    for _ in 0..15_724 {
        rig.append(&receive);
    }
    assert_eq!(rig.events(TARGET_EQ), []);
    rig.append(&receive);
    assert_eq!(rig.events(TARGET_EQ), [link(ReturnCode::NO_SPACE)]);
    for _ in 0..15_724 {
        rig.put(&put(1).with_eq(0));
    }
    assert_eq!(rig.engine.entries_in_use(EntryPool::default()), 0);
}

/// A program posts receives and then lets its peer send: more receives than a front end executes at
/// a time, of which the last one is for the message.
#[test]
fn rule_12_6_what_was_appended_before_a_packet_is_there() {
    let mut rig = Rig::matching();
    let mut peer = Rig::on(rig.fabric.clone(), NID + 1, Settings::default());
    peer.put(&put(1));
    assert_eq!(rig.fabric.waiting(), [NID]);
    let mut receives = vec![entry(2, BUFFER, 64).encode(); 80];
    receives.push(entry(1, BUFFER, 64).encode());
    let receives: Vec<_> = receives.iter().map(|it| &it[..]).collect();
    rig.store(TGQ, &receives);
    rig.engine.run_until_idle();
    let mut events = vec![LINK; 81];
    events.extend([PUT]);
    assert_eq!(rig.events(TARGET_EQ), events);
}
