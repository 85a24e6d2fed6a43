//! A FUSE file: its server writes into the memory of the caller whose `write(2)` it handles.

use std::ffi::OsStr;
use std::io::IoSlice;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyEntry, ReplyOpen, ReplyWrite, Request,
    WriteFlags,
};
use nix::sys::uio::{RemoteIoVec, process_vm_writev};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::driver;

const NAME: &str = "cxi0";
const FILE: INodeNo = INodeNo(2);

pub(crate) struct Mounted {
    // Unmounted before the folder is removed.
    _session: BackgroundSession,
    folder: TempDir,
}

impl Mounted {
    pub(crate) fn device(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }
}

/// Serves the device; an error says why that is not possible here.
pub(crate) fn mount() -> Result<Mounted, String> {
    let folder = TempDir::new().map_err(|error| format!("no folder to mount on: {error}"))?;
    let session = fuser::spawn_mount(Device, folder.path(), &Config::default())
        .map_err(|error| format!("mounting needs /dev/fuse and the right to mount: {error}"))?;
    Ok(Mounted {
        _session: session,
        folder,
    })
}

struct Device;

fn attributes(ino: INodeNo) -> FileAttr {
    let (kind, perm) = if ino == FILE {
        (FileType::RegularFile, 0o666)
    } else {
        (FileType::Directory, 0o755)
    };
    FileAttr {
        ino,
        size: 0,
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

impl Filesystem for Device {
    fn lookup(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == NAME {
            reply.entry(&Duration::ZERO, &attributes(FILE), Generation(0));
        } else {
            reply.error(fuser::Errno::ENOENT);
        }
    }

    fn getattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        reply.attr(&Duration::ZERO, &attributes(ino));
    }

    fn open(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn write(
        &self,
        request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _offset: u64,
        command: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let caller = Pid::from_raw(request.pid().cast_signed());
        let (stores, answer) = driver::answer(command);
        for (address, bytes) in stores {
            let there = RemoteIoVec {
                base: usize::try_from(address).unwrap_or(0),
                len: bytes.len(),
            };
            if process_vm_writev(caller, &[IoSlice::new(&bytes)], &[there]) != Ok(bytes.len()) {
                return reply.error(fuser::Errno::EFAULT);
            }
        }
        match answer {
            Ok(taken) => reply.written(taken),
            Err(errno) => reply.error(fuser::Errno::from_i32(errno.raw())),
        }
    }
}
