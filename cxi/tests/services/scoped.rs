//! Services that end with their handle.

use std::sync::Arc;

use crate::common::{modest, nic, root};
use cxi::{Device, Transport};
use cxi_ioctl::DriverRelease;
use cxi_mock::Credentials;

#[test]
fn a_scoped_service_that_is_kept_does_not_keep_the_file_open() {
    let file = nic(DriverRelease::Shs14_0_1).open().unwrap();
    let transport: Arc<dyn Transport> = Arc::new(file.transport(Credentials::root()));
    let device = Device::cxi0(Arc::clone(&transport));
    let services = device.services();
    let scoped = |number| services.create_scoped(&modest(number).build().unwrap());
    let kept = scoped(1024).unwrap().keep();
    scoped(1025).unwrap().destroy().unwrap();
    assert!(services.get(kept).is_ok());
    drop((services, device));
    assert_eq!(Arc::strong_count(&transport), 1, "the file can be closed");
}

#[test]
fn scoped_services_end_or_are_kept() {
    let nic = nic(DriverRelease::Main2026_07);
    let services = root(&nic).services();
    let spec = modest(5).build().unwrap();
    let first = services.create_scoped(&spec).unwrap();
    let id = first.id();
    drop(first);
    assert!(services.get(id).is_err());

    let kept = services.create_scoped(&spec).unwrap().keep();
    assert!(services.get(kept).is_ok());

    let other = services.create_scoped(&spec).unwrap();
    let device = root(&nic);
    let form = cxi_ioctl::LniAllocForm::new();
    form.alloc(&**device.transport(), other.id().get()).unwrap();
    let refused = other.destroy().unwrap_err();
    assert!(refused.error.is_busy());
    drop(device);
    refused.handle.destroy().unwrap();
    assert_eq!(services.list().unwrap().len(), 2);
}
