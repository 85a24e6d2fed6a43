//! What a NIC says about itself.

use std::sync::Arc;

use cxi_ioctl::abi::device::{DevInfoGetCmd, DevInfoUse};
use cxi_mock::{Credentials, Nic};

/// What the NIC says, as DEV_INFO_GET does.
pub(super) fn info(nic: &Arc<Nic>) -> DevInfoUse {
    nic.open()
        .and_then(|client| {
            let transport = client.transport(Credentials::root());
            cxi_ioctl::execute(&transport, &DevInfoGetCmd::new())
                .map_err(cxi_ioctl::CommandError::errno)
        })
        .unwrap_or_else(|_| zerocopy::FromZeros::new_zeroed())
}

pub(super) fn up_or_down(info: &DevInfoUse) -> &'static str {
    if info.link_state == 0 { "down" } else { "up" }
}
