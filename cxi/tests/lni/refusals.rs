//! Refusals below an LNI: objects that are gone, not allowed or not known, and the errors that say
//! so.

mod exhausted;

use std::sync::Arc;

use crate::common::{
    FROM_13_1, all, create, lni_of, lni_with, modest, nic, range, refused, root, user, vni,
};
use cxi::driver::Quirks;
use cxi::lni::{
    EthernetClass, EventQueueFlags, EventQueueOptions, LcidChoice, Lni, MapFlags, MapOptions, Pid,
    ProfileOptions, PtOptions, TgqOptions, TrafficClassType, TxqOptions,
};
use cxi::{
    Device, DeviceMemory, DriverRelease, Errno, Error, LnisPerRgid, Member, Resource, ServiceSpec,
    TrafficClass,
};
use cxi_ioctl::{Fault, Faulty, Opcode};
use cxi_mock::{InProcess, Nic, NicConfig};

/// An LNI of a device whose commands can be made to fail.
fn faulty_lni(nic: &Arc<Nic>) -> (Lni, Arc<Faulty<InProcess>>) {
    let file = nic.root().unwrap();
    let fault = Arc::new(Faulty::new(file));
    let device = Device::cxi0(Arc::clone(&fault));
    (lni_of(&device, 1024), fault)
}

#[track_caller]
fn said<T: std::fmt::Debug>(result: Result<T, Error>) -> (Errno, String) {
    let error = result.unwrap_err();
    (error.errno(), error.to_string())
}

#[test]
fn classes_and_types_that_the_nic_does_not_have_are_said() {
    let nic = nic(DriverRelease::Main2026_07);
    let lni = lni_of(&root(&nic), 1024);
    let ethernet = |class| lni.alloc_cp_with(&ProfileOptions::ethernet(class, 3));
    for class in [EthernetClass::Tc1, EthernetClass::Shared] {
        ethernet(class).unwrap();
    }
    refused(
        ethernet(EthernetClass::Tc2),
        Errno::EINVAL,
        "cxi0: CP_ALLOC: the NIC has no such Ethernet class and type (EINVAL)",
    );
    let of_type = |class, class_type| {
        let options = ProfileOptions::new(vni(1024), class).class_type(class_type);
        lni.alloc_cp_with(&options).map_err(|error| error.errno())
    };
    for (class, class_type, exists) in [
        (TrafficClass::BestEffort, TrafficClassType::HighRatePuts, true),
        (TrafficClass::BestEffort, TrafficClassType::Restricted, true),
        (TrafficClass::BestEffort, TrafficClassType::CollectiveLeaf, false),
        (TrafficClass::LowLatency, TrafficClassType::CollectiveLeaf, true),
        (TrafficClass::LowLatency, TrafficClassType::HighRatePuts, false),
        (TrafficClass::BulkData, TrafficClassType::Default, true),
    ] {
        assert_eq!(
            of_type(class, class_type).map(drop),
            if exists { Ok(()) } else { Err(Errno::EINVAL) },
            "{class:?} {class_type:?}"
        );
    }
}

#[test]
fn the_range_of_a_service_that_was_never_enabled_is_out_of_reach() {
    // Uid 0 gets its own profile where no service admits it, unless a range is in the way.
    for release in FROM_13_1 {
        let nic = nic(release);
        let service = lni_of(&root(&nic), 7).service();
        let device = root(&nic).allow_quirks(Quirks::ORPHANED_PROFILE);
        let spec = ServiceSpec::builder().vni_range(range("1024-1039"));
        let spec = spec.limits(all(0)).enabled(false).build().unwrap();
        device.services().create(&spec).unwrap();
        let lni = device.alloc_lni(service).unwrap();
        refused(
            lni.alloc_cp(vni(1030), TrafficClass::LowLatency),
            Errno::EEXIST,
            "cxi0: CP_ALLOC: the VNI belongs to a service that is disabled or does not admit \
                 the caller (EEXIST)",
        );
    }
}

#[test]
fn a_queue_needs_a_profile_of_its_rgid() {
    let nic = nic(DriverRelease::Main2026_07);
    let (service, lni) = lni_with(&nic, 1024, all(100));
    let other = lni.device().alloc_lni(service).unwrap();
    let profile = other.alloc_cp(vni(1024), TrafficClass::BestEffort).unwrap();
    refused(
        lni.alloc_txq(&profile, &TxqOptions::new(64)),
        Errno::EINVAL,
        "cxi0: CQ_ALLOC: the RGID has no communication profile with this LCID (EINVAL)",
    );
    other.alloc_txq(&profile, &TxqOptions::new(64)).unwrap();
}

#[test]
fn a_domain_on_a_vni_of_others_is_not_permitted() {
    let nic = nic(DriverRelease::Main2026_07);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    create(&root(&nic).services(), modest(2048).member(Member::Uid(7)));
    refused(
        lni.alloc_domain(vni(2048), None),
        Errno::EPERM,
        "cxi0: DOMAIN_ALLOC: not permitted: the services that have this VNI do not have the \
             caller as a member",
    );
}

#[test]
fn a_domain_of_another_lni_is_no_target() {
    let nic = nic(DriverRelease::Main2026_07);
    let (service, lni) = lni_with(&nic, 1024, all(100));
    let other = lni.device().alloc_lni(service).unwrap();
    let domain = other.alloc_domain(vni(1024), None).unwrap();
    let pte = lni.alloc_pte(PtOptions::empty(), None).unwrap();
    refused(
        pte.map(&domain, 0),
        Errno::EINVAL,
        "cxi0: PTE_MAP: the domain belongs to another LNI (EINVAL)",
    );
}

#[test]
fn an_errno_without_a_known_meaning_is_passed_on() {
    let nic = nic(DriverRelease::Main2026_07);
    let (lni, fault) = faulty_lni(&nic);
    let domain = lni.alloc_domain(vni(1024), None).unwrap();
    let pte = lni.alloc_pte(PtOptions::empty(), None).unwrap();
    let service = lni.service();
    for opcode in [
        Opcode::LNI_ALLOC,
        Opcode::CP_ALLOC,
        Opcode::DOMAIN_ALLOC,
        Opcode::DOMAIN_RESERVE,
        Opcode::PTE_MAP,
        Opcode::CT_ALLOC,
    ] {
        fault.inject(Fault::errno(Errno::ENOMEM).on(opcode).once());
        let (errno, text) = match opcode {
            Opcode::LNI_ALLOC => said(lni.device().alloc_lni(service)),
            Opcode::CP_ALLOC => said(lni.alloc_cp(vni(1024), TrafficClass::BestEffort)),
            Opcode::DOMAIN_ALLOC => said(lni.alloc_domain(vni(1024), None)),
            Opcode::DOMAIN_RESERVE => said(lni.reserve_pids(vni(1024), None, 1)),
            Opcode::PTE_MAP => said(pte.map(&domain, 9)),
            _ => said(lni.alloc_ct()),
        };
        assert_eq!(errno, Errno::ENOMEM);
        assert!(text.starts_with(&format!("cxi0: {opcode}: ")), "{text}");
        assert!(text.contains("ENOMEM"), "{text}");
    }
    fault.inject(Fault::errno(Errno::ENOSPC).on(Opcode::PTE_MAP));
    let (errno, text) = said(pte.map(&domain, 9));
    assert_eq!(errno, Errno::ENOSPC);
    assert!(!text.contains("multicast"), "{text}");
}

#[test]
fn what_is_busy_is_named() {
    let nic = nic(DriverRelease::Main2026_07);
    let (lni, fault) = faulty_lni(&nic);
    let profile = lni.alloc_cp(vni(1024), TrafficClass::BestEffort).unwrap();
    let memory = Arc::new(DeviceMemory::new(4096).unwrap());
    fault.inject(Fault::errno(Errno::EBUSY).on(Opcode::ATU_UNMAP).once());
    for opcode in [
        Opcode::CP_FREE,
        Opcode::DOMAIN_FREE,
        Opcode::CQ_FREE,
        Opcode::EQ_FREE,
        Opcode::CT_FREE,
        Opcode::PTE_FREE,
        Opcode::WAIT_FREE,
    ] {
        fault.inject(Fault::errno(Errno::EBUSY).on(opcode).once());
    }
    /// Closes it twice: the first time it is busy.
    macro_rules! busy {
        ($handle:expr) => {{
            let refused = $handle.unwrap().close().unwrap_err();
            assert!(refused.error.is_busy());
            refused.handle.close().unwrap();
            refused.error.to_string()
        }};
    }
    let class = ProfileOptions::new(vni(1024), TrafficClass::LowLatency);
    let options = class.lcid(LcidChoice::NotTriggered);
    let second = lni.alloc_cp_with(&options);
    // A handle of it that is gone does not count.
    drop(lni.alloc_cp_with(&options).unwrap());
    let said = [
        busy!(lni.map_memory(&memory, &MapOptions::new())),
        busy!(second),
        busy!(lni.alloc_domain(vni(1024), None)),
        busy!(lni.alloc_txq(&profile, &TxqOptions::new(64))),
        busy!(lni.alloc_eq(&EventQueueOptions::new(4096))),
        busy!(lni.alloc_ct()),
        busy!(lni.alloc_pte(PtOptions::empty(), None)),
        busy!(lni.alloc_wait()),
    ];
    assert_eq!(
        said,
        [
            "cxi0: ATU_UNMAP: the memory is still in use",
            "cxi0: CP_FREE: the communication profile is still in use",
            "cxi0: DOMAIN_FREE: the domain is still in use",
            "cxi0: CQ_FREE: the command queue is still in use",
            "cxi0: EQ_FREE: the event queue is still in use",
            "cxi0: CT_FREE: the counter is still in use",
            "cxi0: PTE_FREE: the PtlTE is still in use",
            "cxi0: WAIT_FREE: the wait object is still in use",
        ]
    );
}

#[test]
fn memory_that_is_refused_is_not_a_counters() {
    let nic = nic(DriverRelease::Main2026_07);
    let (lni, fault) = faulty_lni(&nic);
    let counter = lni.alloc_ct().unwrap();
    let [memory, refused] = [3, 4].map(|count| {
        let memory = DeviceMemory::new(8).unwrap();
        memory.write_u64(0, count).unwrap();
        Arc::new(memory)
    });
    counter.write_back_to(&memory).unwrap();
    fault.inject(Fault::errno(Errno::EINVAL).on(Opcode::CT_WB_UPDATE));
    let (errno, _) = said(counter.write_back_to(&refused));
    assert_eq!((errno, counter.value().success), (Errno::EINVAL, 3));
}

#[test]
fn a_window_that_cannot_be_mapped_is_said() {
    /// A device whose memory cannot be mapped.
    #[derive(Debug)]
    struct Unmappable(InProcess);

    impl cxi_ioctl::Transport for Unmappable {
        fn submit(&self, request: cxi_ioctl::Request<'_>) -> Result<(), Errno> {
            self.0.submit(request)
        }

        fn map(&self, _: u64, _: usize) -> Result<cxi_ioctl::Mapping, Errno> {
            Err(Errno::EAGAIN)
        }
    }

    let nic = nic(DriverRelease::Main2026_07);
    let file = nic.root().unwrap();
    let device = Device::cxi0(Arc::new(Unmappable(file)));
    let lni = lni_of(&device, 1024);
    let queue = lni.alloc_tgq(&TgqOptions::new(64)).unwrap();
    let error = queue.commands().unwrap_err();
    assert_eq!(error.errno(), Errno::EAGAIN);
    assert!(
        error.to_string().starts_with("cxi0: cannot map the command slots of the device: "),
        "{error}"
    );
}
