//! Traffic between NICs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cxi_hw::ReturnCode;
use cxi_mock::serve::ObservedOperation;
use parking_lot::{Mutex, MutexGuard};

/// Messages that arrived, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Volume {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl fmt::Display for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.messages {
            0 => f.write_str("nothing"),
            1 => write!(f, "1 message, {}", bytes(self.bytes)),
            messages => write!(f, "{} messages, {}", grouped(messages), bytes(self.bytes)),
        }
    }
}

/// A number with a comma before every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn bytes(number: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")];
    match units.into_iter().find(|(unit, _)| number >= *unit) {
        Some((unit, name)) => format!("{}.{} {name}", number / unit, number % unit * 10 / unit),
        None => format!("{number} B"),
    }
}

/// Traffic by the addresses of the initiator's NIC and the target's. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic(Arc<Mutex<BTreeMap<(u32, u32), Volume>>>);

impl Traffic {
    pub(super) fn count(&self, operation: &ObservedOperation) {
        if operation.code == ReturnCode::OK {
            let mut moved = self.moved();
            let moved = moved.entry((operation.from.0, operation.to.0)).or_default();
            moved.messages += 1;
            moved.bytes += u64::from(operation.moved);
        }
    }

    pub(crate) fn moved(&self) -> MutexGuard<'_, BTreeMap<(u32, u32), Volume>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_easy_to_read() {
        let numbers = [0, 999, 1204, 3_100_000].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,204", "3,100,000"]);
        let amounts = [999, 1000, 3_160_000, 2_000_000_000].map(bytes);
        assert_eq!(amounts, ["999 B", "1.0 kB", "3.1 MB", "2.0 GB"]);
        let moved = [0, 1, 2].map(|messages| Volume { messages, bytes: 8 }.to_string());
        assert_eq!(moved, ["nothing", "1 message, 8 B", "2 messages, 8 B"]);
    }
}
