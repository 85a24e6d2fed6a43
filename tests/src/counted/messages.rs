//! A message from a process to itself, for counted calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use cxi::{Device, ServiceId, ServiceSpec, Vni};
use cxi_data::{Buffer, Dma, Event, Report, TargetFlags};
use cxi_mock::Nic;

use crate::process::Process;

/// Number of polls for an event before giving up.
const LOOKS: u64 = 1 << 33;

type Problem = Box<dyn std::error::Error>;

/// A process that puts into its own buffer.
#[derive(Debug)]
pub(super) struct Messages {
    process: Process,
    from: Buffer,
    _to: Buffer,
    service: ServiceId,
}

impl Messages {
    pub(super) fn new(device: &Device) -> Result<Self, Problem> {
        let vni = Vni::new(64_101)?;
        let spec = ServiceSpec::builder().vni(vni).build()?;
        let service = device.services().create(&spec)?;
        let mut process = Process::new(device, service, vni, None)?;
        let to = Buffer::new(&process.lni, 4096)?;
        process.expose(&to, TargetFlags::EVENT_SUCCESS_DISABLE)?;
        Ok(Self { from: Buffer::new(&process.lni, 4096)?, process, _to: to, service })
    }

    /// Writes the message, and sends it.
    pub(super) fn post(&mut self) -> Result<(), Problem> {
        self.from.write(0, b"a message")?;
        let put = Dma::put(self.from.slice(0..9)?, self.process.address.portal(0));
        let report = Report::event(&self.process.events, 1);
        Ok(self.process.transmit.post(&put.report(report))?)
    }

    /// Waits for its completion without yielding the processor.
    pub(super) fn complete(&mut self) -> Result<(), Problem> {
        for _ in 0..LOOKS {
            if let Some(event) = self.process.events.drain().next() {
                return match event? {
                    Event::Completion(completion) => Ok(completion.result?),
                    _ => Err("another event came first".into()),
                };
            }
        }
        Err("no event came".into())
    }

    /// Frees what does not end with the process.
    pub(super) fn end(self, device: &Device) {
        let service = self.service;
        drop(self);
        let _ = device.services().destroy(service);
    }
}

/// A thread that runs the NIC in this process.
#[derive(Debug)]
pub(super) struct Running {
    ended: Arc<AtomicBool>,
    /// `true` if it polls for work. While it does, a thread that sends commands would wait for it.
    wanted: Arc<AtomicBool>,
    /// `true` if it may be polling.
    busy: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(super) fn new(nic: Arc<Nic>) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let wanted = Arc::new(AtomicBool::new(true));
        let busy = Arc::new(AtomicBool::new(false));
        let (until, work) = (Arc::clone(&ended), Arc::clone(&wanted));
        let polls = Arc::clone(&busy);
        let thread = thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                polls.store(true, Ordering::SeqCst);
                let worked = work.load(Ordering::SeqCst) && nic.run_until_idle();
                polls.store(false, Ordering::SeqCst);
                if !worked {
                    thread::yield_now();
                }
            }
        });
        Self { ended, wanted, busy, thread: Some(thread) }
    }

    pub(super) fn run(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::SeqCst);
        // The next call would otherwise wait for the poll under way with system calls.
        while !wanted && self.busy.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
