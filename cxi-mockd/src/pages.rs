//! What is behind a caller's addresses, as far as `/proc` tells.

use std::fs;
use std::ops::Range;

use nix::unistd::Pid;

/// Whether a thread's process has memory behind all of a range. Where that cannot be seen, yes.
pub(crate) fn are_there(pid: Pid, va: u64, len: u64) -> bool {
    let Ok(maps) = fs::read_to_string(format!("/proc/{pid}/maps")) else {
        return true;
    };
    let end = va.saturating_add(len);
    maps.lines().filter_map(mapping).fold(va, reach) >= end
}

/// Whether a range lies within one page, however large that is. Where that cannot be seen, yes.
///
/// Pages that follow each other by chance count as scattered: a program cannot rely on that.
pub(crate) fn are_contiguous(pid: Pid, va: u64, len: u64) -> bool {
    let Ok(maps) = fs::read_to_string(format!("/proc/{pid}/smaps")) else {
        return true;
    };
    let page = page_size(&maps, va).unwrap_or(1);
    va / page == va.saturating_add(len).saturating_sub(1) / page
}

/// How far a range that begins at its start is there, with one more mapping.
fn reach(so_far: u64, mapping: (Range<u64>, bool)) -> u64 {
    match mapping {
        (there, true) if there.contains(&so_far) => there.end,
        _ => so_far,
    }
}

/// The addresses of a line of `maps`, and whether they can be accessed at all.
fn mapping(line: &str) -> Option<(Range<u64>, bool)> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let accessible = words.next()?.starts_with(['r', 'w'].as_slice());
    Some((address(start)?..address(end)?, accessible))
}

/// The size in bytes of the pages at an address, of `smaps`.
fn page_size(maps: &str, va: u64) -> Option<u64> {
    let mut lines = maps.lines();
    lines.find(|line| mapping(line).is_some_and(|(there, _)| there.contains(&va)))?;
    let size = lines.find_map(|line| line.strip_prefix("KernelPageSize:"))?;
    size.trim()
        .strip_suffix(" kB")?
        .parse::<u64>()
        .ok()
        .map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "1000-3000 rw-p 00000000 00:00 0 \n\
                        KernelPageSize:        4 kB\n\
                        3000-4000 r--p 00000000 00:00 0 [heap]\n\
                        KernelPageSize:        4 kB\n\
                        5000-6000 ---p 00000000 00:00 0 \n\
                        200000-400000 rw-p 00000000 00:00 0 /anon_hugepage\n\
                        Size:               2048 kB\n\
                        KernelPageSize:     2048 kB\n";

    fn end(va: u64) -> u64 {
        MAPS.lines().filter_map(mapping).fold(va, reach)
    }

    #[test]
    fn mappings_side_by_side_are_one_and_guards_are_none() {
        assert_eq!(end(0x1800), 0x4000);
        assert_eq!(end(0x4000), 0x4000);
        assert_eq!(end(0x5000), 0x5000);
    }

    #[test]
    fn huge_pages_are_told() {
        assert_eq!(page_size(MAPS, 0x2000), Some(4096));
        assert_eq!(page_size(MAPS, 0x201_000), Some(2 << 20));
        assert_eq!(page_size(MAPS, 0x9000), None);
    }

    #[test]
    fn memory_of_this_process_is_there_and_scattered() {
        let memory = vec![1_u8; 1 << 16];
        let va = memory.as_ptr().expose_provenance() as u64;
        assert!(are_there(Pid::this(), va, 1 << 16));
        assert!(!are_there(Pid::this(), 0, 4096));
        assert!(are_contiguous(Pid::this(), va & !4095, 4096));
        assert!(!are_contiguous(Pid::this(), va & !4095, 8192));
    }
}
