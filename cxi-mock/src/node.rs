//! A node with several NICs.

use std::sync::Arc;

use cxi_ioctl::Errno;

use crate::{Credentials, InProcess, LoadError, Nic, NicConfig};

/// A node with NICs `cxi0`, `cxi1` and so on. They share the fabric and nothing else.
#[derive(Debug)]
pub struct MockNode {
    nics: Vec<Arc<Nic>>,
}

impl MockNode {
    /// A node with that many NICs, alike but for their addresses.
    ///
    /// NIC `n` has the fabric address of `config` plus `n` and the PCI bus plus `n`.
    ///
    /// # Errors
    ///
    /// As [`Nic::new`].
    pub fn with_nics(count: u8, config: &NicConfig) -> Result<Self, LoadError> {
        Self::new((0..count).map(|index| {
            config.clone().identity(|identity| {
                identity.nid = identity.nid.wrapping_add(u32::from(index));
                identity.uc_nic = identity.uc_nic.wrapping_add(i32::from(index));
                identity.pci_address.bus = identity.pci_address.bus.wrapping_add(index);
            })
        }))
    }

    /// A node with these NICs.
    ///
    /// # Errors
    ///
    /// As [`Nic::new`].
    pub fn new(configs: impl IntoIterator<Item = NicConfig>) -> Result<Self, LoadError> {
        let nics = configs
            .into_iter()
            .map(Nic::new)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self::from_nics(nics))
    }

    /// A node of these NICs, for instance restored ones.
    #[must_use]
    pub fn from_nics(nics: Vec<Arc<Nic>>) -> Self {
        let wire = Arc::default();
        for nic in &nics {
            nic.connect(&wire);
        }
        Self { nics }
    }

    /// The NICs in order.
    #[must_use]
    pub fn nics(&self) -> &[Arc<Nic>] {
        &self.nics
    }

    /// An open file of every NIC in the hands of a caller, with the NIC's number.
    ///
    /// # Errors
    ///
    /// As [`Nic::open`].
    pub fn devices(&self, caller: &Credentials) -> Result<Vec<(u32, InProcess)>, Errno> {
        (0..)
            .zip(&self.nics)
            .map(|(number, nic)| Ok((number, nic.open()?.transport(caller.clone()))))
            .collect()
    }

    /// NIC `cxi<index>`.
    #[must_use]
    pub fn nic(&self, index: usize) -> Option<&Arc<Nic>> {
        self.nics.get(index)
    }
}
