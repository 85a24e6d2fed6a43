//! A FUSE file that takes every write and does nothing with it: the round trip alone.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyEntry, ReplyOpen, ReplyWrite, Request,
    WriteFlags,
};

/// The file's name.
pub const NAME: &str = "bare";

const FILE: INodeNo = INodeNo(2);

/// Serves the file in a folder as long as the session exists.
///
/// # Errors
///
/// Why that is not possible here.
pub fn mount(folder: &Path) -> Result<BackgroundSession, String> {
    fuser::spawn_mount(Bare, folder, &Config::default()).map_err(|error| error.to_string())
}

struct Bare;

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

impl Filesystem for Bare {
    fn lookup(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == NAME {
            reply.entry(&Duration::MAX, &attributes(FILE), Generation(0));
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
        reply.attr(&Duration::MAX, &attributes(ino));
    }

    fn open(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn write(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX));
    }
}
