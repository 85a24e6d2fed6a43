//! PCI addresses.

use std::fmt;
use std::str::FromStr;

/// The address of a device on the PCI bus, written as `0000:41:00.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "String", try_from = "String")
)]
#[allow(clippy::exhaustive_structs, reason = "PCI addresses do not grow")]
pub struct PciAddress {
    /// Domain.
    pub domain: u32,
    /// Bus.
    pub bus: u8,
    /// Device, at most 31.
    pub device: u8,
    /// Function, at most 7.
    pub function: u8,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        f.pad(&format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}"))
    }
}

/// A text that is not a PCI address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid PCI address '{0}': expected the form 0000:41:00.0")]
pub struct InvalidPciAddress(String);

impl FromStr for PciAddress {
    type Err = InvalidPciAddress;

    fn from_str(text: &str) -> Result<Self, InvalidPciAddress> {
        let parse = || {
            let (domain, rest) = text.split_once(':')?;
            let (bus, rest) = rest.split_once(':')?;
            let (device, function) = rest.split_once('.')?;
            let hex = |part: &str| {
                let digits = part.bytes().all(|byte| byte.is_ascii_hexdigit());
                digits.then(|| u32::from_str_radix(part, 16).ok()).flatten()
            };
            let small = |part, below| hex(part).filter(|value| *value < below);
            Some(Self {
                domain: hex(domain)?,
                bus: small(bus, 256)?.try_into().ok()?,
                device: small(device, 32)?.try_into().ok()?,
                function: small(function, 8)?.try_into().ok()?,
            })
        };
        parse().ok_or_else(|| InvalidPciAddress(text.to_owned()))
    }
}

impl TryFrom<String> for PciAddress {
    type Error = InvalidPciAddress;

    fn try_from(text: String) -> Result<Self, InvalidPciAddress> {
        text.parse()
    }
}

impl From<PciAddress> for String {
    fn from(address: PciAddress) -> Self {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for text in ["0000:41:00.0", "10000:c1:1f.7"] {
            assert_eq!(text.parse::<PciAddress>().unwrap().to_string(), text);
        }
        for bad in ["", "41:00.0", "0000:41:20.0", "0000:41:00.8", "0:+1:0.0", "x:0:0.0"] {
            assert_eq!(
                bad.parse::<PciAddress>().unwrap_err().to_string(),
                format!("invalid PCI address '{bad}': expected the form 0000:41:00.0")
            );
        }
    }
}
