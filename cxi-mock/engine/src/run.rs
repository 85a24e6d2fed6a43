//! Next step of an engine. It takes commands from queues and packets from the link, and passes each
//! to the part that handles it.

use cxi_hw::{
    CState, Class, CommandByte, CqCommand, CqOp, CtCommand, CtOp, DmaAtomic, DmaOp, ReturnCode,
};

use crate::command_queue::{FIRST_TARGET, Fetched, Kind};
use crate::counter::Triggered;
use crate::dma::{self, After, Then};
use crate::landing::Landing;
use crate::link::{Operation, Owner, Undelivered};
use crate::packet::{Body, Data, Reply, ReplyTo, Request};
use crate::send::{SendCommand, Source, check_slots};
use crate::transfer::{self, Move, Moved};
use crate::translation::Access;
use crate::{CommunicationProfile, Engine, MemoryFault, ObservedOperation};

/// On whose behalf a command sends.
#[derive(Clone, Copy, Debug)]
struct Sender {
    rgid: u16,
    profile: CommunicationProfile,
    owner: Owner,
}

impl Engine {
    /// Does one piece of work: goes on after an access to memory, fires a triggered command, takes a
    /// packet, or executes a command. Says whether there was any.
    pub fn step(&mut self) -> bool {
        // What has begun ends before anything begins, as far as memory answers at once: a copy
        // before the next packet, and what commands have caused before the next command.
        self.step_access()
            || self.step_triggered()
            // Rule 12.6: Target commands that were rung come before packets and other commands: their
            // program may have let a peer send after it rang them.
            || self.step_target()
            || self.step_packet()
            || self.step_transmit()
            || self.step_retries()
    }

    /// Returns whether [`step`](Self::step) would find work, lost packets aside. Accesses that the
    /// front end has to execute do not count.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.signals.dmas.has_done()
            || self.signals.has_fired()
            || self.link.has_packets()
            || self.queues.any_listed()
    }

    /// Works until nothing is left to do but wait. Returns whether there was any work.
    pub fn run_until_idle(&mut self) -> bool {
        let mut worked = false;
        while self.step() {
            worked = true;
        }
        worked
    }

    /// Executes a command of the next target queue that has one, before all other work. Returns
    /// whether there was one.
    pub fn step_target(&mut self) -> bool {
        let next = self.queues.next_target();
        self.step_queue(next)
    }

    fn step_transmit(&mut self) -> bool {
        let next = self.queues.next_transmit();
        self.step_queue(next)
    }

    fn step_queue(&mut self, next: Option<u16>) -> bool {
        let Some(number) = next else { return false };
        if self.queues.read_ahead(number, &mut self.signals.dmas) {
            return true;
        }
        if let Some((queue, rgid, generation)) = self.queues.ready(number) {
            match queue.fetch() {
                Ok(fetched) => match self.execute((number, rgid, generation), &fetched) {
                    Ok(slots) => {
                        let dmas = &mut self.signals.dmas;
                        self.queues.advance(number, slots, dmas);
                    }
                    Err(code) => self.fail(number, fetched.byte, code),
                },
                Err((byte, code)) => self.fail(number, byte, code),
            }
            self.queues.list(number);
        }
        true
    }

    pub(crate) fn fail(&mut self, number: u16, byte: CommandByte, code: ReturnCode) {
        self.queues.fail(number, byte, code, &mut self.signals);
    }

    /// Executes a command. Returns how many slots it takes.
    fn execute(
        &mut self,
        (number, rgid, generation): (u16, u16, u64),
        fetched: &Fetched,
    ) -> Result<u32, ReturnCode> {
        if fetched.is_noop() {
            return Ok(1);
        }
        let byte = fetched.byte;
        self.signals.telemetry.command(byte);
        if number >= FIRST_TARGET {
            let (settings, signals) = (&self.settings, &mut self.signals);
            self.portals.execute(rgid, byte, &fetched.head(), settings, signals)?;
            self.send_gets();
        } else {
            let owner = Owner::Queue(number, generation);
            match byte.class() {
                Class::IDC => self.execute_immediate((number, rgid), owner, fetched)?,
                Class::DMA => {
                    let sender = self.sender((number, rgid), owner)?;
                    self.execute_dma(sender, byte, &fetched.head())?;
                }
                Class::CT => self.execute_counter((number, rgid, generation), fetched)?,
                _ => self.execute_cq((number, rgid), fetched)?,
            }
        }
        self.signals.telemetry.command_ended(number, ReturnCode::OK);
        // A command has at most eight slots.
        Ok(u32::try_from(byte.slots()).unwrap_or(u32::MAX))
    }
}

/// Commands that send.
impl Engine {
    /// The sender for a queue of an RGID.
    fn sender(&self, (number, rgid): (u16, u16), owner: Owner) -> Result<Sender, ReturnCode> {
        // Rule 1.2: A queue sends with the profile that its LCID has when the command runs; a
        // triggered command uses LCID 0.
        let lcid = match (owner, self.queues.kind(number)) {
            (Owner::Triggered(..), _) => 0,
            (_, Some(Kind::Transmit { lcid, .. })) => *lcid,
            _ => return Err(ReturnCode::ILLEGAL_OP),
        };
        let profile = self.profiles.get(&(rgid, lcid));
        Ok(Sender { rgid, profile: *profile.ok_or(ReturnCode::CMD_INVALID_ARG)?, owner })
    }

    fn execute_immediate(
        &mut self,
        (number, rgid): (u16, u16),
        owner: Owner,
        fetched: &Fetched,
    ) -> Result<(), ReturnCode> {
        let op = DmaOp(fetched.byte.opcode());
        let Some(Kind::Transmit { state, .. }) = self.queues.kind_mut(number) else {
            return Err(ReturnCode::ILLEGAL_OP);
        };
        match op {
            DmaOp::NOOP => return Ok(()),
            DmaOp::CSTATE => {
                check_slots(fetched.byte, 1)?;
                // Rule 2.10: The queue's state is zero at first and stays in force until it is set
                // again; immediate commands take from it what they lack.
                **state = CState::decode(&fetched.head());
                return Ok(());
            }
            _ => {}
        }
        let state = **state;
        let sender = self.sender((number, rgid), owner)?;
        self.issue(sender, &SendCommand::of_immediate(fetched, &state)?)
    }

    /// Executes a DMA command, from a queue or from within a triggered command.
    fn execute_dma(
        &mut self,
        sender: Sender,
        byte: CommandByte,
        bytes: &[u8; DmaAtomic::BYTES],
    ) -> Result<(), ReturnCode> {
        if let Some(command) = SendCommand::of_dma(byte, bytes)? {
            return self.issue(sender, &command);
        }
        // Its counter has begun to wait for it, but its queue has not.
        if matches!(sender.owner, Owner::Triggered(..)) {
            self.queues.end(sender.owner);
        }
        Ok(())
    }

    /// Reads the data of a command and sends it.
    fn issue(&mut self, sender: Sender, command: &SendCommand<'_>) -> Result<(), ReturnCode> {
        let Sender { rgid, profile, owner } = sender;
        let (eq, ct) = (command.command.eq, command.command.ct);
        if !self.signals.may_report(rgid, eq) || !self.signals.may_count(rgid, ct) {
            return Err(ReturnCode::CMD_INVALID_ARG);
        }
        let operation = Operation {
            rgid,
            owner,
            report: command.report(),
            fetch: command.fetch,
            high_rate: profile.high_rate,
        };
        // A triggered command has been counted since it was queued.
        if matches!(owner, Owner::Queue(..)) {
            self.queues.begin(owner);
        }
        self.signals.telemetry.high_rate_commands += u64::from(operation.high_rate);
        let to = command.command.dfa.nid();
        let mut request = command.request(profile.vni, self.settings.pid_bits);
        request.started = self.signals.now();
        match command.gather(rgid, &self.translation, &request) {
            Ok(Source::There(data)) => self.send(to, operation, request, data),
            Ok(Source::Read(memory, len)) => {
                let dmas = &mut self.signals.dmas;
                let access = dma::Access::Read(memory, 0, len, Vec::new());
                dmas.start(access, Then::Gathered(to, operation, request));
            }
            Err(code) => self.refuse_source(to, operation, &request, code),
        }
        Ok(())
    }

    /// The memory of a command cannot be read.
    fn refuse_source(
        &mut self,
        to: u32,
        operation: Operation,
        request: &Request,
        code: ReturnCode,
    ) {
        self.signals.telemetry.sources_refused.add(code.0);
        let reply = Reply::error(code);
        self.observe((self.settings.nid, to), request, &reply);
        self.complete(operation, reply);
    }

    /// The data of a command has been read.
    fn send_gathered(
        &mut self,
        (to, operation, mut request): (u32, Operation, Request),
        bytes: Option<Vec<u8>>,
    ) {
        // Nothing is sent for a queue that was freed meanwhile.
        if !self.is_there(operation.owner) {
            return;
        }
        let Some(bytes) = bytes else {
            let code = ReturnCode::NO_TRANSLATION;
            return self.refuse_source(to, operation, &request, code);
        };
        let data = if let Some(atomic) = &mut request.atomic {
            atomic.operand[..bytes.len()].copy_from_slice(&bytes);
            Data::None
        } else {
            Data::Inline(bytes)
        };
        self.send(to, operation, request, data);
    }

    fn send(&mut self, to: u32, operation: Operation, request: Request, data: Data) {
        if request.op != DmaOp::GET {
            self.signals.report_send(&operation.report, request.length);
        }
        if let Some(tree) = request.multicast {
            // The operation ends as soon as it is sent, because no member of a tree answers.
            let reply = Reply { mlength: request.length, ..Reply::error(ReturnCode::OK) };
            self.link.multicast(tree, request, data);
            self.complete(operation, reply);
        } else {
            self.launch(to, operation, request, data);
        }
    }

    fn launch(&mut self, to: u32, operation: Operation, request: Request, data: Data) {
        let undelivered = self.link.launch(to, operation, request, data);
        if let Some(undelivered) = undelivered {
            self.give_up(&undelivered);
        }
    }

    /// Sends the gets that rendezvous puts have caused.
    fn send_gets(&mut self) {
        while let Some(mut get) = self.portals.next_get() {
            get.request.started = self.signals.now();
            let context = (get.operation.rgid, get.lac);
            let len = get.request.length.into();
            let to = self.translation.translate(context, get.iova, len, Access::Write);
            match to {
                Ok(to) => self.launch(get.to, get.operation, get.request, Data::Memory(to)),
                Err(code) => self.complete(get.operation, Reply::error(code)),
            }
        }
    }
}

/// Commands of queues and counters.
impl Engine {
    fn execute_cq(
        &mut self,
        (number, rgid): (u16, u16),
        fetched: &Fetched,
    ) -> Result<(), ReturnCode> {
        check_slots(fetched.byte, 2)?;
        match CqOp(fetched.byte.opcode()) {
            // Each command ends before the next one starts.
            CqOp::NOOP | CqOp::FENCE => Ok(()),
            CqOp::LCID => {
                let selected = CqCommand::decode(&fetched.head()).lcid;
                let exists = self.profiles.contains_key(&(rgid, selected));
                let Some(Kind::Transmit { lcid, triggered, .. }) = self.queues.kind_mut(number)
                else {
                    return Err(ReturnCode::CMD_INVALID_ARG);
                };
                if !exists || *triggered && selected != 0 {
                    return Err(ReturnCode::CMD_INVALID_ARG);
                }
                *lcid = selected;
                Ok(())
            }
            _ => Err(ReturnCode::ILLEGAL_OP),
        }
    }

    fn execute_counter(
        &mut self,
        (number, rgid, generation): (u16, u16, u64),
        fetched: &Fetched,
    ) -> Result<(), ReturnCode> {
        let op = CtOp(fetched.byte.opcode());
        check_slots(fetched.byte, if op == CtOp::TRIG_DMA { 4 } else { 2 })?;
        let command = CtCommand::decode(&fetched.head());
        let Some(&Kind::Transmit { triggered, pool, .. }) = self.queues.kind(number) else {
            return Err(ReturnCode::CMD_INVALID_ARG);
        };
        let known = |ct| ct != 0 && self.signals.may_count(rgid, ct);
        let valid = match op {
            CtOp::NOOP => true,
            CtOp::SET | CtOp::GET | CtOp::INC | CtOp::CANCEL => known(command.ct),
            CtOp::TRIG_SET | CtOp::TRIG_INC => known(command.ct) && known(command.trig_ct),
            CtOp::TRIG_EVENT => known(command.trig_ct) && self.signals.may_report(rgid, command.eq),
            CtOp::TRIG_DMA => known(command.trig_ct),
            _ => return Err(ReturnCode::ILLEGAL_OP),
        };
        if !valid {
            return Err(ReturnCode::CMD_INVALID_ARG);
        }
        match op {
            // Rule 4.7: SET changes the parts that it flags, INC adds, and CANCEL drops what waits
            // for the counter in the command's `ct` field.
            CtOp::SET => self.signals.set(&command),
            CtOp::GET => self.signals.write_back(command.ct),
            CtOp::INC => self.signals.increment(&command),
            CtOp::CANCEL => {
                let cancelled = self.signals.cancel(command.ct);
                self.forget(&cancelled);
            }
            CtOp::NOOP => {}
            _ if !triggered => return Err(ReturnCode::ILLEGAL_OP),
            _ => {
                // Rule 14.2: TRIG_DMA holds a complete DMA command of any size after its own
                // fields.
                let dma = (op == CtOp::TRIG_DMA).then(|| {
                    let from = CtCommand::BYTES;
                    Box::new(std::array::from_fn(|at| fetched.bytes[from + at]))
                });
                let triggered =
                    Triggered { queue: number, generation, rgid, pool, op, command, dma };
                if !self.signals.trigger(triggered) {
                    return Err(ReturnCode::NO_SPACE);
                }
                self.queues.begin(Owner::Triggered(number, generation));
            }
        }
        Ok(())
    }

    /// Forgets triggered commands that were canceled before they ran.
    pub(crate) fn forget(&mut self, cancelled: &[Triggered]) {
        for triggered in cancelled {
            let owner = Owner::Triggered(triggered.queue, triggered.generation);
            self.queues.end(owner);
        }
    }

    /// Runs the next triggered command that is due. Commands that it triggers run after it.
    fn step_triggered(&mut self) -> bool {
        if !self.signals.has_fired() {
            return false;
        }
        let Some(triggered) = self.signals.next_fired() else { return false };
        let (number, generation) = (triggered.queue, triggered.generation);
        if !self.queues.is_current(number, generation) {
            return true;
        }
        let owner = Owner::Triggered(number, generation);
        let (command, rgid) = (&triggered.command, triggered.rgid);
        // What it names may belong to another RGID by now.
        let may_count = |ct| self.signals.may_count(rgid, ct);
        match (triggered.op, &triggered.dma) {
            (CtOp::TRIG_SET, _) if may_count(command.ct) => self.signals.set(command),
            (CtOp::TRIG_INC, _) if may_count(command.ct) => self.signals.increment(command),
            (CtOp::TRIG_EVENT, _) => {
                // Rule 14.3: TRIG_EVENT writes its counter back, then posts an event if it names a
                // queue.
                if may_count(command.trig_ct) {
                    self.signals.write_back(command.trig_ct);
                }
                if self.signals.may_report(rgid, command.eq) {
                    self.signals.post_triggered(command);
                }
            }
            (_, Some(dma)) => {
                let byte = CommandByte(dma[0]);
                let sender = self.sender((number, rgid), owner);
                let done = sender.and_then(|sender| {
                    if byte.class() == Class::DMA {
                        self.execute_dma(sender, byte, dma)
                    } else {
                        Err(ReturnCode::ILLEGAL_OP)
                    }
                });
                if let Err(code) = done {
                    self.queues.end(owner);
                    self.fail(number, byte, code);
                }
                // Any other command ends with its answer.
                return true;
            }
            _ => {}
        }
        self.queues.end(owner);
        true
    }
}

/// Operations of other NICs on memory here, and the ends of this NIC's own operations.
impl Engine {
    fn step_packet(&mut self) -> bool {
        let Some(packet) = self.link.receive() else { return false };
        let place = packet.place();
        match packet.body {
            Body::Reply(reply) => {
                if let Some(operation) = self.link.answered(place) {
                    self.end(operation, reply);
                }
            }
            Body::Request(request, data) => {
                let telemetry = &mut self.signals.telemetry;
                let awaited = request.multicast.is_none();
                let back = ReplyTo { awaited, ..place };
                let pid_bits = self.settings.pid_bits;
                if !self.link.is_too_early(back.nid, &request, pid_bits)
                    && self.link.admit(back, telemetry)
                {
                    self.arrive(back, &request, data);
                }
            }
        }
        true
    }

    fn step_retries(&mut self) -> bool {
        let Some(lost) = self.link.retry(&mut self.signals.telemetry) else { return false };
        for undelivered in &lost {
            self.give_up(undelivered);
        }
        true
    }

    fn arrive(&mut self, back: ReplyTo, request: &Request, data: Data) {
        let signals = &mut self.signals;
        let accepted = self.portals.accept(back, request, &self.settings, signals);
        signals.telemetry.arrived(request, accepted.as_ref().err().copied());
        match accepted {
            Ok(landing) => {
                let (settings, translation) = (&self.settings, &self.translation);
                let next = transfer::start(landing, data, settings, translation);
                self.continue_with(next);
            }
            Err(code) => {
                let reply = Reply::refusal(code);
                self.observe((back.nid, self.settings.nid), request, &reply);
                self.link.reply(back, reply);
            }
        }
    }

    /// Moves data, or reports a request whose data has moved.
    fn continue_with(&mut self, next: Move) {
        match next {
            Move::Access(access, then) => self.signals.dmas.start(access, then),
            Move::End(landing, moved) => self.land(&landing, moved),
        }
    }

    /// Goes on with what an access was for.
    fn step_access(&mut self) -> bool {
        let Some(done) = self.signals.dmas.next_done() else { return false };
        let (mut access, stored) = (done.access, done.result.is_ok());
        let translation = &self.translation;
        let mut read = || match &mut access {
            Some(dma::Access::Read(.., bytes)) if stored => Some(std::mem::take(bytes)),
            _ => None,
        };
        match done.then {
            Then::Commands(number, generation) => {
                let bytes = read().ok_or(MemoryFault);
                self.queues.was_read((number, generation), bytes);
            }
            Then::Gathered(to, operation, request) => {
                self.send_gathered((to, operation, request), read());
            }
            Then::Landed(landing) => {
                let fetched = match &access {
                    Some(dma::Access::Update(.., fetched)) => *fetched,
                    _ => [0; 16],
                };
                let moved = done.result.map(|()| fetched);
                self.land(&landing, moved.map_err(ReturnCode::from));
            }
            Then::Read(copy) => {
                let next = copy.write(read(), translation);
                self.continue_with(next);
            }
            Then::Written(copy, len) => {
                let next = copy.written(stored.then_some(len), translation);
                // Before the next piece needs one.
                self.give_back(access.take());
                self.continue_with(next);
            }
            Then::Fetched(operation, mut reply) => {
                // Rule 13.4: A fetched value that cannot be stored turns the REPLY into an error,
                // although the target value has changed.
                if !stored {
                    reply.code = ReturnCode::NO_TRANSLATION;
                }
                self.report_end(&operation, &reply);
            }
            Then::Posted(all) => {
                for after in all {
                    match after {
                        After::Wake(wait) => self.signals.dmas.wake_now(wait),
                        After::Reply(back, reply) => self.link.reply(back, reply),
                    }
                }
            }
        }
        self.give_back(access);
        true
    }

    /// Takes back the buffer of an access that has ended.
    fn give_back(&mut self, access: Option<dma::Access>) {
        if let Some(access) = access {
            self.signals.dmas.give_back(access);
        }
    }

    /// Reports a request whose data has moved, and answers it.
    fn land(&mut self, landing: &Landing, moved: Moved) {
        let code = moved.err().unwrap_or(ReturnCode::OK);
        let reply = match moved {
            Ok(fetched) => landing.reply(fetched),
            Err(code) => {
                self.signals.telemetry.refusals.add(code.0);
                Reply::refusal(code)
            }
        };
        let route = (landing.back.nid, self.settings.nid);
        self.observe(route, &landing.request, &reply);
        let is_get = landing.request.op == DmaOp::GET;
        if is_get {
            // The answer to a get leaves before the GET event: that event may end a rendezvous, and
            // the target must have its REPLY before the source reuses the ID for another message.
            self.link.reply(landing.back, reply);
        }
        let (settings, signals) = (&self.settings, &mut self.signals);
        let eq = self.portals.report(landing, code, settings, signals);
        if !is_get {
            // Rule 9.7: UNLINK, MATCH and the event of the message precede the answer, and therefore
            // the initiator's ACK.
            let after = After::Reply(landing.back, reply);
            if let Some(After::Reply(back, reply)) = self.signals.after_events(eq, after) {
                self.link.reply(back, reply);
            }
        }
        self.send_gets();
    }

    /// Ends an operation that gets no answer.
    fn give_up(&mut self, undelivered: &Undelivered) {
        let reply = Reply::error(ReturnCode::UNDELIVERABLE);
        let route = (self.settings.nid, undelivered.to);
        self.observe(route, &undelivered.request, &reply);
        self.end(undelivered.operation.clone(), reply);
    }

    /// Ends an operation that has its answer.
    fn end(&mut self, operation: Operation, reply: Reply) {
        self.signals.telemetry.high_rate_acks += u64::from(operation.high_rate);
        self.complete(operation, reply);
    }

    /// Stores what an operation has fetched, and ends it.
    fn complete(&mut self, operation: Operation, mut reply: Reply) {
        if let Some(fetch) = operation.fetch
            && reply.code == ReturnCode::OK
            && self.is_there(operation.owner)
        {
            let context = (operation.rgid, fetch.lac);
            let len = fetch.len as u64;
            let to = self.translation.translate(context, fetch.iova, len, Access::Write);
            match to {
                Ok(to) => {
                    let bytes = reply.fetched[..fetch.len].to_vec();
                    let access = dma::Access::Write(to, 0, bytes);
                    return self.signals.dmas.start(access, Then::Fetched(operation, reply));
                }
                Err(code) => reply.code = code,
            }
        }
        self.report_end(&operation, &reply);
    }

    /// Reports the end of an operation and lets its queue go on.
    fn report_end(&mut self, operation: &Operation, reply: &Reply) {
        if self.is_there(operation.owner) {
            self.signals.report_end(&operation.report, reply);
            self.queues.end(operation.owner);
        }
    }

    /// Returns whether what waits for an operation is still there.
    fn is_there(&self, owner: Owner) -> bool {
        match owner {
            Owner::Queue(number, generation) | Owner::Triggered(number, generation) => {
                self.queues.is_current(number, generation)
            }
            Owner::Portal(number, generation) => self.portals.is_current(number, generation),
        }
    }

    /// Shows the observer the end of an operation.
    fn observe(&mut self, route: (u32, u32), request: &Request, reply: &Reply) {
        let pid_bits = self.settings.pid_bits;
        self.signals.observe(|| ObservedOperation::new(route, request, reply, pid_bits));
    }
}
