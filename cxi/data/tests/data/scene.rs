//! Two processes on a NIC that works only in [`Scene::run`].

use cxi::Vni;
use cxi::lni::{EventQueueOptions, LeList};
use cxi_data::kind::{self, Transmit};
use cxi_data::{
    Append, Buffer, Command, Error, Event, Events, Failure, ReturnCode, SetState, Target,
    TargetFlags,
};
use cxi_mock::{MockNode, Nic};

use crate::common::{Process, VNI, device, service};

/// Takes puts and gets.
pub(crate) const OPEN: TargetFlags = TargetFlags::OP_PUT.union(TargetFlags::OP_GET);
/// Bytes of a buffer.
pub(crate) const LEN: usize = 1 << 16;

pub(crate) struct Scene {
    node: MockNode,
    pub(crate) one: Process,
    pub(crate) two: Process,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let node = cxi_test_kit::node(1);
        let service = service(&device(&node).unwrap()).unwrap();
        let vni = Vni::new(VNI).unwrap();
        let process = || Process::new(&device(&node).unwrap(), service, vni, None).unwrap();
        let (one, two) = (process(), process());
        Self { node, one, two }
    }

    /// A scene with a buffer of the second process that takes puts and gets at its portal 0.
    pub(crate) fn open() -> (Self, Buffer, Target) {
        let mut scene = Self::new();
        let buffer = scene.exposed(OPEN);
        let to = scene.two.address.portal(0);
        (scene, buffer, to)
    }

    /// Posts a command of the first process.
    pub(crate) fn post(&mut self, command: &impl Command<Transmit>) {
        self.one.transmit.post(command).unwrap();
    }

    /// Posts a command for the lists of the second process.
    pub(crate) fn post_target(&mut self, command: &impl Command<kind::Target>) {
        self.two.target.post(command).unwrap();
    }

    /// Has the NIC do all its work, and reads the second process's events.
    pub(crate) fn settle(&mut self) {
        self.run();
        drop(events(&mut self.two.events));
    }

    /// Has the NIC do all its work.
    pub(crate) fn run(&self) {
        self.nic().run_until_idle();
    }

    pub(crate) fn nic(&self) -> &Nic {
        &self.node.nics()[0]
    }

    /// A buffer of the second process, exposed on its priority list.
    pub(crate) fn exposed(&mut self, flags: TargetFlags) -> Buffer {
        let buffer = Buffer::new(&self.two.lni, LEN).unwrap();
        let entry = Append::new(&self.two.pte, LeList::Priority, buffer.whole());
        let enable = SetState::enable(&self.two.pte);
        self.two.target.post(&enable).unwrap();
        self.two.target.post(&entry.buffer_id(7).flags(flags)).unwrap();
        self.run();
        assert_eq!(events(&mut self.two.events).len(), 2);
        buffer
    }
}

/// An event queue of the first process with room for `blocks` events.
pub(crate) fn small_events(process: &Process, bytes: usize) -> Events {
    let queue = process.lni.alloc_eq(&EventQueueOptions::new(bytes)).unwrap();
    Events::new(queue, &process.info).unwrap()
}

/// All events that have arrived.
pub(crate) fn events(events: &mut Events) -> Vec<Event> {
    events.drain().map(Result::unwrap).collect()
}

/// Tokens and results of completions; there must be no other events.
pub(crate) fn completions(of: &mut Events) -> Vec<(u64, Result<u32, ReturnCode>)> {
    let completion = |event| match event {
        Event::Completion(it) => (it.token, it.result.map(|()| it.length).map_err(|it| it.0)),
        other => panic!("{other:?}"),
    };
    events(of).into_iter().map(completion).collect()
}

pub(crate) fn word(buffer: &Buffer, offset: usize) -> u64 {
    let mut bytes = [0; 8];
    buffer.read(offset, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

pub(crate) fn is_full(error: &Error) -> bool {
    matches!(error, Error::Full { .. })
}

pub(crate) fn stopped(error: &Error) -> Option<ReturnCode> {
    match error {
        Error::Stopped(Failure(code)) => Some(*code),
        _ => None,
    }
}
