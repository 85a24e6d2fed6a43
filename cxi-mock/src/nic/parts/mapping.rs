//! Memory descriptors, and what a mapping requests of an address context: flags, page sizes, hints.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::memory::{AtuMapCmd, MapFlags, Md, MdHints};

use crate::Credentials;
use crate::data_path::page_bytes;
use crate::rules::Rules;

/// Addresses whose memory counts as huge pages, because the mock cannot see how a caller's memory
/// is backed.
const HUGE_PAGES: std::ops::Range<u64> = 1 << 40..2 << 40;
/// Flags that may differ between mappings of the same kind. All others count, including those that
/// the header does not define.
const NOT_OF_THE_KIND: MapFlags = MapFlags::WRITE
    .union(MapFlags::READ)
    .union(MapFlags::FAULT)
    .union(MapFlags::USER_ADDR)
    .union(MapFlags::ALLOC_MD)
    .union(MapFlags::PREFETCH);

const PAGE_SHIFT: u8 = 12;
const HUGE_SHIFT: u8 = 21;
/// The sizes of memory in pages of 1 GiB.
const LARGE_PAGE_SHIFT: u8 = 16;
const GIB_SHIFT: u8 = 30;
/// Sizes that an administrator can request. The driver accepts even pages of half the smallest
/// size.
const PAGE_SHIFTS: std::ops::RangeInclusive<u8> = PAGE_SHIFT - 1..=PAGE_SHIFT + 15;
/// Bits of an address that one level of a page table translates.
const LEVEL_BITS: std::ops::RangeInclusive<u8> = 3..=15;
/// The number of bits if only the size of huge pages is hinted.
const HINTED_BITS: u8 = 14;
/// The ways of grouping page table entries, and the default one.
const PTG_MODE_SINGLE: u8 = 0;
const PTG_MODE_DEFAULT: u8 = 3;
const PTG_MODES: std::ops::RangeInclusive<i32> = 0..=3;

/// Properties that mappings sharing an address context have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    flags: u32,
    pub(crate) page_shift: u8,
    pub(crate) huge_shift: u8,
    ptg_mode: u8,
}

/// A memory descriptor; event queues in it are its users.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    pub(crate) md: Md,
    pub(crate) pinned: bool,
    /// `true` if its page sizes are those of 1 GiB pages.
    pub(crate) huge: bool,
}

/// Request of ATU_MAP, once it is known to make sense.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping {
    pub(crate) flags: MapFlags,
    pub(crate) kind: Kind,
    /// Start and end of the mapping are multiples of this many bytes.
    pub(crate) page: u64,
    /// `true` if it gets its own address context, which others may share.
    pub(crate) alone: bool,
    /// `true` if its sizes are those of pages of 1 GiB, or hints for them.
    pub(crate) huge: bool,
}

impl Mapping {
    /// EINVAL for flags or hints that contradict each other; EOPNOTSUPP for memory of another
    /// device, which would need that device's driver.
    pub(crate) fn of(new: &AtuMapCmd, caller: &Credentials, rules: &Rules) -> Result<Self, Errno> {
        let flags = MapFlags::from_bits_retain(new.flags);
        let paging = flags.intersects(MapFlags::FAULT | MapFlags::PREFETCH);
        if flags.contains(MapFlags::PIN) && paging {
            return Err(Errno::EINVAL);
        }
        let ptg_mode = ptg_mode(&new.hints, caller);
        if rules.table_mode_first {
            ptg_mode?;
        }
        let ats = flags.contains(MapFlags::ATS) && !rules.ats_after_charge;
        if flags.contains(MapFlags::DEVICE) || ats {
            return Err(Errno::EOPNOTSUPP);
        }
        // If a range extends beyond an area of huge pages, the driver maps small pages. It
        // nevertheless rounds the range to the size that goes with them as huge pages.
        let starts_huge = is_huge(new.va);
        let last = new.va.saturating_add(new.len.saturating_sub(1));
        let huge = starts_huge && is_huge(last);
        let sizes = if huge { (LARGE_PAGE_SHIFT, GIB_SHIFT) } else { (PAGE_SHIFT, HUGE_SHIFT) };
        let hints = &new.hints;
        let both = caller.sys_admin && hints.page_shift != 0;
        // Hints apply as they are, even if the range leaves the huge pages that it starts in.
        let alone = both && starts_huge;
        let any_memory = rules.huge_shift_for_all && !both && hints.huge_shift != 0;
        let (page_shift, mut huge_shift) = match (alone, any_memory) {
            (true, _) if ptg_mode == Ok(PTG_MODE_SINGLE) => single(hints.page_shift)?,
            (true, _) => hinted(hints.page_shift, hints.huge_shift)?,
            (false, true) => for_huge_shift(hints.huge_shift)?,
            (false, false) => sizes,
        };
        let ptg_mode = ptg_mode?;
        // The alignment stays that of huge pages even if one level of tables has none.
        let page = if starts_huge || any_memory { 1 << huge_shift } else { page_bytes() };
        if ptg_mode == PTG_MODE_SINGLE {
            huge_shift = page_shift;
        }
        Ok(Self {
            flags,
            kind: Kind {
                flags: flags.difference(NOT_OF_THE_KIND).bits(),
                page_shift,
                huge_shift,
                ptg_mode,
            },
            page,
            alone,
            huge: huge || alone,
        })
    }
}

/// Returns whether the memory at an address counts as huge pages.
pub(crate) fn is_huge(va: u64) -> bool {
    HUGE_PAGES.contains(&va)
}

/// The sizes if there is one level of tables, whatever the hint of a huge page size.
fn single(page_shift: i32) -> Result<(u8, u8), Errno> {
    let page = u8::try_from(page_shift).map_err(|_| Errno::EINVAL)?;
    PAGE_SHIFTS.contains(&page).then_some((page, page)).ok_or(Errno::EINVAL)
}

/// Both sizes, if one level of a page table spans the difference.
fn hinted(page_shift: i32, huge_shift: i32) -> Result<(u8, u8), Errno> {
    let shift = |shift| u8::try_from(shift).map_err(|_| Errno::EINVAL);
    let (page, huge) = (shift(page_shift)?, shift(huge_shift)?);
    let bits = huge.checked_sub(page).ok_or(Errno::EINVAL)?;
    if !PAGE_SHIFTS.contains(&page) || huge > GIB_SHIFT || !LEVEL_BITS.contains(&bits) {
        return Err(Errno::EINVAL);
    }
    Ok((page, huge))
}

/// The page size that goes with a size of huge pages: 14 bits below it, but no less than the
/// smallest one.
fn for_huge_shift(huge_shift: i32) -> Result<(u8, u8), Errno> {
    let huge = u8::try_from(huge_shift).map_err(|_| Errno::EINVAL)?;
    let page = huge.saturating_sub(HINTED_BITS).max(PAGE_SHIFT);
    let bits = huge.checked_sub(page).ok_or(Errno::EINVAL)?;
    if !PAGE_SHIFTS.contains(&page) || !LEVEL_BITS.contains(&bits) {
        return Err(Errno::EINVAL);
    }
    Ok((page, huge))
}

fn ptg_mode(hints: &MdHints, caller: &Credentials) -> Result<u8, Errno> {
    if !caller.sys_admin || hints.ptg_mode_valid == 0 {
        return Ok(PTG_MODE_DEFAULT);
    }
    let known = PTG_MODES.contains(&hints.ptg_mode);
    u8::try_from(hints.ptg_mode).ok().filter(|_| known).ok_or(Errno::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_page_size_alone_ends_where_page_sizes_do() {
        assert_eq!(for_huge_shift(31), Ok((17, 31)));
        assert_eq!(for_huge_shift(33), Ok((19, 33)));
        assert_eq!(for_huge_shift(41), Ok((27, 41)));
        for wrong in [-1, 14, 42, 256] {
            assert_eq!(for_huge_shift(wrong), Err(Errno::EINVAL), "{wrong}");
        }
    }

    #[test]
    fn one_level_of_tables_needs_no_huge_page_size() {
        assert_eq!(single(11), Ok((11, 11)));
        assert_eq!(single(27), Ok((27, 27)));
        for wrong in [-1, 0, 10, 28] {
            assert_eq!(single(wrong), Err(Errno::EINVAL), "{wrong}");
        }
    }
}
