//! FUSE files: writes to one go to a function; reads of the other are never answered.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, WriteFlags,
};
use nix::unistd::Pid;

const FILE: INodeNo = INodeNo(2);

/// Serves a file of that name in a directory as long as the session exists. The function gets the
/// writing thread and the bytes, and returns how many were taken, or the errno.
///
/// # Errors
///
/// It cannot be mounted on this machine.
pub fn mount<F>(directory: &Path, name: &'static str, write: F) -> Result<BackgroundSession, String>
where
    F: Fn(Pid, &[u8]) -> Result<u32, i32> + Send + Sync + 'static,
{
    let unanswered = Unanswered::default();
    let file = OneFile { name, size: 0, write, unanswered };
    spawn(file, directory)
}

/// Reads that wait for an answer. When dropped, they fail.
pub type Unanswered = Arc<Mutex<Vec<ReplyData>>>;

/// Serves a file of that name in a directory that can be mapped, and whose reads wait.
///
/// # Errors
///
/// It cannot be mounted on this machine.
pub fn mount_unanswered(
    directory: &Path,
    name: &'static str,
    size: u64,
) -> Result<(BackgroundSession, Unanswered), String> {
    let unanswered = Unanswered::default();
    let file = OneFile {
        name,
        size,
        write: |_, _: &[u8]| Err(nix::libc::EIO),
        unanswered: Arc::clone(&unanswered),
    };
    Ok((spawn(file, directory)?, unanswered))
}

fn spawn<F>(file: OneFile<F>, directory: &Path) -> Result<BackgroundSession, String>
where
    OneFile<F>: Filesystem + Send + Sync + 'static,
{
    fuser::spawn_mount(file, directory, &Config::default())
        .map_err(|error| format!("mounting needs /dev/fuse and the right to mount: {error}"))
}

struct OneFile<F> {
    name: &'static str,
    size: u64,
    write: F,
    unanswered: Unanswered,
}

fn attributes(ino: INodeNo, size: u64) -> FileAttr {
    let (kind, perm) =
        if ino == FILE { (FileType::RegularFile, 0o666) } else { (FileType::Directory, 0o755) };
    FileAttr {
        ino,
        size,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 512,
        flags: 0,
    }
}

impl<F: Fn(Pid, &[u8]) -> Result<u32, i32> + Send + Sync + 'static> Filesystem for OneFile<F> {
    fn lookup(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == self.name {
            reply.entry(&Duration::MAX, &attributes(FILE, self.size), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        reply.attr(&Duration::MAX, &attributes(ino, self.size));
    }

    fn open(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let flags = match self.size {
            0 => FopenFlags::FOPEN_DIRECT_IO,
            _ => FopenFlags::empty(),
        };
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _offset: u64,
        _size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if let Ok(mut unanswered) = self.unanswered.lock() {
            unanswered.push(reply);
        }
    }

    fn write(
        &self,
        request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match (self.write)(Pid::from_raw(request.pid().cast_signed()), data) {
            Ok(taken) => reply.written(taken),
            Err(errno) => reply.error(Errno::from_i32(errno)),
        }
    }
}
