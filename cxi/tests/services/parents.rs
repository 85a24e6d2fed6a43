//! Parent services, from which the services of virtual functions get their VNIs and resources.

use cxi::driver::Capabilities;
use cxi::{ErrorKind, Limit, Limits, Resource, ServiceSpec};
use cxi_ioctl::{DriverRelease, Errno, Opcode};

use crate::common::*;

fn parent() -> cxi::ServiceSpecBuilder {
    let limits = Limits::none().with(Resource::Txqs, Limit::new(16, 16).unwrap());
    ServiceSpec::builder().parent(true).limits(limits)
}

#[test]
fn a_parent_is_made_where_the_driver_has_them_and_nowhere_else() {
    for_each_release(|release, nic| {
        let device = root(nic);
        let services = device.services();
        let has_parents = device.driver().unwrap().can(Capabilities::PARENT_SERVICES);
        assert_eq!(has_parents, release >= DriverRelease::Main2026_11, "{release}");
        let plain = create(&services, modest(7));
        assert!(!services.is_parent(plain).unwrap());
        let made = ask(&services, parent().vni(vni(8)));
        if !has_parents {
            let error = made.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
            assert_eq!(services.list().unwrap().len(), 2);
            return;
        }
        let id = made.unwrap();
        assert!(services.is_parent(id).unwrap());
        let spec = services.spec(id).unwrap();
        assert!(spec.is_parent());
        services.update(id, &spec).unwrap();
        let error = services.update(plain, &spec).unwrap_err();
        assert!(error.to_string().contains("is not a parent service"), "{error}");
        services.destroy(id).unwrap();
        assert!(services.is_parent(id).is_err());
    });
}

#[test]
fn a_parent_can_have_a_range() {
    let nic = nic(DriverRelease::Main2026_11);
    let services = root(&nic).services();
    let id = create(&services, parent().vni_range(range("64-127")));
    assert!(services.is_parent(id).unwrap() && services.get(id).unwrap().is_enabled());
}

#[test]
fn a_function_is_given_an_enabled_parent_only() {
    let nic = nic(DriverRelease::Main2026_11);
    let services = root(&nic).services();
    let plain = create(&services, modest(7)).get();
    let id = create(&services, parent().vni(vni(8)));
    assert_eq!(nic.set_parent_service(0, plain), Err(Errno::EINVAL));
    assert_eq!(nic.set_parent_service(0, 99), Err(Errno::EINVAL));
    services.set_enabled(id, false).unwrap();
    assert_eq!(nic.set_parent_service(0, id.get()), Err(Errno::EKEYREVOKED));
    services.set_enabled(id, true).unwrap();
    nic.set_parent_service(0, id.get()).unwrap();
    assert_eq!((nic.parent_service(0), nic.parent_service(1)), (id.get(), 0));
    let error = services.destroy(id).unwrap_err();
    assert_eq!((error.errno(), error.command()), (Errno::EBUSY, Some(Opcode::SVC_DESTROY)));
    nic.set_parent_service(0, 0).unwrap();
    services.destroy(id).unwrap();
}
