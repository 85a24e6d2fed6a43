//! The thread that traces a process, and what it forks.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{fs, thread};

use cxi_mock::serve::Windows;
use nix::libc::{
    PTRACE_EVENT_EXEC, PTRACE_EVENT_STOP, SIGBUS, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU,
    user_regs_struct,
};
use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;

use super::super::error::say;
use super::super::memory::{self, PAGE};
use super::super::procfs::process_of;
use super::super::server::{OpenFile, Server};
use super::super::{children, procfs, windows};
use super::store::{MAX_BYTES, Store};
use super::{Traced, tracee};

/// Time to wait until a process can be traced. A process that is executing another program cannot,
/// until the thread that waits here for an answer has ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// New threads and forked processes are traced as well; an executed program is not.
const OPTIONS: Options = Options::PTRACE_O_TRACECLONE
    .union(Options::PTRACE_O_TRACEFORK)
    .union(Options::PTRACE_O_TRACEVFORK)
    .union(Options::PTRACE_O_TRACEEXEC);

/// Traces a process from now on, in a separate thread. Returns whether that is possible.
pub(super) fn start(server: &Arc<Server>, process: Pid, traced: &Arc<Traced>) -> bool {
    children::TRACES.store(true, Ordering::Release);
    let (sender, seized) = channel();
    let watcher = Tracer {
        server: Arc::clone(server),
        user: procfs::user_of(process).unwrap_or_default(),
        traced: Arc::clone(traced),
        windows: HashMap::new(),
        stores: HashMap::new(),
        epoch: 0,
    };
    let thread = thread::Builder::new()
        .name("doorbells".to_owned())
        .spawn(move || watcher.trace(process, &sender));
    thread.is_ok() && seized.recv_timeout(PATIENCE).unwrap_or(false)
}

/// The window that a page of a process belongs to.
struct Window {
    file: Weak<OpenFile>,
    offset: u64,
}

struct Tracer {
    server: Arc<Server>,
    /// User of the process.
    user: u32,
    traced: Arc<Traced>,
    /// Pages that have been stored to, by thread.
    windows: HashMap<(Pid, u64), Window>,
    /// Instructions that have stored to them, by thread and address.
    stores: HashMap<(Pid, u64), Store>,
    epoch: u64,
}

impl Tracer {
    fn trace(mut self, process: Pid, seized: &Sender<bool>) {
        let all = seize(process);
        // Threads that are no longer traced continue without this one.
        if seized.send(all.is_ok()).is_err() || all.is_err() {
            return;
        }
        tracee::hush_stops();
        self.run();
        self.forget(process);
    }

    fn run(&mut self) {
        while let Some((thread, status)) = tracee::next() {
            match status.stopping_signal() {
                // If the thread was killed, its end is reported next.
                Some(signal) => {
                    let _ = self.stopped(thread, signal, status.as_raw() >> 16);
                }
                None => self.forget(thread),
            }
        }
    }

    /// Handles a stopped thread, either for a signal or for an event.
    fn stopped(&mut self, thread: Pid, signal: i32, event: i32) -> nix::Result<()> {
        match event {
            PTRACE_EVENT_STOP if matches!(signal, SIGSTOP | SIGTSTP | SIGTTIN | SIGTTOU) => {
                tracee::leave_stopped(thread)
            }
            PTRACE_EVENT_STOP => {
                // The event is a new thread, or a new process.
                if let Some(process) = process_of(thread) {
                    let mut all = self.server.traps.traced.lock();
                    all.insert(process, Arc::clone(&self.traced));
                }
                tracee::go_on(thread, 0)
            }
            PTRACE_EVENT_EXEC => {
                self.forget(thread);
                ptrace::detach(thread, None)
            }
            0 if signal != SIGBUS || self.rang(thread).is_none() => tracee::go_on(thread, signal),
            0 => Ok(()),
            _ => tracee::go_on(thread, 0),
        }
    }

    fn forget(&mut self, thread: Pid) {
        self.server.traps.forget(thread, &self.traced);
        self.windows.retain(|(of, _), _| *of != thread);
        self.stores.retain(|(of, _), _| *of != thread);
    }

    /// If a thread was stopped at a store to a doorbell, does what the store does and lets the
    /// thread continue. Returns `None` for any other cause.
    fn rang(&mut self, thread: Pid) -> Option<()> {
        let mut registers = ptrace::getregs(thread).ok()?;
        let known = self.stores.get(&(thread, registers.rip)).copied();
        let rung = known.and_then(|store| Some((store, self.ring(thread, &store, &registers)?)));
        // If the remembered instruction rings nothing, the code may have changed, so it is read
        // again. Reading takes a system call, which is why instructions are remembered.
        let (store, held) = rung.or_else(|| {
            let mut code = [0; MAX_BYTES];
            let code = memory::read_some(thread, registers.rip, &mut code);
            let store = Store::decode(code, registers.rip)?;
            let held = self.ring(thread, &store, &registers)?;
            self.stores.insert((thread, registers.rip), store);
            Some((store, held))
        })?;
        self.server.wake_all();
        // If the thread was killed in the meantime, its end is reported next.
        let _ = if let Some(register) = store.exchanged(&mut registers) {
            *register = held;
            registers.rip = store.end();
            ptrace::setregs(thread, registers)
        } else {
            tracee::jump(thread, store.end())
        };
        let _ = tracee::go_on(thread, 0);
        Some(())
    }

    /// Does what a store does if it is a store to a doorbell. Returns what an exchange finds there.
    fn ring(&mut self, thread: Pid, store: &Store, registers: &user_regs_struct) -> Option<u64> {
        let word = store.word(registers);
        store.addresses(registers).find_map(|address| {
            let (file, offset) = self.window_at(thread, address)?;
            let held = Windows::of(&file.client).store(self.user, offset, word);
            if held.is_none() {
                // The program may have freed the doorbell, and have mapped something else there by
                // now.
                if !Windows::of(&file.client).has_doorbell(offset) {
                    self.windows.remove(&(thread, address - address % PAGE));
                    return None;
                }
                say(format_args!(
                    "the instruction of thread {thread} at {:#x} does not store eight bytes to a \
                     doorbell: it is skipped",
                    registers.rip
                ));
            }
            held.or(word).or(Some(0))
        })
    }

    /// The file and the offset that an address of a thread's process belongs to.
    fn window_at(&mut self, thread: Pid, address: u64) -> Option<(Arc<OpenFile>, u64)> {
        let epoch = self.traced.epoch.load(Ordering::Acquire);
        if std::mem::replace(&mut self.epoch, epoch) != epoch {
            self.windows.clear();
        }
        let place = address % PAGE;
        let key = (thread, address - place);
        if let Some(Window { file, offset }) = self.windows.get(&key) {
            return Some((file.upgrade()?, offset + place));
        }
        let (path, offset) = procfs::mapped_at(thread, key.1)?;
        let (file_system, inode) = windows::opened(&path)?;
        // A program may mount a file system that has the same inode numbers.
        if self.server.mounted.get() != Some(&file_system) {
            return None;
        }
        let file = self.server.mappable(inode)?;
        // Otherwise a program could ring a doorbell of a file that it does not have, at the offset
        // of that doorbell in its own file.
        if !Windows::of(&file.client).has_doorbell(offset) {
            return None;
        }
        let window = Window { file: Arc::downgrade(&file), offset };
        self.windows.insert(key, window);
        Some((file, offset + place))
    }
}

/// Traces all threads of a process.
fn seize(process: Pid) -> nix::Result<()> {
    let mut seized = std::collections::HashSet::new();
    // Threads made by a traced thread are traced. Until all are traced, one that is not may make
    // more.
    loop {
        let before = seized.len();
        for thread in threads_of(process) {
            if seized.insert(thread) {
                match ptrace::seize(thread, OPTIONS) {
                    // The thread has ended since, or it is traced already because a traced thread
                    // has made it.
                    Err(_) if seized.len() > 1 => {}
                    seized => seized?,
                }
            }
        }
        if seized.len() == before {
            return Ok(());
        }
    }
}

fn threads_of(process: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    threads
        .flatten()
        .filter_map(|thread| thread.file_name().to_str()?.parse().ok())
        .map(Pid::from_raw)
        .collect()
}
