//! Loading, faults, removal, bad buffers, windows.

mod common;

use std::time::{Duration, Instant};

use common::{alloc, cp, desc, lni, nic, root, send, write};
use cxi_ioctl::abi::counter::CtAllocCmd;
use cxi_ioctl::abi::device::{DevInfoGetCmd, MapCsrsCmd};
use cxi_ioctl::abi::memory::Mminfo;
use cxi_ioctl::abi::queue::{CQ_IS_TX, CqAckCounterCmd, CqAllocCmd, CqFreeCmd};
use cxi_ioctl::abi::service::{SvcDestroyCmd, SvcListGetCmd};
use cxi_ioctl::{DriverRelease, Errno, Opcode, Transport, execute};
use cxi_mock::serve::Windows;
use cxi_mock::{Credentials, Fault, InProcess, LoadError, MockNode, Nic, NicConfig};
use zerocopy::IntoBytes;

const fn threads<T: Send + Sync>() {}
const _: () = threads::<Nic>();
const _: () = threads::<MockNode>();
const _: () = threads::<InProcess>();

#[test]
fn a_driver_that_does_not_load_says_why() {
    let load = |config| Nic::new(config).unwrap_err();
    let error = load(NicConfig::new().parameters(|params| params.default_vnis = [0, 5, 0, 0]));
    assert_eq!(error, LoadError::NoDefaultVni { first: 0 });
    assert_eq!(error.errno(), Errno::EINVAL);
    let error = load(NicConfig::new().parameters(|params| params.default_svc_num_tles = 2049));
    assert_eq!(error.to_string(), "default_svc_num_tles is 2049: the NIC has 2048");
    let twice = |release| {
        let config = NicConfig::new().release(release);
        Nic::new(config.parameters(|params| params.default_vnis = [5, 5, 0, 0]))
    };
    assert!(twice(DriverRelease::Shs14_0_1).is_ok());
    let error = twice(DriverRelease::Shs14_0_0).unwrap_err();
    assert_eq!(error.errno(), Errno::EEXIST);
    assert_eq!(
        error.to_string(),
        "default_vnis has VNI 5 twice, which the driver of shs-14.0.0 refuses"
    );
    for config in [
        NicConfig::new().virtual_functions(65),
        NicConfig::new().totals(|totals| totals.txqs = 1025),
        NicConfig::new().totals(|totals| totals.tles = 7),
        NicConfig::new().parameters(|params| params.pid_bits = 10),
        NicConfig::new().parameters(|params| params.pid_bits = 0),
        NicConfig::new().parameters(|params| params.active_qos_profile = 3),
    ] {
        assert_eq!(load(config).errno(), Errno::EINVAL);
    }
}

#[test]
fn a_configuration_is_changed_part_by_part() {
    let config = NicConfig::new().release(DriverRelease::Main2026_07).virtual_functions(2);
    let changed = config.clone().identity(|identity| identity.nid = 77);
    assert_eq!((changed.release, changed.virtual_functions), (DriverRelease::Main2026_07, 2));
    assert_eq!(changed.identity.nid, 77);
    let changed = config.totals(|totals| totals.acs = 5);
    assert_eq!((changed.release, changed.totals.acs), (DriverRelease::Main2026_07, 5));
}

#[test]
fn fewer_queues_than_a_limit_allows() {
    let nic = Nic::new(NicConfig::new().totals(|totals| totals.tgqs = 2)).unwrap();
    let root = root(&nic);
    let mut limited = desc(&[5]);
    limited.limits.types[2].max = 2;
    let lni = lni(&root, alloc(&root, limited).unwrap()).unwrap();
    let mut command = CqAllocCmd::new();
    command.lni = lni;
    assert_eq!(send(&root, &command).unwrap().cq, 1024);
    assert_eq!(send(&root, &command).unwrap().cq, 1025);
    assert_eq!(send(&root, &command).unwrap_err(), Errno::ENOSPC);
}

#[test]
fn scripted_faults_end() {
    let nic = nic(DriverRelease::Shs14_0_1);
    let root = root(&nic);
    let id = alloc(&root, desc(&[5])).unwrap();
    nic.faults().inject(Fault::errno(Errno::EBUSY).on(Opcode::SVC_DESTROY).times(2));
    let answers: Vec<_> = (0..4).map(|_| send(&root, &SvcDestroyCmd::of(id))).collect();
    let (busy, gone) = (Err(Errno::EBUSY), Err(Errno::EINVAL));
    assert_eq!(answers, [busy, busy, Ok(()), gone]);
    nic.faults().delay(Some(Opcode::DEV_INFO_GET), Duration::from_millis(20));
    let start = Instant::now();
    execute(&root, &DevInfoGetCmd::new()).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(20));
}

#[test]
fn a_removed_nic_answers_eio_and_comes_back() {
    let nic = nic(DriverRelease::Shs14_0_1);
    let root = root(&nic);
    let user = root.with_credentials(Credentials::user(5, 5));
    let id = alloc(&root, desc(&[5])).unwrap();
    nic.faults().unplug();
    assert_eq!(nic.open().unwrap_err(), Errno::EIO);
    assert_eq!(send(&root, &DevInfoGetCmd::new()).unwrap_err(), Errno::EIO);
    assert_eq!(root.map(4096, 4096).unwrap_err(), Errno::EIO);
    // The permission for a command is checked first.
    let destroy = SvcDestroyCmd::of(id);
    assert_eq!(send(&user, &destroy), Err(Errno::EPERM));
    nic.faults().plug();
    assert_eq!(send(&root, &destroy), Ok(()));
}

#[test]
fn an_answer_that_does_not_fit() {
    let nic = nic(DriverRelease::Main2026_07);
    let root = root(&nic);
    let command = cxi_ioctl::abi::service::SvcAllocCmd::of(desc(&[5]));
    let result = write(&root, command.as_bytes(), &mut [0; 23]);
    assert_eq!(result, Err(Errno::EFAULT));
    assert_eq!(nic.state().svc_count, 2);
    let command = cxi_ioctl::abi::lni::LniAllocCmd::of(2);
    let result = write(&root, command.as_bytes(), &mut [0; 3]);
    assert_eq!(result, Err(Errno::EFAULT));
    assert_eq!(nic.state().stats.lni, 0);
    // If the list does not fit, the count is not written.
    let mut command = SvcListGetCmd::new();
    command.count = 9;
    let mut response = [0xAA; 8];
    let result = write(&root, command.as_bytes(), &mut response);
    assert_eq!((result, response), (Err(Errno::EFAULT), [0xAA; 8]));
}

#[test]
fn lengths_and_opcodes() {
    let check = |release, command: &[u8]| {
        let nic = nic(release);
        write(&root(&nic), command, &mut [0; 256])
    };
    let mut long = [0; 113];
    long[0] = 35;
    assert_eq!(check(DriverRelease::Shs14_0_1, &long), Err(Errno::EINVAL));
    assert_eq!(check(DriverRelease::Main2026_07, &long), Err(Errno::EOPNOTSUPP));
    assert_eq!(check(DriverRelease::Main2026_07, &[35]), Err(Errno::EINVAL));
    assert_eq!(check(DriverRelease::Main2026_07, &[]), Err(Errno::EINVAL));
}

#[test]
fn queue_windows_are_memory_of_their_own() {
    let nic = nic(DriverRelease::Shs14_0_1);
    let root = root(&nic);
    let lni = lni(&root, alloc(&root, desc(&[5])).unwrap()).unwrap();
    let lcid = cp(&root, lni, 5).unwrap().lcid;
    let mut command = CqAllocCmd::new();
    command.lni = lni;
    command.opts.count = 100;
    command.opts.flags = CQ_IS_TX;
    command.opts.lcid = lcid;
    let (one, two) = (send(&root, &command).unwrap(), send(&root, &command).unwrap());
    assert_eq!((one.count, one.cmds.size), (128, 128 * 64));
    let windows = [one.cmds, one.wp_addr, two.cmds, two.wp_addr];
    let map = |window: Mminfo| root.map(window.offset, usize::try_from(window.size).unwrap());
    let maps: Vec<_> = windows.iter().map(|window| map(*window).unwrap()).collect();
    for (value, map) in (1..).zip(&maps) {
        map.write_u64(0, value).unwrap();
    }
    for (value, window) in (1..).zip(&windows) {
        assert_eq!(map(*window).unwrap().read_u64(0), Ok(value));
    }
    let memory = Windows::of(root.client()).memory().unwrap();
    let offset = two.wp_addr.offset;
    let seen = cxi_ioctl::Mapping::from_file(&*memory, offset, 4096).unwrap();
    assert_eq!(seen.read_u64(0), Ok(4));
    nic.hardware().set_txq_in_flight(one.cq, 3).unwrap();
    let acks = CqAckCounterCmd::of(one.cq);
    assert_eq!(send(&root, &acks).unwrap().ack_counter, 3);
    send(&root, &CqFreeCmd::of(one.cq)).unwrap();
    assert_eq!(send(&root, &acks).unwrap_err(), Errno::EINVAL);
    assert!(nic.hardware().set_txq_in_flight(1024, 1).is_err());
    assert!(nic.hardware().set_tgq_in_flight(1023, 1).is_err());
    assert!(nic.hardware().set_les_allocated(4, 0, 1).is_err());
    assert!(nic.hardware().set_tles_in_use(4, 1).is_err());
}

#[test]
fn a_file_maps_its_own_windows_only() {
    let nic = nic(DriverRelease::Shs14_0_1);
    let files = [root(&nic), root(&nic)];
    let service = alloc(&files[0], desc(&[5])).unwrap();
    let [one, two] = files
        .each_ref()
        .map(|file| send(file, &CtAllocCmd::of(lni(file, service).unwrap())).unwrap().doorbell);
    let [mine, theirs] = files.each_ref().map(|file| file.map(one.offset, 4096).unwrap());
    assert_eq!(one.offset, two.offset);
    mine.write_u64(8, 7).unwrap();
    assert_eq!((mine.read_u64(8), theirs.read_u64(8)), (Ok(7), Ok(0)));
}

#[test]
fn registers_are_mapped_once_for_each_file() {
    let nic = nic(DriverRelease::Shs14_0_1);
    let (one, two) = (root(&nic), root(&nic));
    let window = send(&one, &MapCsrsCmd::new()).unwrap();
    assert!(one.map(window.offset, 4096).is_ok());
    assert_eq!(send(&one, &MapCsrsCmd::new()).unwrap_err(), Errno::EALREADY);
    assert_eq!(two.map(window.offset, 4096).unwrap_err(), Errno::EINVAL);
    assert!(send(&two, &MapCsrsCmd::new()).is_ok());
}

/// The register C_MB_STS_REV, from which HPE's `test_map_csr` and retry handler learn the chip.
#[test]
fn the_revision_register_says_which_chip_it_is() {
    let config = NicConfig::new().identity(|identity| {
        (identity.vendor_id, identity.device_id) = (0x17db, 0x501);
        (identity.device_rev, identity.device_proto) = (2, 0x123);
    });
    let root = Nic::new(config).unwrap().root().unwrap();
    let window = send(&root, &MapCsrsCmd::new()).unwrap();
    let page = root.map(window.offset + 0x1000_4000, 4096).unwrap();
    assert_eq!(page.read_u64(8), Ok(0x1123_17db_0501_0002));
    assert_eq!(page.read_u64(16), Ok(0));
}

#[test]
fn nics_are_used_from_many_threads() {
    let node = MockNode::with_nics(2, &NicConfig::new()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u16 {
            let nic = &node.nics()[usize::from(thread % 2)];
            scope.spawn(move || {
                let root = root(nic);
                for _ in 0..60 {
                    let id = alloc(&root, desc(&[100 + thread])).unwrap();
                    let lni = lni(&root, id).unwrap();
                    cp(&root, lni, u32::from(100 + thread)).unwrap();
                    drop(root.with_credentials(Credentials::user(1, 1)));
                    assert_eq!(send(&root, &SvcDestroyCmd::of(id)), Err(Errno::EBUSY));
                }
            });
        }
    });
    for nic in node.nics() {
        assert_eq!(nic.state().svc_count, 121);
        assert_eq!(nic.state().stats.lni, 0);
        assert_eq!(nic.state().cp_used, 0);
    }
}

/// HPE's tests of libfabric clear these registers, and look at them when other processes have ended.
#[test]
fn registers_show_how_many_tles_were_in_use_at_once() {
    let nic = nic(DriverRelease::Main2026_07);
    let root = root(&nic);
    let window = send(&root, &MapCsrsCmd::new()).unwrap();
    let page = root.map(window.offset, 4096).unwrap();
    let shown = || [0, 1, 2, 3].map(|pool| page.read_u64(0x870 + 8 * pool).unwrap());
    let look = || send(&root, &DevInfoGetCmd::new()).map(drop).unwrap();
    look();
    assert_eq!(shown(), [0; 4]);
    nic.hardware().set_tles_in_use(2, 100).unwrap();
    look();
    assert_eq!(shown(), [0, 0, 100, 0]);
    nic.hardware().set_tles_in_use(2, 7).unwrap();
    look();
    assert_eq!(shown(), [0, 0, 100, 0]);
    page.write_u64(0x880, 0).unwrap();
    // Closing any file shows it too.
    drop(nic.root().unwrap());
    assert_eq!(shown(), [0, 0, 7, 0]);
}
