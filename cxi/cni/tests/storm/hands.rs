//! The NICs in the hands of a process that may be killed, fail, or be interrupted by others.

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use cxi_ioctl::{Errno, Opcode, Request, Transport};
use cxi_mock::InProcess;

use crate::model::Who;
use crate::step::{Act, Mishap};
use crate::world::World;

/// Ends a process of the storm.
pub(crate) struct Killed;

/// A process: what it does, and what goes wrong with it.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) who: Who,
    pub(crate) act: u32,
    world: Arc<World>,
    mishap: Mutex<Option<Mishap>>,
    commands: AtomicU32,
    changes: AtomicU32,
    dead: AtomicBool,
}

impl Process {
    pub(crate) fn new(world: &Arc<World>, who: Who, act: u32, mishap: Option<Mishap>) -> Arc<Self> {
        Arc::new(Self {
            who,
            act,
            world: Arc::clone(world),
            mishap: Mutex::new(mishap),
            commands: AtomicU32::new(0),
            changes: AtomicU32::new(0),
            dead: AtomicBool::new(false),
        })
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    fn die(&self) {
        self.dead.store(true, Ordering::SeqCst);
        if !thread::panicking() {
            resume_unwind(Box::new(Killed));
        }
    }

    /// Called before a change of a file.
    pub(crate) fn before_change(&self) -> io::Result<()> {
        let number = self.changes.fetch_add(1, Ordering::SeqCst);
        let mishap = self.mishap.lock().unwrap().clone();
        match mishap {
            Some(Mishap::KilledAtChange(at)) if number >= at => self.die(),
            Some(Mishap::DiskFull(at)) if number >= at => {
                return Err(io::Error::from_raw_os_error(Errno::ENOSPC.raw()));
            }
            _ if self.is_dead() => self.die(),
            _ => {}
        }
        if self.is_dead() { Err(io::Error::other("killed")) } else { Ok(()) }
    }

    /// Called before a command: what it is answered with without being carried out, or in spite of it.
    fn before_command(&self) -> Result<Option<(Errno, bool)>, Errno> {
        let number = self.commands.fetch_add(1, Ordering::SeqCst);
        let mut mishap = self.mishap.lock().unwrap();
        match mishap.clone() {
            _ if self.is_dead() => {
                drop(mishap);
                self.die();
                Err(Errno::ENODEV)
            }
            Some(Mishap::KilledAtCommand(at)) if number >= at => {
                drop(mishap);
                self.die();
                Err(Errno::ENODEV)
            }
            Some(Mishap::Fails { command, errno, carried_out }) if number == command => {
                Ok(Some((errno, carried_out)))
            }
            Some(Mishap::Meanwhile(at, act)) if number >= at => {
                *mishap = None;
                drop(mishap);
                // A call of the plugin would wait for the one that it interrupts.
                if !matches!((self.who, &act), (Who::Pod(_), Act::PodAdd(_) | Act::PodDel(_))) {
                    let _ = World::perform(&self.world, &act, None);
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }
}

/// A NIC in the hands of a process.
#[derive(Debug)]
pub(crate) struct Hands {
    pub(crate) file: InProcess,
    pub(crate) nic: u32,
    pub(crate) process: Arc<Process>,
}

impl Transport for Hands {
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        let fails = self.process.before_command()?;
        if let Some((errno, false)) = fails {
            return Err(errno);
        }
        let changes = matches!(
            request.opcode(),
            Opcode::SVC_ALLOC | Opcode::SVC_SET_NETNS | Opcode::SVC_DESTROY
        );
        let done = if changes {
            let watched = self.process.world.watch(self.nic, &self.process);
            let done = self.file.submit(request);
            watched.see();
            done
        } else {
            self.file.submit(request)
        };
        match fails {
            Some((errno, _)) => Err(errno),
            None => done,
        }
    }

    fn map(&self, offset: u64, len: usize) -> Result<cxi_ioctl::Mapping, Errno> {
        self.file.map(offset, len)
    }
}
