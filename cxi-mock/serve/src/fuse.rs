//! The file system: what the kernel asks.
//!
//! One thread answers in the order in which the kernel asks. That order is what makes closing a
//! file synchronous, as it is with the driver: the kernel does not wait for the answer to a
//! release, but whatever the program does next is asked behind it. Commands are executed by other
//! threads: nothing that a caller does to its memory keeps the file system from answering.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileHandle, FileType, Filesystem, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, PollEvents, PollFlags, PollNotifier, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyPoll, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};

use super::device::{self, Call, Caller, to_fuse};
use super::files::Files;
use super::place::{ClientPlace, Place};
use super::tree::Item;

/// The kernel caches nothing: everything may change.
const NOW: Duration = Duration::ZERO;

/// The part of a text that a read asks for.
fn part(text: &[u8], offset: u64, size: u32) -> &[u8] {
    let start = usize::try_from(offset).map_or(text.len(), |offset| offset.min(text.len()));
    let rest = text.get(start..).unwrap_or_default();
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    rest.get(..size).unwrap_or(rest)
}

impl Filesystem for Files {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Where the kernel has no passthrough, windows cannot be mapped and all else works.
        if config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok() {
            let _ = config.set_max_stack_depth(1);
        }
        // Releases wait behind this limit, and must not.
        let _ = config.set_max_background(u16::MAX);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let attributes = Place::of(parent)
            .zip(name.to_str())
            .and_then(|(place, name)| self.child(place, name))
            .and_then(|place| self.attributes(place));
        match attributes {
            Some(attributes) => reply.entry(&NOW, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match Place::of(ino).and_then(|place| self.attributes(place.lasting())) {
            Some(attributes) => reply.attr(&NOW, &attributes),
            None => reply.error(Errno::ENOENT),
        }
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

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        match Place::of(ino).and_then(|place| self.item(place)) {
            Some(Item::Link(target)) => reply.data(target.as_bytes()),
            Some(_) => reply.error(Errno::EINVAL),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match Place::of(ino) {
            Some(Place::Device(number, _)) => match self.server().function(number) {
                Some(function) => device::open(self.server(), function, ino, reply),
                None => reply.error(Errno::ENXIO),
            },
            Some(Place::Clients(number, ClientPlace::Interrupt(client, wait))) => {
                let handle = self.server().interrupts.open((number, client, wait));
                reply.opened(FileHandle(handle), fuser::FopenFlags::FOPEN_DIRECT_IO);
            }
            Some(place) if self.kind(place).is_some() => {
                reply.opened(FileHandle(0), fuser::FopenFlags::FOPEN_DIRECT_IO);
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(place) = Place::of(ino) else {
            return reply.error(Errno::ENOENT);
        };
        if matches!(place, Place::Device(..)) {
            return reply.error(Errno::EINVAL);
        }
        if let Place::Clients(_, ClientPlace::Interrupt(..)) = place {
            if offset == 0 {
                self.server().interrupts.see(fh.0);
            }
            return reply.data(part(b"\n", offset, size));
        }
        match self.item(place) {
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
        match Place::of(ino) {
            Some(Place::Device(..)) => self.command(req, fh, data, reply),
            Some(place) => match self.item(place) {
                Some(Item::Attribute(attribute)) => {
                    answer(attribute.write(data).map(|()| data.len()), reply);
                }
                Some(_) => reply.error(Errno::EINVAL),
                None => reply.error(Errno::ENODEV),
            },
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Comes on every close of every copy of a descriptor: nothing to do.
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
        match Place::of(ino) {
            Some(Place::Device(..)) => self.server().close(fh.0),
            Some(Place::Clients(..)) => self.server().interrupts.close(fh.0),
            _ => {}
        }
        reply.ok();
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let Some(place) = Place::of(ino).filter(|place| self.kind(*place).is_some()) else {
            return reply.error(Errno::ENOENT);
        };
        let dots = [(".".to_owned(), place), ("..".to_owned(), place)];
        let entries = dots.into_iter().chain(self.children(place));
        for (next, (name, place)) in (1..).zip(entries) {
            if next <= offset {
                continue;
            }
            let kind = self.kind(place).map_or(FileType::RegularFile, |(k, ..)| k);
            if reply.add(place.inode(), next, kind, name) {
                break;
            }
        }
        reply.ok();
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
        let mut ready = READY;
        if let Some(Place::Clients(_, ClientPlace::Interrupt(..))) = Place::of(ino) {
            let notifier = flags
                .contains(PollFlags::FUSE_POLL_SCHEDULE_NOTIFY)
                .then_some(ph);
            if self.server().interrupts.poll(fh.0, notifier) {
                ready |= PollEvents::POLLPRI | PollEvents::POLLERR;
            }
        }
        reply.poll(ready);
    }
}

/// The poll events of files that never block.
const READY: PollEvents = PollEvents::POLLIN
    .union(PollEvents::POLLOUT)
    .union(PollEvents::POLLRDNORM)
    .union(PollEvents::POLLWRNORM);

impl Files {
    fn command(&self, req: &Request, fh: FileHandle, data: &[u8], reply: ReplyWrite) {
        let Some(file) = self.server().file(fh.0) else {
            return reply.error(Errno::EBADF);
        };
        let call = Call {
            file,
            caller: Caller::from(req),
            command: data.to_vec(),
        };
        let server = Arc::clone(self.server());
        // A reply that is dropped answers EIO.
        self.workers
            .run(Box::new(move || answer(call.execute(&server), reply)));
    }
}

fn answer(result: Result<usize, cxi_ioctl::Errno>, reply: ReplyWrite) {
    match result {
        Ok(written) => reply.written(u32::try_from(written).unwrap_or(u32::MAX)),
        Err(errno) => reply.error(to_fuse(errno)),
    }
}
