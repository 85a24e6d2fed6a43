//! The size of the pages behind an address.

use std::fs::File;
use std::io::{BufRead, BufReader};

use crate::scan;

/// Size of the pages that back an address, according to `/proc/self/smaps`; the system's page size if
/// the file does not show it.
pub(crate) fn page_size(address: usize) -> usize {
    File::open("/proc/self/smaps")
        .ok()
        .and_then(|file| find(BufReader::new(file), address))
        .unwrap_or_else(rustix::param::page_size)
}

fn find(smaps: impl BufRead, address: usize) -> Option<usize> {
    let address = address as u64;
    let mut inside = false;
    for line in smaps.split(b'\n') {
        let line = line.ok()?;
        if let Some((start, end)) = bounds(&line) {
            inside = (start..end).contains(&address);
        } else if inside && let Some(size) = line.strip_prefix(b"KernelPageSize:") {
            let (kilobytes, _) = scan::number(size, 10)?;
            return usize::try_from(kilobytes).ok()?.checked_mul(1024);
        }
    }
    None
}

/// The range that a line of the form `start-end ...` begins with.
fn bounds(line: &[u8]) -> Option<(u64, u64)> {
    let (start, rest) = scan::number(line, 16)?;
    let (end, _) = scan::number(scan::after(rest, b'-')?, 16)?;
    Some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_range_that_holds_the_address() {
        let smaps = b"1000-3000 rw-p 0 0 0\nSize: 8 kB\nKernelPageSize:        4 kB\n\
            200000-600000 rw-p 0 0 0 /anon_hugepage\nKernelPageSize:     2048 kB\nMMUPageSize: 4 kB\n";
        let find = |address| find(&smaps[..], address);
        assert_eq!(find(0x1000), Some(4096));
        assert_eq!(find(0x2FFF), Some(4096));
        assert_eq!(find(0x3000), None);
        assert_eq!(find(0x40_0000), Some(2 << 20));
    }
}
