//! Virtual functions: their files, their commands, and the services below a parent service.

mod common;

use std::sync::Arc;

use common::{alloc, desc, lni, nic, root, send, write};
use cxi_ioctl::abi::device::DevInfoGetCmd;
use cxi_ioctl::abi::lni::LniFreeCmd;
use cxi_ioctl::abi::service::{
    SvcAllocParentCmd, SvcDesc, SvcDestroyCmd, SvcEnableCmd, SvcFlags, SvcListGetCmd,
    SvcSetVniRangeCmd,
};
use cxi_ioctl::{DriverRelease, Errno, Opcode};
use cxi_mock::{Credentials, HazardKind, InProcess, Nic, NicConfig};

/// Open files of each function are counted from 1, independently of the others.
#[test]
fn files_are_numbered_for_each_function() {
    let config = NicConfig::new().release(DriverRelease::Main2026_07);
    let nic = Nic::new(config.virtual_functions(2)).unwrap();
    let physical = [nic.open().unwrap(), nic.open().unwrap()];
    let first = nic.open_vf(0).unwrap();
    let second = [nic.open_vf(1).unwrap(), nic.open_vf(1).unwrap()];
    assert_eq!(first.number(), 1);
    assert_eq!(second.each_ref().map(cxi_mock::Client::number), [1, 2]);
    assert_eq!(nic.clients_of(Some(1)), [1, 2]);
    drop((physical, first));
    assert_eq!(nic.open_vf(0).unwrap().number(), 1);
}

#[test]
fn virtual_functions_before_the_relay() {
    let old = Nic::new(NicConfig::new().virtual_functions(1)).unwrap();
    assert_eq!(old.open_vf(1).unwrap_err(), Errno::ENODEV);
    let vf = old.open_vf(0).unwrap().transport(Credentials::root());
    assert!(send(&vf, &DevInfoGetCmd::new()).is_ok());
    // No physical function answers a virtual function's message.
    assert_eq!(send(&vf, &SvcListGetCmd::new()).unwrap_err(), Errno::EOPNOTSUPP);
}

/// A request of PHYS_LAC_ALLOC, as a driver of a virtual function writes it.
fn lac_alloc(file: &InProcess, lni: u32) -> Result<u32, Errno> {
    let mut command = [0; 24];
    command[..4].copy_from_slice(&Opcode::PHYS_LAC_ALLOC.number().to_ne_bytes());
    command[16..20].copy_from_slice(&lni.to_ne_bytes());
    let mut lac = [0; 4];
    write(file, &command, &mut lac)?;
    Ok(u32::from_ne_bytes(lac))
}

fn lac_free(file: &InProcess, lni: u32, lac: u32) -> Result<(), Errno> {
    let words = [Opcode::PHYS_LAC_FREE.number(), lni, lac];
    write(file, &words.map(u32::to_ne_bytes).concat(), &mut [])
}

#[test]
fn address_contexts_on_the_physical_function_hold_their_lni() {
    let nic = nic(DriverRelease::Main2026_07);
    let root = root(&nic);
    let svc = alloc(&root, desc(&[50])).unwrap();
    let user = nic.open().unwrap().transport(Credentials::user(1000, 1000));
    let id = lni(&user, svc).unwrap();
    let free = || send(&user, &LniFreeCmd::of(id)).map(drop);

    assert_eq!(lac_alloc(&root, id), Err(Errno::EINVAL), "the LNI is another file's");
    for lac in 0..8 {
        assert_eq!(lac_alloc(&user, id), Ok(lac));
    }
    assert_eq!(lac_alloc(&user, id), Err(Errno::ENOSPC));
    assert_eq!(lac_free(&root, id, 0), Err(Errno::EINVAL));
    assert_eq!(lac_free(&user, id, 5), Ok(()));
    assert_eq!(lac_alloc(&user, id), Ok(5), "the lowest that is free");
    assert_eq!(free(), Err(Errno::EBUSY));
    // Any number drops a reference.
    for lac in [0, 0, 99, 1, 2, 3, 4, 5] {
        assert_eq!(free(), Err(Errno::EBUSY));
        assert_eq!(lac_free(&user, id, lac), Ok(()));
    }
    assert!(nic.hazards().is_empty());
    assert_eq!(lac_free(&user, id, 6), Ok(()));
    let kinds: Vec<HazardKind> = nic.hazards().into_iter().map(|hazard| hazard.kind).collect();
    assert_eq!(kinds, [HazardKind::LniReferenceDropped { lni: id }]);
    assert_eq!(free(), Ok(()));
}

/// A service for these VNIs that nobody may use, as the tests of libcxi make it.
fn closed(vnis: &[u16]) -> SvcDesc {
    let mut desc = desc(vnis);
    desc.flags |= SvcFlags::RESTRICTED_MEMBERS.bits();
    desc.limits.types = [cxi_ioctl::abi::service::Limits { max: 0, res: 0 }; 8];
    desc
}

fn parent(root: &InProcess, vnis: &[u16]) -> u32 {
    let mut desc = closed(vnis);
    if vnis.is_empty() {
        desc.flags &= !SvcFlags::RESTRICTED_VNIS.bits();
    }
    send(root, &SvcAllocParentCmd::of(desc)).unwrap().svc_id
}

fn with_functions() -> (Arc<Nic>, InProcess, [InProcess; 2]) {
    let config = NicConfig::new().release(DriverRelease::Main2026_11).virtual_functions(2);
    let nic = Nic::new(config).unwrap();
    let functions = [0, 1].map(|it| nic.open_vf(it).unwrap().transport(Credentials::root()));
    let root = root(&nic);
    (nic, root, functions)
}

#[test]
fn a_function_makes_services_with_its_parents_vnis() {
    let (nic, root, [function, other]) = with_functions();
    let make = |vni| alloc(&function, closed(&[vni]));
    let destroy = |file, id| send(file, &SvcDestroyCmd::of(id)).map(drop);

    assert_eq!(make(102), Err(Errno::EPERM));
    let id = parent(&root, &[100, 102]);
    nic.set_parent_service(0, id).unwrap();
    let refused = send(&function, &SvcAllocParentCmd::of(closed(&[102])));
    assert_eq!(refused.err(), Some(Errno::EPERM));
    assert_eq!((make(101), make(0)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    let user = nic.open_vf(0).unwrap().transport(Credentials::user(1000, 1000));
    assert_eq!(alloc(&user, closed(&[102])), Err(Errno::EPERM));

    // It is the function's, which may switch and destroy no other.
    let child = make(102).unwrap();
    assert_eq!(destroy(&other, child), Err(Errno::EPERM));
    assert_eq!(destroy(&function, id), Err(Errno::EPERM));
    for enable in [0, 1] {
        assert_eq!(send(&function, &SvcEnableCmd::of(child, enable)), Ok(()));
        assert_eq!(send(&root, &SvcEnableCmd::of(id, enable)), Err(Errno::EBUSY));
    }
    assert_eq!(nic.set_parent_service(0, 0), Err(Errno::EBUSY));
    assert_eq!(destroy(&function, child), Ok(()));
    assert_eq!(send(&root, &SvcEnableCmd::of(id, 0)), Ok(()));
}

/// The kernel looks at the number before it asks the driver, who looks for the parents.
#[test]
fn functions_without_a_parent_are_not_enabled() {
    let nic = nic(DriverRelease::Main2026_11);
    assert_eq!(nic.set_virtual_functions(0), Ok(()));
    assert_eq!(nic.set_virtual_functions(65), Err(Errno::ERANGE));
    assert_eq!(nic.set_virtual_functions(1), Err(Errno::EINVAL));
    let id = parent(&root(&nic), &[100]);
    nic.set_parent_service(0, id).unwrap();
    assert_eq!(nic.set_virtual_functions(2), Err(Errno::EINVAL));
    assert_eq!(nic.set_virtual_functions(1), Ok(()));
    assert_eq!(nic.set_virtual_functions(2), Err(Errno::EBUSY));
    nic.set_parent_service(0, 0).unwrap();
    assert_eq!(nic.set_virtual_functions(1), Ok(()), "nothing to do");
}

/// ETH_LINK_STATE_GET, as the Ethernet driver of a virtual function asks.
#[test]
fn a_function_sees_the_link_go() {
    let (nic, _, [function, _]) = with_functions();
    let is_up = || {
        let mut command = [0; 16];
        command[..4].copy_from_slice(&Opcode::ETH_LINK_STATE_GET.number().to_ne_bytes());
        let mut state = [7];
        write(&function, &command, &mut state).map(|()| state)
    };
    assert_eq!(is_up(), Ok([1]));
    nic.hardware().set_link(false);
    assert_eq!(is_up(), Ok([0]));
}

#[test]
fn a_parents_range_is_its_functions() {
    let (nic, root, [function, _]) = with_functions();
    let id = parent(&root, &[]);
    send(&root, &SvcSetVniRangeCmd::of(id, 200, 207)).unwrap();
    send(&root, &SvcEnableCmd::of(id, 1)).unwrap();
    nic.set_parent_service(0, id).unwrap();
    assert_eq!(alloc(&function, closed(&[208])), Err(Errno::EINVAL));
    assert!(alloc(&function, closed(&[205])).is_ok());
    assert_eq!(nic.state().svc_count, 3);
    // What it made goes with the function.
    nic.set_virtual_functions(0).unwrap();
    assert_eq!(nic.state().svc_count, 2);
    assert_eq!(nic.set_parent_service(0, 0), Ok(()));
}
