//! Services that a node has from the start, as a site's boot scripts would make them.

use std::path::Path;

use cxi::{Device, DeviceId, ServiceSpec};
use cxi_mock::{Credentials, MockNode};
use serde_saphyr::{DuplicateKeyPolicy, from_multiple_with_options, options};

use super::error::ServeError;
use super::input;

/// Makes the services of a file on each NIC, in its order.
pub(crate) fn make(node: &MockNode, path: &Path) -> Result<(), ServeError> {
    let at = |error: &dyn std::fmt::Display| {
        ServeError::Input(format!("--preset: {}: {error}", path.display()))
    };
    let text = String::from_utf8(input::read(path)?).map_err(|error| at(&error))?;
    // HPE's templates repeat keys, for lists.
    let options = options! { with_snippet: false, duplicate_keys: DuplicateKeyPolicy::PassThrough };
    let specs: Vec<ServiceSpec> =
        from_multiple_with_options(&text, options).map_err(|error| at(&error))?;
    let devices = node
        .devices(&Credentials::root())
        .map_err(|error| at(&error))?;
    for (number, file) in devices {
        let device = Device::with_transport(DeviceId::new(number), file);
        for spec in &specs {
            device.services().create(spec).map_err(|error| at(&error))?;
        }
    }
    Ok(())
}
