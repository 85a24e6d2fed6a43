//! The file system: what the kernel asks.
//!
//! One thread takes the kernel's requests in order, and others answer them, so that nothing a NIC
//! or a caller does keeps the file system from answering other requests. Only which files are
//! closed is noted in that order.
//!
//! This makes closing a file synchronous, as it is with the driver. The kernel does not wait for
//! the answer to a release, but any later request of the program comes after it, and is answered
//! when the file is closed.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use cxi_ioctl::socket::wire::Token;
use cxi_mock::Reading;
use fuser::{
    BsdFileFlags, Errno, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, PollEvents, PollFlags, PollNotifier, ReplyAttr,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyPoll, ReplyWrite, Request,
    TimeOrNow, WriteFlags,
};
use nix::libc::{O_ACCMODE, O_RDONLY};
use nix::unistd::geteuid;

use super::device::{self, Call, Caller, to_fuse};
use super::files::Files;
use super::place::{ClientPlace, Place};
use super::server::Server;
use super::tree::Item;
use super::workers::Workers;

/// The kernel caches nothing, because everything may change.
const NOW: Duration = Duration::ZERO;

/// Bytes of a configuration space that everybody may read.
const HEADER: usize = 64;

/// The part of a text that a read asks for.
fn part(text: &[u8], offset: u64, size: u32) -> &[u8] {
    let start = usize::try_from(offset).map_or(text.len(), |offset| offset.min(text.len()));
    let rest = text.get(start..).unwrap_or_default();
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    rest.get(..size).unwrap_or(rest)
}

/// The file system, and the threads that answer for it.
#[derive(Debug)]
pub(crate) struct FileSystem {
    files: Arc<Files>,
    workers: Workers,
}

impl FileSystem {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self { files: Arc::new(Files::new(server)), workers: Workers::default() }
    }

    /// Answers in another thread. A reply that is dropped answers EIO.
    fn answer(&self, answer: impl FnOnce(&Files) + Send + 'static) {
        let files = Arc::clone(&self.files);
        self.workers.run(Box::new(move || answer(&files)));
    }
}

impl Filesystem for FileSystem {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Where the kernel has no passthrough, windows cannot be mapped, but everything else works.
        if config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok() {
            let _ = config.set_max_stack_depth(1);
        }
        // Releases are subject to this limit, and must never wait.
        let _ = config.set_max_background(u16::MAX);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        self.answer(move |files| {
            let attributes = Place::of(parent)
                .zip(name.to_str())
                .and_then(|(place, name)| files.child(place, name))
                .and_then(|place| files.attributes(place));
            match attributes {
                Some(attributes) => reply.entry(&NOW, &attributes, Generation(0)),
                None => reply.error(Errno::ENOENT),
            }
        });
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        self.answer(move |files| {
            match Place::of(ino).and_then(|place| files.attributes(place.lasting())) {
                Some(attributes) => reply.attr(&NOW, &attributes),
                None => reply.error(Errno::ENOENT),
            }
        });
    }

    /// `open(2)` with O_TRUNC comes here; neither devices nor attributes have a size to set.
    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if mode.or(uid).or(gid).is_some() {
            return reply.error(Errno::EPERM);
        }
        self.getattr(req, ino, fh, reply);
    }

    /// As sysfs, in which nothing can be made: a file that is written but not there is EACCES.
    fn mknod(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EACCES);
    }

    fn mkdir(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EPERM);
    }

    fn unlink(&self, _req: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        self.answer(move |files| match Place::of(ino).and_then(|place| files.item(place)) {
            Some(Item::Link(target)) => reply.data(target.as_bytes()),
            Some(_) => reply.error(Errno::EINVAL),
            None => reply.error(Errno::ENOENT),
        });
    }

    fn open(&self, req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let user = req.uid();
        self.answer(move |files| {
            match Place::of(ino) {
                Some(Place::Device(number, _)) => match files.server().function(number) {
                    Some(function) => device::open(files.server(), function, (ino, user), reply),
                    None => reply.error(Errno::ENXIO),
                },
                Some(Place::Clients(number, ClientPlace::Interrupt(client, wait))) => {
                    let handle = files.server().interrupts.open((number, client, wait));
                    files.open_attribute(handle, reply);
                }
                // A file that is opened for writing is root's, and has another backing than one
                // that is read.
                Some(place) if files.kind(place).is_some() && flags.0 & O_ACCMODE != O_RDONLY => {
                    reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
                }
                Some(place) if files.kind(place).is_some() => files.open_attribute(0, reply),
                _ => reply.error(Errno::ENOENT),
            }
        });
    }

    fn read(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let is_root = req.uid() == geteuid().as_raw();
        self.answer(move |files| {
            let Some(place) = Place::of(ino) else { return reply.error(Errno::ENOENT) };
            if matches!(place, Place::Device(..)) {
                // A driver refuses to be read, and so does this, but for a library that knows the socket.
                let asks = usize::try_from(size) == Ok(size_of::<Token>());
                return match asks.then(|| files.server().token(fh.0)) {
                    Some(Ok(token)) => reply.data(&token),
                    _ => reply.error(Errno::EINVAL),
                };
            }
            if let Place::Clients(_, ClientPlace::Interrupt(..)) = place {
                if offset == 0 {
                    files.server().interrupts.see(fh.0);
                }
                return reply.data(part(b"\n", offset, size));
            }
            // A reading of an attribute begins at its start, and ends with an empty one.
            if offset == 0 {
                let Reading { errno, delay, .. } = files.reading(place);
                thread::sleep(delay);
                if let Some(errno) = errno {
                    return reply.error(to_fuse(errno));
                }
            }
            match files.item(place) {
                Some(Item::Bytes(read)) => {
                    let bytes = read();
                    let readable = if is_root { bytes.len() } else { HEADER };
                    reply.data(part(bytes.get(..readable).unwrap_or(&bytes), offset, size));
                }
                Some(Item::Attribute(attribute)) => {
                    reply.data(part(attribute.read().as_bytes(), offset, size));
                }
                Some(Item::Zeros(length)) => {
                    let left = length.saturating_sub(offset).min(size.into());
                    reply.data(&vec![0; usize::try_from(left).unwrap_or_default()]);
                }
                Some(_) => reply.error(Errno::EINVAL),
                // The NIC was taken out while the file was open.
                None => reply.error(Errno::ENODEV),
            }
        });
    }

    fn write(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let (caller, data) = (Caller::from(req), data.to_vec());
        let file = matches!(Place::of(ino), Some(Place::Device(..))).then_some(fh.0);
        let Some(share) = self.files.unclosed().budgets.command(req.uid(), file) else {
            return reply.error(Errno::EAGAIN);
        };
        let answered = move |result, reply| {
            // Another command of the program may come as soon as this one is answered.
            drop(share);
            answer(result, reply);
        };
        self.answer(move |files| match Place::of(ino) {
            Some(Place::Device(..)) => match files.command(caller, fh, data) {
                Some(result) => answered(result, reply),
                None => reply.error(Errno::EBADF),
            },
            Some(place) => match files.item(place) {
                Some(Item::Attribute(attribute)) => {
                    answered(attribute.write(&data).map(|()| data.len()), reply);
                }
                Some(_) => reply.error(Errno::EINVAL),
                None => reply.error(Errno::ENODEV),
            },
            None => reply.error(Errno::ENOENT),
        });
    }

    /// Called for every close of every copy of a descriptor; there is nothing to do.
    fn flush(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn release(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let server = self.files.unclosed();
        match Place::of(ino) {
            Some(Place::Device(..)) => server.close(fh.0),
            Some(Place::Clients(..)) => server.interrupts.close(fh.0),
            _ => {}
        }
        reply.ok();
        self.answer(|files| files.unclosed().close_unmapped());
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        self.answer(move |files| {
            let Some(place) = Place::of(ino).filter(|place| files.kind(*place).is_some()) else {
                return reply.error(Errno::ENOENT);
            };
            let dots = [(".".to_owned(), place), ("..".to_owned(), place)];
            let entries = dots.into_iter().chain(files.children(place));
            for (next, (name, place)) in (1..).zip(entries) {
                if next <= offset {
                    continue;
                }
                let kind = files.kind(place).map_or(FileType::RegularFile, |(k, ..)| k);
                if reply.add(place.inode(), next, kind, name) {
                    break;
                }
            }
            reply.ok();
        });
    }

    fn poll(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        ph: PollNotifier,
        _events: PollEvents,
        flags: PollFlags,
        reply: ReplyPoll,
    ) {
        self.answer(move |files| {
            let mut ready = READY;
            if let Some(Place::Clients(_, ClientPlace::Interrupt(..))) = Place::of(ino) {
                let notifier = flags.contains(PollFlags::FUSE_POLL_SCHEDULE_NOTIFY).then_some(ph);
                if files.server().interrupts.poll(fh.0, notifier) {
                    ready |= PollEvents::POLLPRI | PollEvents::POLLERR;
                }
            }
            reply.poll(ready);
        });
    }
}

/// The poll events of files that never block.
const READY: PollEvents = PollEvents::POLLIN
    .union(PollEvents::POLLOUT)
    .union(PollEvents::POLLRDNORM)
    .union(PollEvents::POLLWRNORM);

impl Files {
    fn command(
        &self,
        caller: Caller,
        fh: FileHandle,
        command: Vec<u8>,
    ) -> Option<Result<usize, cxi_ioctl::Errno>> {
        let file = self.server().file(fh.0)?;
        Some(Call { file, caller, command }.execute(self.server(), None))
    }
}

fn answer(result: Result<usize, cxi_ioctl::Errno>, reply: ReplyWrite) {
    match result {
        Ok(written) => reply.written(u32::try_from(written).unwrap_or(u32::MAX)),
        Err(errno) => reply.error(to_fuse(errno)),
    }
}
