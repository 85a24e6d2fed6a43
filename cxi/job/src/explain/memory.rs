//! Contiguous memory of the node, which the kernel needs for an address context of a NIC.

use std::fmt;

use cxi::kernel_file;
use nix::unistd::{SysconfVar, sysconf};
use serde::Serialize;

use cxi_site::proc::ProcFs;

/// Contiguous memory that an address context takes, in bytes.
const OF_ADDRESS_CONTEXT: u64 = 512 << 10;

/// The free blocks of memory that are long enough for an address context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContiguousMemory {
    /// Number of address contexts that would find room at once.
    pub address_contexts: u64,
}

impl ContiguousMemory {
    /// Reads `/proc/buddyinfo`; `None` if it cannot be read.
    #[must_use]
    pub fn read(proc: &ProcFs) -> Option<Self> {
        let page = sysconf(SysconfVar::PAGE_SIZE).ok()??;
        Self::parse(&kernel_file::read(&proc.file("buddyinfo")).ok()?, page.try_into().ok()?)
    }

    /// Takes the number of free blocks of each order, from one page on, of each zone. A longer block
    /// has room for several.
    fn parse(buddyinfo: &str, page: u64) -> Option<Self> {
        let mut address_contexts = 0_u64;
        let mut zones = 0;
        for line in buddyinfo.lines() {
            // Node 0, zone   Normal   4381   1093 ...
            let Some((_, zone)) = line.split_once("zone") else { continue };
            zones += 1;
            for (order, blocks) in zone.split_whitespace().skip(1).enumerate() {
                let blocks: u64 = blocks.parse().ok()?;
                let bytes = page.checked_shl(u32::try_from(order).ok()?)?;
                address_contexts = address_contexts
                    .saturating_add(blocks.saturating_mul(bytes / OF_ADDRESS_CONTEXT));
            }
        }
        (zones > 0).then_some(Self { address_contexts })
    }
}

impl fmt::Display for ContiguousMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address_contexts {
            0 => f.write_str(
                "this node has no 512 KiB of contiguous memory free (/proc/buddyinfo): a new \
                 address context cannot be made",
            ),
            count => write!(
                f,
                "this node has contiguous memory for {count} more address contexts of 512 KiB \
                 (/proc/buddyinfo): it is not what is missing now"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "\
Node 0, zone      DMA      0      0      0      0      0      0      0      0      0      0      0
Node 0, zone   Normal   4381   1093    200     50     20     11      9      0      0      0      0
";
    const FREE: &str = "\
Node 0, zone   Normal   4381   1093    200     50     20     11      9      3      1      0      2
Node 1, zone   Normal      0      0      0      0      0      0      0      1      0      0      0
";

    #[test]
    fn only_blocks_of_512_kib_or_more_count() {
        let count = |text, page| ContiguousMemory::parse(text, page).map(|c| c.address_contexts);
        assert_eq!(count(FULL, 4096), Some(0));
        assert_eq!(count(FREE, 4096), Some(3 + 2 + 2 * 8 + 1));
        // With pages of 64 KiB, order 3.
        assert_eq!(count(FULL, 65536), Some(50 + 2 * 20 + 4 * 11 + 8 * 9));
        for broken in ["", "nonsense", "Node 0, zone Normal many"] {
            assert_eq!(count(broken, 4096), None, "{broken}");
        }
    }

    #[test]
    fn a_node_without_room_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let proc = ProcFs::with_root(directory.path());
        assert_eq!(ContiguousMemory::read(&proc), None);
        std::fs::write(directory.path().join("buddyinfo"), "Node 0, zone Normal 9 0 0\n").unwrap();
        let text = ContiguousMemory::read(&proc).unwrap().to_string();
        assert!(text.starts_with("this node has no 512 KiB of contiguous memory free"), "{text}");
    }
}
