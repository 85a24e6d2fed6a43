//! The directory `err_flgs_irqa`: which hardware errors the driver reports to the kernel's log.

use std::sync::Arc;

use cxi_ioctl::Errno;
use parking_lot::Mutex;

use super::super::tree::Tree;

/// The blocks of the chip that report errors, and which errors the driver does not print unless an
/// administrator asks for them.
const BLOCKS: [(&str, u64); 15] = [
    ("atu", 0),
    ("cq", 0),
    ("ee", 0),
    ("hni", 0),
    ("hni_pml", 0xe000_0003_0000_0000),
    ("ixe", 0),
    ("lpe", 0),
    ("mb", 0),
    ("mst", 0),
    ("oxe", 0),
    ("parbs", 0),
    ("pct", 0),
    ("pi", 0xc000_0000_0000_0000),
    ("pi_ipd", 0),
    ("rmu", 0x000c_0000_0000_0000),
];

pub(super) fn describe(tree: &mut Tree) {
    for (block, unprinted) in BLOCKS {
        let mask = Arc::new(Mutex::new(unprinted));
        let source = Arc::clone(&mask);
        tree.writable(
            &format!("err_flgs_irqa/{block}/no_print_mask"),
            move || bitmap(*source.lock()),
            move |text| {
                *mask.lock() = parse(text).ok_or(Errno::EINVAL)?;
                Ok(())
            },
        );
    }
}

/// A bitmap as the kernel prints it: words of 32 bits, the highest first.
fn bitmap(bits: u64) -> String {
    format!("{:08x},{:08x}", bits >> 32, bits & u64::from(u32::MAX))
}

/// A bitmap as the kernel takes it: up to two words, each of up to eight digits.
fn parse(text: &str) -> Option<u64> {
    let words = text.trim().split(',');
    let mut bits = 0_u64;
    for (count, word) in words.enumerate() {
        let is_number =
            (1..=8).contains(&word.len()) && word.bytes().all(|it| it.is_ascii_hexdigit());
        if count > 1 || !is_number {
            return None;
        }
        bits = bits << 32 | u64::from(u32::from_str_radix(word, 16).ok()?);
    }
    Some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitmaps_are_the_kernels() {
        assert_eq!(bitmap(0xe001_0003_0000_0000), "e0010003,00000000");
        assert_eq!(parse("e0010003,00000000\n"), Some(0xe001_0003_0000_0000));
        assert_eq!(parse("1"), Some(1));
        for bad in ["", "x", "1,", "123456789", "1,2,3", "-1"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
