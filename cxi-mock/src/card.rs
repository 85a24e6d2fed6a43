//! The NICs that people have.

use std::str::FromStr;

use cxi_ioctl::abi::device::{
    CASSINI_1_1, CASSINI_2_0, SYSTEM_ONLY_CASSINI_1, SYSTEM_ONLY_CASSINI_2,
};

use crate::Identity;

/// A card with a NIC, by the generation of its chip.
///
/// ```
/// use cxi_mock::{Card, Nic, NicConfig};
///
/// let nic = Nic::new(NicConfig::new().card(Card::Cassini1))?;
/// assert_eq!(nic.device_info().link_speed, 200_000);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Card {
    /// Cassini 1: 200 Gbit/s, PCI Express 4.
    Cassini1,
    /// Cassini 2: 400 Gbit/s, PCI Express 5.
    #[default]
    Cassini2,
}

/// Text that is not the name of a card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown card '{0}': expected cassini-1 or cassini-2")]
pub struct UnknownCard(String);

impl Card {
    /// All cards.
    pub const ALL: [Self; 2] = [Self::Cassini1, Self::Cassini2];

    /// Its name: `cassini-1` or `cassini-2`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cassini1 => "cassini-1",
            Self::Cassini2 => "cassini-2",
        }
    }

    /// The card with these PCI IDs of vendor and device, which are Cray's for Cassini 1 and HPE's for
    /// Cassini 2.
    #[must_use]
    pub const fn with_ids(vendor: u32, device: u32) -> Option<Self> {
        match (vendor, device) {
            (0x17db, 0x0501) => Some(Self::Cassini1),
            (0x1590, 0x0371) => Some(Self::Cassini2),
            _ => None,
        }
    }

    /// The card whose chip has this version, see the `CASSINI_*` of [`cxi_ioctl::abi::device`].
    #[must_use]
    pub const fn with_version(cassini_version: u32) -> Self {
        // The generation is in the upper digit.
        if cassini_version >> 4 == 1 { Self::Cassini1 } else { Self::Cassini2 }
    }

    /// The part number.
    #[must_use]
    pub const fn part_number(self) -> &'static str {
        match self {
            Self::Cassini1 => "P43012-001",
            Self::Cassini2 => "P68492-001",
        }
    }
}

impl FromStr for Card {
    type Err = UnknownCard;

    fn from_str(name: &str) -> Result<Self, UnknownCard> {
        let card = Self::ALL.into_iter().find(|card| card.name() == name);
        card.ok_or_else(|| UnknownCard(name.to_owned()))
    }
}

impl Identity {
    /// The card whose chip this is.
    #[must_use]
    pub const fn card(&self) -> Card {
        Card::with_version(self.cassini_version)
    }

    /// Makes it that of a card. Its addresses and the state of its link stay.
    pub(crate) fn become_card(&mut self, card: Card) {
        (self.vendor_id, self.device_id) = match card {
            Card::Cassini1 => (0x17db, 0x0501),
            Card::Cassini2 => (0x1590, 0x0371),
        };
        (self.cassini_version, self.system_type_identifier, self.link_speed) = match card {
            Card::Cassini1 => (CASSINI_1_1, SYSTEM_ONLY_CASSINI_1, 200_000),
            Card::Cassini2 => (CASSINI_2_0, SYSTEM_ONLY_CASSINI_2, 400_000),
        };
        let description = match card {
            Card::Cassini1 => "Mock Cassini 1",
            Card::Cassini2 => "Mock Cassini 2",
        };
        description.clone_into(&mut self.fru_description);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_a_cassini_2() {
        let mut identity = Identity::default();
        assert_eq!(identity.card(), Card::default());
        for card in [Card::Cassini1, Card::Cassini2] {
            identity.become_card(card);
            assert_eq!(identity.card(), card);
            assert_eq!(Card::with_ids(identity.vendor_id, identity.device_id), Some(card));
            assert_eq!(card.name().parse(), Ok(card));
        }
        assert_eq!(identity, Identity::default());
        let error = "cassini".parse::<Card>().unwrap_err();
        assert_eq!(error.to_string(), "unknown card 'cassini': expected cassini-1 or cassini-2");
    }
}
