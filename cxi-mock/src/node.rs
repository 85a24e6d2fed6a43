//! A node with several NICs.

use std::sync::Arc;

use cxi_ioctl::Errno;

use crate::data_path::Wire;
use crate::{Clock, Credentials, InProcess, LoadError, Nic, NicConfig};

/// A node with NICs `cxi0`, `cxi1` and so on. They share only the fabric.
#[derive(Debug)]
pub struct MockNode {
    nics: Vec<Arc<Nic>>,
    wire: Arc<Wire>,
}

impl MockNode {
    /// A node with this many NICs that differ only in their addresses.
    ///
    /// NIC `n` has the fabric address of `config` plus `n` and the PCI bus plus `n`.
    ///
    /// # Errors
    ///
    /// As [`Nic::new`].
    pub fn with_nics(count: u8, config: &NicConfig) -> Result<Self, LoadError> {
        Self::new(config.alike(count))
    }

    /// A node with these NICs.
    ///
    /// # Errors
    ///
    /// As [`Nic::new`].
    pub fn new(configs: impl IntoIterator<Item = NicConfig>) -> Result<Self, LoadError> {
        Self::on_wire(configs, &Arc::default())
    }

    /// A node with these NICs, which share a wire with others.
    pub(crate) fn on_wire(
        configs: impl IntoIterator<Item = NicConfig>,
        wire: &Arc<Wire>,
    ) -> Result<Self, LoadError> {
        let nics = configs.into_iter().map(Nic::new);
        Ok(Self::connected(nics.collect::<Result<_, _>>()?, wire))
    }

    pub(crate) fn connected(nics: Vec<Arc<Nic>>, wire: &Arc<Wire>) -> Self {
        for nic in &nics {
            nic.data_path().connect(wire);
        }
        let wire = Arc::clone(wire);
        Self { nics, wire }
    }

    /// The NICs in order.
    #[must_use]
    pub fn nics(&self) -> &[Arc<Nic>] {
        &self.nics
    }

    /// Opens every NIC for a caller; returns the open files with the NICs' numbers.
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

    /// The time of the fabric that the NICs are on.
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock::new(&self.wire)
    }

    /// Fabric addresses of the NICs.
    #[must_use]
    pub fn addresses(&self) -> Vec<u32> {
        self.nics.iter().map(|nic| nic.hardware().nid()).collect()
    }

    /// Configurations of the NICs.
    #[must_use]
    pub fn configs(&self) -> Vec<NicConfig> {
        self.nics.iter().map(|nic| nic.config().clone()).collect()
    }

    /// The NIC `cxi<index>`.
    #[must_use]
    pub fn nic(&self, index: usize) -> Option<&Arc<Nic>> {
        self.nics.get(index)
    }
}
