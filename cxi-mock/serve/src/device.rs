//! The character device: what `open`, `write` and `close` of `/dev/cxiN` do.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

use fuser::{FileHandle, FopenFlags, INodeNo, ReplyOpen, Request};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use zerocopy::{FromZeros as _, IntoBytes as _};

use cxi_ioctl::abi::domain::DomainAllocResp;
use cxi_ioctl::abi::lni::{LniAllocCmd, LniAllocCmdV1};
use cxi_ioctl::{Effect, Errno, LniForm, Object, Opcode};
use cxi_mock::serve::Windows;
use cxi_mock::{CallerMemory, Surroundings};

use super::addresses::RemoteBuffers;
use super::messages::MessageBuffers;
use super::releases::READS_HEADER;
use super::server::{Function, LNI_FORM_DIFFERS, LNI_FORM_FITS, OpenFile, Server};
use super::trace::Noted;
use super::windows::Backing;
use super::{credentials, memory, procfs};

/// The size that the device shows as a file: writes never get there.
pub(crate) const SIZE: u64 = 1 << 50;

/// Number of bytes of every command that some drivers read, whatever its length.
const HEADER: usize = 16;

/// Commands of several threads run concurrently, and closing needs no request.
const FLAGS: FopenFlags = FopenFlags::FOPEN_DIRECT_IO
    .union(FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES)
    .union(FopenFlags::FOPEN_NOFLUSH);

/// A thread that makes a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) pid: Pid,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl From<&Request> for Caller {
    fn from(request: &Request) -> Self {
        Self { pid: procfs::pid(request.pid()), uid: request.uid(), gid: request.gid() }
    }
}

/// Opens the device. The file is a stream, unless its windows can be mapped: the kernel cannot
/// have both.
///
/// The kernel has one memory for each inode. Where a device is bound elsewhere, or opened anew
/// through `/proc/PID/fd`, the inode may be open already, and then it is busy.
pub(crate) fn open(
    server: &Server,
    function: &Function,
    (inode, user): (INodeNo, u32),
    reply: ReplyOpen,
) {
    let share = server.budgets.file(user);
    if share.is_none() {
        return reply.error(fuser::Errno::EMFILE);
    }
    let opened = if server.mappable(inode).is_some() { Err(Errno::EBUSY) } else { function.open() };
    let client = match opened {
        Ok(client) => client,
        Err(errno) => return reply.error(to_fuse(errno)),
    };
    let backing = match function.back(&client, &reply) {
        Ok(backing) => backing,
        Err(error) => return reply.error(error.into()),
    };
    if backing.is_none() {
        // Only the socket of the node has them.
        Windows::of(&client).share_all();
    }
    let id = backing.as_ref().map(Backing::id);
    // Nothing of the file is held here once the program hears of it, because the program may close
    // it at once.
    let handle = FileHandle(server.keep(OpenFile {
        client,
        function: function.number,
        inode,
        backing,
        lni_forms: AtomicU8::new(0),
        said_differs: Arc::clone(&function.said_differs),
        token: OnceLock::new(),
        _share: share,
    }));
    match id {
        Some(id) => reply.opened_passthrough(handle, FLAGS, &id),
        None => reply.opened(handle, FLAGS | FopenFlags::FOPEN_STREAM),
    }
}

/// One command on an open file.
#[derive(Debug)]
pub(crate) struct Call {
    /// The file.
    pub(crate) file: Arc<OpenFile>,
    /// Process that writes.
    pub(crate) caller: Caller,
    /// The command's bytes.
    pub(crate) command: Vec<u8>,
}

impl Call {
    /// Executes the command; returns its length. The file is released before the caller gets its
    /// answer, because the caller may then close the file.
    ///
    /// The buffers of the response and the list are in the caller's memory, or else in `messages`.
    pub(crate) fn execute(
        self,
        server: &Arc<Server>,
        messages: Option<&mut MessageBuffers>,
    ) -> Result<usize, Errno> {
        if let Some(delay) = self.file.client.nic().faults().delay_of(self.opcode()) {
            thread::sleep(delay);
        }
        let start = Instant::now();
        let nic = self.file.client.nic();
        let around = Around { call: &self, server };
        let result = nic.perform(self.opcode(), &around, || self.submit(server, messages));
        // The command has caused events.
        server.wake_all();
        if let Some(trace) = &server.trace {
            let noted = Noted {
                device: format!("cxi{}", self.file.function),
                pid: self.caller.pid.as_raw(),
                uid: self.caller.uid,
                client: self.file.client.number(),
                command: self.opcode().to_string(),
                length: self.command.len(),
                result: result.map_or_else(|errno| errno.to_string(), |_| "OK".to_owned()),
                microseconds: start.elapsed().as_micros(),
            };
            trace.note(Instant::now(), &noted);
        }
        result
    }

    fn submit(
        &self,
        server: &Arc<Server>,
        messages: Option<&mut MessageBuffers>,
    ) -> Result<usize, Errno> {
        let Caller { pid, uid, gid } = self.caller;
        let opcode = self.opcode();
        if opcode == Opcode::LNI_ALLOC {
            self.settle_release(server);
        }
        let release = self.file.client.nic().release();
        let is_in_memory = messages.is_none();
        if is_in_memory && READS_HEADER.at(release) && self.command.len() < HEADER {
            memory::check_written_from(pid, HEADER)?;
        }
        let credentials =
            credentials::of_caller((pid, uid, gid), opcode, release, server.authority);
        let gets_doorbell =
            matches!(opcode.effect(), Some(Effect::Makes(Object::CommandQueue | Object::Counter)));
        if is_in_memory
            && gets_doorbell
            && let Some(function) = server.function(self.file.function)
        {
            function.say_unmappable();
        }
        // Without the number of the file system, a trapped store would find no doorbell.
        let trapped = gets_doorbell
            && self.file.backing.is_some()
            && server.mounted.get().is_some()
            && server.traps.attach(server, pid);
        let mut remote = RemoteBuffers::of(pid, &self.command, opcode, release).trapping(trapped);
        let buffers: &mut dyn CallerMemory = match messages {
            Some(messages) => {
                messages.find_list(&self.command, opcode, release);
                messages
            }
            None => &mut remote,
        };
        let client = &self.file.client;
        let written = client.write(&credentials, &self.command, buffers)?;
        let mut made = DomainAllocResp::new_zeroed();
        if opcode == Opcode::DOMAIN_ALLOC && buffers.read_response(made.as_mut_bytes()).is_ok() {
            let nid = client.nic().hardware().nid();
            server.endpoints.made((nid, made.vni, made.pid), pid);
        }
        Ok(written)
    }

    /// Under `--release auto`, the driver is the one that the program's library is written for,
    /// which the length of this command reveals. Otherwise the file remembers that the two differ,
    /// unless the program knows both forms, as this project's libraries do.
    fn settle_release(&self, server: &Server) {
        const LONG: usize = size_of::<LniAllocCmd>();
        const SHORT: usize = size_of::<LniAllocCmdV1>();
        let nic = self.file.client.nic();
        let form = match self.command.len() {
            LONG => LniForm::Long,
            SHORT => LniForm::Short,
            _ => return,
        };
        let knows_other = self.file.lni_forms.load(Ordering::Relaxed) == LNI_FORM_FITS;
        let fits = LniForm::for_release(nic.release()) == form
            || (server.release_follows && !knows_other && nic.follow(form));
        let seen = if fits { LNI_FORM_FITS } else { LNI_FORM_DIFFERS };
        self.file.lni_forms.fetch_max(seen, Ordering::Relaxed);
    }

    /// A command that is too short for an opcode counts as one with an unused number.
    fn opcode(&self) -> Opcode {
        let number = self.command.first_chunk().copied().unwrap_or_default();
        Opcode::from_number(u32::from_ne_bytes(number))
    }
}

/// A command of a program, for the script of a sweep.
struct Around<'a> {
    call: &'a Call,
    server: &'a Server,
}

impl Surroundings for Around<'_> {
    fn kill(&self) {
        let _ = kill(self.call.caller.pid, Signal::SIGKILL);
    }

    fn unplug(&self) {
        match self.server.scene.get() {
            Some(scene) => (scene.unplug)(self.call.file.function),
            None => self.call.file.client.nic().faults().unplug(),
        }
    }

    fn delay(&self) {
        let late = self.server.scene.get().map(|scene| scene.late);
        thread::sleep(late.unwrap_or_default());
    }

    fn between(&self) {
        if let Some(scene) = self.server.scene.get() {
            (scene.between)();
        }
    }
}

/// An errno as the file system's library wants it.
pub(crate) fn to_fuse(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw())
}
