//! Prints once what is the same on several NICs.

use cxi::DeviceId;

/// Groups equal values, with the NICs that have them, in order of first appearance.
pub(crate) fn merge<T: PartialEq>(
    values: impl IntoIterator<Item = (DeviceId, T)>,
) -> Vec<(Vec<DeviceId>, T)> {
    let mut groups: Vec<(Vec<DeviceId>, T)> = Vec::new();
    for (device, value) in values {
        match groups.iter_mut().find(|(_, other)| *other == value) {
            Some((devices, _)) => devices.push(device),
            None => groups.push((vec![device], value)),
        }
    }
    groups
}

/// NICs as `cxi0-3,cxi5`; `--device` reads it.
pub(crate) fn name(devices: &[DeviceId]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in devices.iter().map(|device| device.number()) {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let names: Vec<_> = runs
        .into_iter()
        .map(|(first, last)| {
            if first == last {
                format!("cxi{first}")
            } else {
                format!("cxi{first}-{last}")
            }
        })
        .collect();
    names.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_become_ranges() {
        let devices =
            |numbers: &[u32]| -> Vec<_> { numbers.iter().copied().map(DeviceId::new).collect() };
        assert_eq!(name(&devices(&[0])), "cxi0");
        assert_eq!(name(&devices(&[0, 1, 2, 3, 5])), "cxi0-3,cxi5");
        assert_eq!(name(&devices(&[u32::MAX])), "cxi4294967295");
    }

    #[test]
    fn equal_values_are_merged_in_order() {
        let nic = DeviceId::new;
        assert_eq!(
            merge([(nic(0), 'a'), (nic(0), 'b'), (nic(1), 'b'), (nic(1), 'a')]),
            [(vec![nic(0), nic(1)], 'a'), (vec![nic(0), nic(1)], 'b'),]
        );
    }
}
