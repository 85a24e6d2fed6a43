//! A transport does not say which NIC it leads to: a device has the number that its maker names.

use cxi::Device;
use cxi_mock::{Nic, NicConfig};

fn main() {
    let nic = Nic::new(NicConfig::new()).unwrap();
    let _ = Device::from(nic.root().unwrap());
}
