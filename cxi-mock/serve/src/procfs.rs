//! Entries of `/proc` for a thread and its memory. Names in it may be any bytes.

use std::fs::File;
use std::io::Read;
use std::ops::Range;

use cxi_mock::Backing;
use cxi_site::proc::{Status, mapping};
use nix::unistd::Pid;

/// Number of bytes that are read at a time, because each read is a system call.
const PAGE: usize = 4096;
/// More than the lines up to `Gid`: a name of at most 64 bytes, and numbers.
const HEAD: usize = 1024;

/// The number of a process or thread.
pub(crate) fn pid(number: u32) -> Pid {
    Pid::from_raw(i32::try_from(number).unwrap_or_default())
}

/// The text of a file of a thread; `None` if the thread has ended.
pub(crate) fn text(thread: Pid, file: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(PAGE);
    open(thread, file)?.read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn open(thread: Pid, file: &str) -> Option<File> {
    File::open(format!("/proc/{thread}/{file}")).ok()
}

/// The first lines of a thread's status, name, process and users among them: three system calls.
pub(crate) fn head(thread: Pid) -> Option<Status> {
    let mut bytes = [0; HEAD];
    let length = open(thread, "status")?.read(&mut bytes).ok()?;
    let head = String::from_utf8_lossy(bytes.get(..length)?);
    Some(Status(head.into_owned()))
}

/// A thread's whole status.
pub(crate) fn status(thread: Pid) -> Option<Status> {
    text(thread, "status").map(Status)
}

/// The process of a thread, unless it has ended.
pub(crate) fn process_of(thread: Pid) -> Option<Pid> {
    process(&head(thread)?)
}

/// The user who has started the process of a thread, and may stop it.
pub(crate) fn user_of(thread: Pid) -> Option<u32> {
    head(thread)?.value("Uid")?.split_whitespace().next()?.parse().ok()
}

/// The process of the thread with that status.
pub(crate) fn process(status: &Status) -> Option<Pid> {
    status.value("Tgid")?.parse().ok().map(Pid::from_raw)
}

/// The mappings of a thread's process.
pub(crate) fn maps(pid: Pid) -> Option<String> {
    text(pid, "maps")
}

/// The parts of a range of addresses that are private memory without a file, by the text of `maps`.
pub(crate) fn anonymous(maps: &str, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let is_anonymous = |line: &&str| {
        let mut words = line.split_whitespace().skip(1);
        let (access, inode) = (words.next(), words.nth(2));
        access.is_some_and(|access| access.ends_with('p')) && inode == Some("0")
    };
    maps.lines()
        .filter(is_anonymous)
        .filter_map(mapping)
        .map(move |(there, _)| there.start.max(range.start)..there.end.min(range.end))
        .filter(|part| !part.is_empty())
}

/// Returns the memory behind a range of addresses, by the text of `maps`.
pub(crate) fn backing(maps: &str, va: u64, end: u64) -> Backing {
    let mut to = va;
    let mut backing = Backing::Writable;
    for (there, access) in maps.lines().filter_map(mapping) {
        if to >= end {
            break;
        }
        if !there.contains(&to) || !access.starts_with(['r', 'w']) {
            continue;
        }
        if !access.contains('w') {
            backing = Backing::ReadOnly;
        }
        to = there.end;
    }
    if to >= end { backing } else { Backing::Missing }
}

/// Returns whether a range lies within one page, however large that is. True if that cannot be
/// determined.
///
/// Pages that are adjacent by chance count as scattered, because a program cannot rely on that.
pub(crate) fn are_contiguous(pid: Pid, va: u64, len: u64) -> bool {
    let Some(maps) = text(pid, "smaps") else { return true };
    let page = page_size(&maps, va).unwrap_or(1);
    va / page == va.saturating_add(len).saturating_sub(1) / page
}

/// Returns the file that a thread's process has mapped at an address: the path to it, and the
/// offset of the address in it.
pub(crate) fn mapped_at(pid: Pid, va: u64) -> Option<(String, u64)> {
    let (name, offset) = file_at(&text(pid, "maps")?, va)?;
    Some((format!("/proc/{pid}/map_files/{name}"), offset))
}

fn file_at(maps: &str, va: u64) -> Option<(String, u64)> {
    let at_va = |line: &&str| mapping(line).is_some_and(|(there, _)| there.contains(&va));
    let line = maps.lines().find(at_va)?;
    let (there, _) = mapping(line)?;
    let mut words = line.split_whitespace();
    let offset = u64::from_str_radix(words.nth(2)?, 16).ok()?;
    // Unlike in `maps`, addresses have no leading zeros in `map_files`.
    let name = format!("{:x}-{:x}", there.start, there.end);
    Some((name, offset + (va - there.start)))
}

/// The size in bytes of the pages at an address, from the text of `smaps`.
fn page_size(maps: &str, va: u64) -> Option<u64> {
    let mut lines = maps.lines();
    lines.find(|line| mapping(line).is_some_and(|(there, _)| there.contains(&va)))?;
    let size = lines.find_map(|line| line.strip_prefix("KernelPageSize:"))?;
    size.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use nix::unistd::{getgid, gettid, getuid};

    use super::*;

    #[test]
    fn a_head_reaches_up_to_the_groups() {
        let head = head(gettid()).expect("proc is mounted");
        assert_eq!(process(&head), Some(Pid::this()));
        let uid = getuid().to_string();
        assert_eq!(head.words("Uid").collect::<Vec<_>>(), [uid.as_str(); 4]);
        let gid = getgid().to_string();
        assert_eq!(head.words("Gid").next(), Some(gid.as_str()));
        let whole = status(gettid()).expect("proc is mounted");
        assert!(whole.0.len() > head.0.len() && whole.words("CapEff").next().is_some());
    }

    #[test]
    fn a_name_is_any_bytes() {
        let thread = thread::spawn(|| {
            rustix::thread::set_name(c"\xff").expect("a name");
            let status = head(gettid()).expect("a status");
            assert_eq!(process(&status), Some(Pid::this()));
            assert!(text(gettid(), "stat").is_some());
        });
        thread.join().expect("no failure");
    }

    const MAPS: &str = "1000-3000 rw-p 00000000 00:00 0 \n\
                    KernelPageSize:        4 kB\n\
                    3000-4000 r--p 00000000 00:00 0 [heap]\n\
                    KernelPageSize:        4 kB\n\
                    5000-6000 ---p 00000000 00:00 0 \n\
                    200000-400000 rw-p 00000000 00:00 0 /anon_hugepage\n\
                    Size:               2048 kB\n\
                    KernelPageSize:     2048 kB\n";

    #[test]
    fn mappings_side_by_side_are_one_and_guards_are_none() {
        for (va, end, expected) in [
            (0x1800, 0x3000, Backing::Writable),
            (0x1800, 0x4000, Backing::ReadOnly),
            (0x1800, 0x4001, Backing::Missing),
            (0x4000, 0x4001, Backing::Missing),
            (0x5000, 0x5001, Backing::Missing),
        ] {
            assert_eq!(backing(MAPS, va, end), expected, "{va:x} to {end:x}");
        }
    }

    #[test]
    fn a_mapping_says_its_file() {
        let maps = "00007f00-00009f00 rw-s 10000001000 00:2f 77 /dev/cxi0\n";
        let name = "7f00-9f00".to_owned();
        assert_eq!(file_at(maps, 0x8f00), Some((name, 0x100_0000_2000)));
        assert_eq!(file_at(maps, 0x9f00), None);
    }

    #[test]
    fn huge_pages_are_told() {
        assert_eq!(page_size(MAPS, 0x2000), Some(4096));
        assert_eq!(page_size(MAPS, 0x201_000), Some(2 << 20));
        assert_eq!(page_size(MAPS, 0x9000), None);
    }

    #[test]
    fn private_memory_without_a_file_is_told() {
        let all: Vec<_> = anonymous(MAPS, 0x1800..0x400_000).collect();
        assert_eq!(all, [0x1800..0x3000, 0x3000..0x4000, 0x5000..0x6000, 0x200_000..0x400_000]);
        let maps = "1000-3000 rw-s 00000000 00:01 7 /dev/zero\n\
                    3000-4000 rw-p 00000000 08:01 99 /usr/lib/libc.so.6\n";
        assert_eq!(anonymous(maps, 0..0x9000).count(), 0);
    }

    #[test]
    fn memory_of_this_process_is_there_and_scattered() {
        let memory = vec![1_u8; 1 << 16];
        let va = memory.as_ptr().expose_provenance() as u64;
        let maps = maps(Pid::this()).expect("proc is mounted");
        assert_eq!(backing(&maps, va, va + (1 << 16)), Backing::Writable);
        assert_eq!(backing(&maps, 0, 4096), Backing::Missing);
        assert!(are_contiguous(Pid::this(), va & !4095, 4096));
        assert!(!are_contiguous(Pid::this(), va & !4095, 8192));
    }
}
