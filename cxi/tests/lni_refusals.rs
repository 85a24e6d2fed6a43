//! What is not there any more, not allowed or not known below an LNI, and how that is said.

mod common;

use std::sync::Arc;

use common::{FROM_13_1, all, lni_with, modest, nic, range, root, user, vni};
use cxi::driver::Hazards;
use cxi::lni::{
    EthernetClass, EventQueueFlags, EventQueueOptions, LcidChoice, Lni, MapFlags, MapOptions, Pid,
    ProfileOptions, PtOptions, TgqOptions, TrafficClassType, TxqOptions,
};
use cxi::{
    Device, DeviceId, DeviceMemory, Errno, Error, LnisPerRgid, Member, Release, Resource,
    ServiceSpec, TrafficClass,
};
use cxi_ioctl::{Fault, Injection, Opcode};
use cxi_mock::{Credentials, InProcess, Nic, NicConfig};

/// An LNI of root, who may do everything.
fn root_lni(nic: &Arc<Nic>, number: u16) -> Lni {
    let device = root(nic);
    let spec = modest(number).limits(all(100)).build().unwrap();
    let service = device.services().create(&spec).unwrap();
    device.alloc_lni(service).unwrap()
}

/// An LNI of a device whose commands can be made to fail.
fn faulty_lni(nic: &Arc<Nic>) -> (Lni, Arc<Fault<InProcess>>) {
    let file = nic.open().unwrap().transport(Credentials::root());
    let fault = Arc::new(Fault::new(file));
    let device = Device::with_transport(DeviceId::new(0), Arc::<Fault<_>>::clone(&fault) as _);
    let spec = modest(1024).limits(all(100)).build().unwrap();
    let service = device.services().create(&spec).unwrap();
    (device.alloc_lni(service).unwrap(), fault)
}

#[track_caller]
fn said<T: std::fmt::Debug>(result: Result<T, Error>) -> (Errno, String) {
    let error = result.unwrap_err();
    (error.errno(), error.to_string())
}

#[test]
fn the_256th_rgid_is_refused() {
    let nic = nic(Release::Main);
    let (service, first) = lni_with(&nic, 1024, all(0));
    let others: Vec<_> = (1..255)
        .map(|_| user(&nic).alloc_lni(service).unwrap())
        .collect();
    assert_eq!(
        said(user(&nic).alloc_lni(service)),
        (
            Errno::ENOSPC,
            "cxi0: LNI_ALLOC: all 255 RGIDs of the NIC are in use".to_owned()
        )
    );
    drop(others);
    user(&nic).alloc_lni(service).unwrap();
    first.close().unwrap();
}

#[test]
fn communication_profiles_run_out() {
    for release in FROM_13_1 {
        let nic = nic(release);
        let (_, lni) = lni_with(&nic, 1024, all(100));
        let triggered = |class| {
            let options = ProfileOptions::new(vni(1024), class);
            lni.alloc_cp_with(&options.lcid(LcidChoice::Triggered))
        };
        let first = triggered(TrafficClass::BestEffort).unwrap();
        assert_eq!(first.lcid(), 0);
        // There is one LCID for triggered commands, and it has another class.
        assert_eq!(
            said(triggered(TrafficClass::LowLatency)),
            (
                Errno::ENOSPC,
                "cxi0: TRIG_CP_ALLOC: the NIC's 255 communication profiles are in use, or the \
                 LCIDs of the RGID that will do"
                    .to_owned()
            ),
            "{release}"
        );
        let any = ProfileOptions::new(vni(1024), TrafficClass::LowLatency).lcid(LcidChoice::Any);
        assert_eq!(lni.alloc_cp_with(&any).unwrap().lcid(), 1);
    }
}

#[test]
fn classes_and_types_that_the_nic_does_not_have_are_said() {
    let nic = nic(Release::Main);
    let lni = root_lni(&nic, 1024);
    let ethernet = |class| lni.alloc_cp_with(&ProfileOptions::ethernet(class, 3));
    for class in [EthernetClass::Tc1, EthernetClass::Shared] {
        ethernet(class).unwrap();
    }
    assert_eq!(
        said(ethernet(EthernetClass::Tc2)),
        (
            Errno::EINVAL,
            "cxi0: CP_ALLOC: the NIC has no such Ethernet class and type (EINVAL)".to_owned()
        )
    );
    let of_type = |class, class_type| {
        let options = ProfileOptions::new(vni(1024), class).class_type(class_type);
        lni.alloc_cp_with(&options).map_err(|error| error.errno())
    };
    for (class, class_type, exists) in [
        (
            TrafficClass::BestEffort,
            TrafficClassType::HighRatePuts,
            true,
        ),
        (TrafficClass::BestEffort, TrafficClassType::Restricted, true),
        (
            TrafficClass::BestEffort,
            TrafficClassType::CollectiveLeaf,
            false,
        ),
        (
            TrafficClass::LowLatency,
            TrafficClassType::CollectiveLeaf,
            true,
        ),
        (
            TrafficClass::LowLatency,
            TrafficClassType::HighRatePuts,
            false,
        ),
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
    // Uid 0 gets a profile of its own where no service admits it, unless a range is in the way.
    for release in FROM_13_1 {
        let nic = nic(release);
        let service = root_lni(&nic, 7).service();
        let device = root(&nic).accepting(Hazards::ORPHANED_PROFILE);
        let spec = ServiceSpec::builder().vni_range(range("1024-1039"));
        let spec = spec.limits(all(0)).enabled(false).build().unwrap();
        device.services().create(&spec).unwrap();
        let lni = device.alloc_lni(service).unwrap();
        assert_eq!(
            said(lni.alloc_cp(vni(1030), TrafficClass::LowLatency)),
            (
                Errno::EEXIST,
                "cxi0: CP_ALLOC: the VNI belongs to a service that is disabled or does not admit \
                 the caller (EEXIST)"
                    .to_owned()
            ),
            "{release}"
        );
    }
}

#[test]
fn a_queue_needs_a_profile_of_its_rgid() {
    let nic = nic(Release::Main);
    let (service, lni) = lni_with(&nic, 1024, all(100));
    let other = lni.device().alloc_lni(service).unwrap();
    let profile = other.alloc_cp(vni(1024), TrafficClass::BestEffort).unwrap();
    assert_eq!(
        said(lni.alloc_txq(&profile, &TxqOptions::new(64))),
        (
            Errno::EINVAL,
            "cxi0: CQ_ALLOC: the RGID has no communication profile with this LCID (EINVAL)"
                .to_owned()
        )
    );
    other.alloc_txq(&profile, &TxqOptions::new(64)).unwrap();
}

#[test]
fn there_is_one_queue_for_the_retry_handler() {
    let nic = nic(Release::Main);
    let options = EventQueueOptions::new(4096).flags(EventQueueFlags::RETRY_HANDLER);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    assert_eq!(
        said(lni.alloc_eq(&options)),
        (
            Errno::EPERM,
            "cxi0: EQ_ALLOC: not permitted: the retry handler's queue takes CAP_SYS_ADMIN"
                .to_owned()
        )
    );
    let lni = root_lni(&nic, 1025);
    let events = lni.alloc_eq(&options).unwrap();
    assert_eq!(
        said(lni.alloc_eq(&options)),
        (
            Errno::EEXIST,
            "cxi0: EQ_ALLOC: the device has a retry handler's queue already".to_owned()
        )
    );
    events.close().unwrap();
    lni.alloc_eq(&options).unwrap();
}

#[test]
fn pids_of_a_vni_run_out() {
    let nic = Nic::new(
        NicConfig::new()
            .release(Release::Main)
            .parameters(|parameters| parameters.pid_bits = 8),
    )
    .unwrap();
    let (_, lni) = lni_with(&nic, 1024, all(100));
    let block = lni.reserve_pids(vni(1024), None, 250).unwrap();
    assert_eq!(
        said(lni.reserve_pids(vni(1024), None, 6)),
        (
            Errno::ENOSPC,
            "cxi0: DOMAIN_RESERVE: this VNI has no free run of that many PIDs".to_owned()
        )
    );
    assert_eq!(
        said(lni.reserve_pids(vni(1024), Some(block.first), 1)),
        (
            Errno::EEXIST,
            "cxi0: DOMAIN_RESERVE: there is no free run of that many PIDs from there on (EEXIST)"
                .to_owned()
        )
    );
    assert_eq!(
        said(lni.reserve_pids(vni(77), None, 1)),
        (
            Errno::EINVAL,
            "cxi0: DOMAIN_RESERVE: no enabled service that admits the caller has this VNI (EINVAL)"
                .to_owned()
        )
    );
    let domain = lni.alloc_domain(vni(1024), Some(Pid::new(254).unwrap()));
    assert_eq!(domain.unwrap().pid(), 254);
    let rest: Vec<_> = (250..254)
        .map(|_| lni.alloc_domain(vni(1024), None).unwrap())
        .collect();
    drop(rest);
    let rest: Vec<_> = std::iter::from_fn(|| lni.alloc_domain(vni(1024), None).ok()).collect();
    assert!((4..=5).contains(&rest.len()), "{}", rest.len());
    assert_eq!(
        said(lni.alloc_domain(vni(1024), None)),
        (
            Errno::ENOSPC,
            "cxi0: DOMAIN_ALLOC: no PID of this VNI is free".to_owned()
        )
    );
}

#[test]
fn a_domain_on_a_vni_of_others_is_not_permitted() {
    let nic = nic(Release::Main);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    let spec = modest(2048).member(Member::Uid(7)).build().unwrap();
    root(&nic).services().create(&spec).unwrap();
    assert_eq!(
        said(lni.alloc_domain(vni(2048), None)),
        (
            Errno::EPERM,
            "cxi0: DOMAIN_ALLOC: not permitted: the services that have this VNI do not have the \
             caller as a member"
                .to_owned()
        )
    );
}

#[test]
fn address_contexts_of_an_rgid_run_out_before_those_of_the_service() {
    let nic = nic(Release::Main);
    let spec = modest(1024).limits(all(100)).enabled(false).build();
    let services = root(&nic).services();
    let service = services.create(&spec.unwrap()).unwrap();
    services
        .set_lnis_per_rgid(service, LnisPerRgid::new(8).unwrap())
        .unwrap();
    services.set_enabled(service, true).unwrap();
    let device = root(&nic);
    let memory = Arc::new(DeviceMemory::new(4096).unwrap());
    let kinds = [
        MapOptions::default(),
        MapOptions::new().flags(MapFlags::READ | MapFlags::WRITE),
    ];
    let lnis: Vec<_> = (0..5).map(|_| device.alloc_lni(service).unwrap()).collect();
    let mut mapped = Vec::new();
    let mut refused = None;
    for (lni, kind) in lnis
        .iter()
        .flat_map(|lni| kinds.iter().map(move |kind| (lni, kind)))
    {
        match lni.map_memory(&memory, kind) {
            Ok(md) => mapped.push(md),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    let contexts: Vec<_> = mapped.iter().map(cxi::lni::Md::lac).collect();
    assert_eq!(contexts, [0, 1, 2, 3, 4, 5, 6, 7]);
    let refused = refused.unwrap();
    assert_eq!(
        (refused.errno(), refused.to_string()),
        (
            Errno::ENOSPC,
            "cxi0: ATU_MAP: all 8 address contexts of the LNI's RGID are in use".to_owned()
        )
    );
    let used = services.usage(service).unwrap().in_use[Resource::Acs];
    assert_eq!(used, Some(8));
}

#[test]
fn a_domain_of_another_lni_is_no_target() {
    let nic = nic(Release::Main);
    let (service, lni) = lni_with(&nic, 1024, all(100));
    let other = lni.device().alloc_lni(service).unwrap();
    let domain = other.alloc_domain(vni(1024), None).unwrap();
    let pte = lni.alloc_pte(PtOptions::empty(), None).unwrap();
    assert_eq!(
        said(pte.map(&domain, 0)),
        (
            Errno::EINVAL,
            "cxi0: PTE_MAP: the domain belongs to another LNI (EINVAL)".to_owned()
        )
    );
}

#[test]
fn an_errno_without_a_known_meaning_is_passed_on() {
    let nic = nic(Release::Main);
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
        fault.inject(Injection::errno(Errno::ENOMEM).on(opcode).times(1));
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
}

#[test]
fn what_is_busy_is_named() {
    let nic = nic(Release::Main);
    let (lni, fault) = faulty_lni(&nic);
    let profile = lni.alloc_cp(vni(1024), TrafficClass::BestEffort).unwrap();
    let memory = Arc::new(DeviceMemory::new(4096).unwrap());
    fault.inject(
        Injection::errno(Errno::EBUSY)
            .on(Opcode::ATU_UNMAP)
            .times(1),
    );
    for opcode in [
        Opcode::CP_FREE,
        Opcode::DOMAIN_FREE,
        Opcode::CQ_FREE,
        Opcode::EQ_FREE,
        Opcode::CT_FREE,
        Opcode::PTE_FREE,
        Opcode::WAIT_FREE,
    ] {
        fault.inject(Injection::errno(Errno::EBUSY).on(opcode).times(1));
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
    let second = lni.alloc_cp(vni(1024), TrafficClass::LowLatency);
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

    let nic = nic(Release::Main);
    let file = nic.open().unwrap().transport(Credentials::root());
    let device = Device::with_transport(DeviceId::new(0), Arc::new(Unmappable(file)));
    let spec = modest(1024).limits(all(100)).build().unwrap();
    let lni = device
        .alloc_lni(device.services().create(&spec).unwrap())
        .unwrap();
    let queue = lni.alloc_tgq(&TgqOptions::new(64)).unwrap();
    let error = queue.commands().unwrap_err();
    assert_eq!(error.errno(), Errno::EAGAIN);
    assert!(
        error
            .to_string()
            .starts_with("cxi0: cannot map the command slots of the device: "),
        "{error}"
    );
}
