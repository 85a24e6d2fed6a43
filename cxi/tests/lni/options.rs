//! Options of objects below an LNI reach the driver as they were given, and its answers the caller.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use crate::common::{all, exclusive_lni, lni_of, lni_with, nic, says, vni};
use cxi::lni::{
    EventQueueFlags, EventQueueOptions, LcidChoice, LeList, Lni, MapFlags, MapOptions, Pid,
    ProfileOptions, PtOptions, StatusThresholds, TgqOptions, TrafficClassType, TxqOptions,
    UpdatePolicy,
};
use cxi::{Device, DeviceMemory, DriverRelease, TrafficClass};
use cxi_ioctl::abi::memory::{AtuMapCmd, AtuUpdateMdCmd};
use cxi_ioctl::abi::portal::{PteAllocCmd, PteLeInvalidateCmd, PteMapCmd};
use cxi_ioctl::abi::profile::{CpAllocCmd, CpFreeCmd, CpModifyCmd, TrigCpAllocCmd};
use cxi_ioctl::abi::queue::{CqAllocCmd, EqAllocCmd};
use cxi_ioctl::{Command, Exchange, Mapping, Opcode, Record};
use cxi_mock::{InProcess, Nic};
use zerocopy::FromBytes;

/// An LNI whose commands are kept.
fn recorded(nic: &Arc<Nic>) -> (Lni, Arc<Record<InProcess>>) {
    let record = Arc::new(Record::new(nic.root().unwrap()));
    let device = Device::cxi0(Arc::clone(&record));
    (lni_of(&device, 1024), record)
}

/// The last command of a kind that was sent.
fn last<C: Command + FromBytes>(record: &Record<InProcess>) -> C {
    let exchanges = record.recording().exchanges;
    let found = exchanges.iter().rev().find_map(|exchange| match exchange {
        Exchange::Command { command, .. } if exchange.opcode() == Some(C::OPCODE) => Some(command),
        _ => None,
    });
    C::read_from_bytes(found.expect("it was sent")).unwrap()
}

#[test]
fn queues_are_asked_for_as_described() {
    let (lni, record) = recorded(&nic(DriverRelease::Main2026_07));
    let profile = lni.alloc_cp(vni(1024), TrafficClass::BestEffort).unwrap();
    for (policy, number) in [
        (UpdatePolicy::Always, 0),
        (UpdatePolicy::OftenAndWhenEmpty, 1),
        (UpdatePolicy::SeldomAndWhenEmpty, 2),
        (UpdatePolicy::Seldom, 3),
    ] {
        let options = TxqOptions::new(64).policy(policy).counter_pool(2);
        lni.alloc_txq(&profile, &options).unwrap();
        let opts = last::<CqAllocCmd>(&record).opts;
        assert_eq!((opts.policy, opts.stat_cnt_pool), (number, 2));
        let options = TgqOptions::new(64).policy(policy).credit_thresholds(3);
        lni.alloc_tgq(&options).unwrap();
        let opts = last::<CqAllocCmd>(&record).opts;
        assert_eq!((opts.policy, opts.lpe_cdt_thresh_id), (number, 3));
    }
    let [_first, events] = [(); 2].map(|()| lni.alloc_eq(&EventQueueOptions::new(4096)).unwrap());
    assert_ne!(events.id(), 0);
    let options = TgqOptions::new(64).event_queue(&events);
    lni.alloc_tgq(&options).unwrap();
    assert_eq!(last::<CqAllocCmd>(&record).eq, events.id());
    lni.alloc_pte(PtOptions::empty(), Some(&events)).unwrap();
    assert_eq!(last::<PteAllocCmd>(&record).evtq_hndl, events.id());
}

#[test]
fn a_window_is_mapped_once() {
    let (lni, record) = recorded(&nic(DriverRelease::Main2026_07));
    let queue = lni.alloc_tgq(&TgqOptions::new(64)).unwrap();
    let first: *const Mapping = queue.commands().unwrap();
    assert!(std::ptr::eq(first, queue.commands().unwrap()));
    let maps = |exchange: &&Exchange| matches!(exchange, Exchange::Map { .. });
    assert_eq!(record.recording().exchanges.iter().filter(maps).count(), 1);
}

#[test]
fn event_queues_are_asked_for_as_described() {
    let (lni, record) = recorded(&nic(DriverRelease::Main2026_07));
    let flags = EventQueueFlags::TARGET_LONG | EventQueueFlags::TIMESTAMPS;
    let options = EventQueueOptions::new(4096)
        .flags(flags)
        .thresholds(StatusThresholds { base: 50, delta: 10, count: 4 })
        .coalescing_delay(7)
        .cpu(1);
    let events = lni.alloc_eq(&options).unwrap();
    let attr = last::<EqAllocCmd>(&record).attr;
    assert_eq!(attr.flags, flags.bits());
    assert_eq!(
        (attr.status_thresh_base, attr.status_thresh_delta, attr.status_thresh_count),
        (50, 10, 4)
    );
    assert_eq!((attr.ec_delay, attr.cpu_affinity), (7, 1));
    assert_eq!(attr.queue, events.memory().address());

    let [for_events, for_status] = [(); 2].map(|()| lni.alloc_wait().unwrap());
    let options = options.event_wait(&for_events).status_wait(&for_status);
    let waiting = lni.alloc_eq(&options).unwrap();
    let command = last::<EqAllocCmd>(&record);
    assert_eq!([command.event_wait, command.status_wait], [for_events.id(), for_status.id()]);
    assert_ne!(command.event_wait, command.status_wait);
    assert_ne!(waiting.id(), events.id());
}

#[test]
fn profiles_are_asked_for_as_described() {
    let (lni, record) = recorded(&nic(DriverRelease::Main2026_07));
    let any = ProfileOptions::new(vni(1024), TrafficClass::BestEffort);
    for (class_type, number) in [
        (TrafficClassType::Default, 0),
        (TrafficClassType::Restricted, 2),
        (TrafficClassType::HighRatePuts, 1),
    ] {
        lni.alloc_cp_with(&any.class_type(class_type)).unwrap();
        assert_eq!(last::<CpAllocCmd>(&record).tc_type, number, "{class_type:?}");
    }
    for (choice, number) in
        [(LcidChoice::Triggered, 0), (LcidChoice::NotTriggered, 1), (LcidChoice::Any, 2)]
    {
        let options = any.class_type(TrafficClassType::Restricted).lcid(choice);
        lni.alloc_cp_with(&options).unwrap();
        let sent = last::<TrigCpAllocCmd>(&record);
        assert_eq!((sent.cp_type, sent.tc_type), (number, 2), "{choice:?}");
    }
}

#[test]
fn the_profile_that_is_moved_is_the_one_that_was_named() {
    let (lni, record) = recorded(&nic(DriverRelease::Main2026_07));
    let lni = exclusive_lni(lni.device());
    let classes = [TrafficClass::BestEffort, TrafficClass::LowLatency];
    let [_other, moved] = classes.map(|class| lni.alloc_cp(vni(512), class).unwrap());
    moved.modify(vni(513)).unwrap();
    let sent = last::<CpModifyCmd>(&record);
    moved.close().unwrap();
    let handle = last::<CpFreeCmd>(&record).cp_hndl;
    assert_ne!(handle, 0);
    assert_eq!((sent.cp_hndl, sent.vni), (handle, 513));
}

#[test]
fn a_profile_on_a_vni_of_its_own_service_takes_no_look_at_the_others() {
    let (lni, record) = recorded(&nic(DriverRelease::Main2026_07));
    let listed = || {
        let exchanges = record.recording().exchanges;
        let opcodes = exchanges.iter().filter_map(Exchange::opcode);
        opcodes.filter(|opcode| *opcode == Opcode::SVC_LIST_GET).count()
    };
    let before = listed();
    lni.alloc_cp(vni(1024), TrafficClass::BestEffort).unwrap();
    assert_eq!(listed(), before);
    lni.alloc_cp(vni(1025), TrafficClass::BestEffort).unwrap_err();
    assert_eq!(listed(), before + 1);
}

#[test]
fn memory_is_registered_as_described() {
    let (lni, record) = recorded(&nic(DriverRelease::Main2026_07));
    let memory = Arc::new(DeviceMemory::new(8192).unwrap());
    let flags = MapFlags::PIN | MapFlags::READ;
    let options = MapOptions::default().flags(flags).page_shift(12).huge_shift(21);
    let md = lni.map_memory(&memory, &options).unwrap();
    let sent = last::<AtuMapCmd>(&record);
    assert_eq!((sent.va, sent.len), (memory.address(), 8192));
    assert_eq!(sent.flags, flags.bits());
    assert_eq!((sent.hints.page_shift, sent.hints.huge_shift), (12, 21));
    // The mock translates an address to itself.
    assert_eq!(md.iova(), memory.address());
}

#[test]
fn a_part_of_memory_is_faulted_in_where_it_starts() {
    let (lni, record) = recorded(&nic(DriverRelease::Main2026_07));
    let memory = Arc::new(DeviceMemory::new(8192).unwrap());
    let on_demand = MapOptions::new().flags(MapFlags::READ | MapFlags::ALLOC_MD);
    let md = lni.map_memory(&memory, &on_demand).unwrap();
    md.update(4096..8192).unwrap();
    let sent = last::<AtuUpdateMdCmd>(&record);
    assert_eq!((sent.va, sent.len), (memory.address() + 4096, 4096));
    let before = record.recording().exchanges.len();
    for (part, range) in [(4096..4096, "4096 to 4096"), (4096..8193, "4096 to 8193")] {
        says(
            md.update(part),
            format!(
                "cxi0: ATU_UPDATE_MD: bytes {range}: expected a part of the 8192 that are registered"
            ),
        );
    }
    let pinned = lni.map_memory(&memory, &MapOptions::new()).unwrap();
    says(
        pinned.update(0..4096),
        "cxi0: ATU_UPDATE_MD: the memory is pinned: its pages are always there",
    );
    assert_eq!(record.recording().exchanges.len(), before + 1, "the ATU_MAP");
}

#[test]
fn what_a_queue_works_with_is_freed_after_it() {
    let (lni, record) = recorded(&nic(DriverRelease::Main2026_07));
    let [for_events, for_status] = [(); 2].map(|()| lni.alloc_wait().unwrap());
    let options = EventQueueOptions::new(4096).event_wait(&for_events).status_wait(&for_status);
    let events = lni.alloc_eq(&options).unwrap();
    let profile = lni.alloc_cp(vni(1024), TrafficClass::BestEffort).unwrap();
    let options = TxqOptions::new(64).event_queue(&events);
    let queue = lni.alloc_txq(&profile, &options).unwrap();
    let before = record.recording().exchanges.len();
    drop((for_events, for_status, events, profile));
    assert_eq!(record.recording().exchanges.len(), before);
    drop(queue);
    let freed = record.recording().exchanges.split_off(before);
    let at = |wanted: Opcode| -> Vec<usize> {
        let found = freed.iter().enumerate();
        let found = found.filter(|(_, exchange)| exchange.opcode() == Some(wanted));
        found.map(|(index, _)| index).collect()
    };
    assert_eq!(at(Opcode::CQ_FREE), [0]);
    assert_eq!(at(Opcode::CP_FREE).len(), 1);
    let (events, waits) = (at(Opcode::EQ_FREE), at(Opcode::WAIT_FREE));
    assert_eq!((events.len(), waits.len()), (1, 2));
    assert!(waits.iter().all(|wait| *wait > events[0]));
}

#[test]
fn lists_and_mappings_of_a_portal_entry_are_told_apart() {
    let (lni, record) = recorded(&nic(DriverRelease::Main2026_07));
    let pte = lni.alloc_pte(PtOptions::IS_MATCHING, None).unwrap();
    for (list, number) in [
        (LeList::Priority, 0),
        (LeList::Overflow, 1),
        (LeList::Request, 2),
        (LeList::Unexpected, 3),
    ] {
        // The mock knows no list entries; what counts is which list is asked about.
        let _ = pte.invalidate(list, 7);
        let sent = last::<PteLeInvalidateCmd>(&record);
        assert_eq!((sent.list, sent.buffer_id), (number, 7), "{list:?}");
    }
    let domain = lni.alloc_domain(vni(1024), None).unwrap();
    let single = pte.map(&domain, 3).unwrap();
    assert_eq!(last::<PteMapCmd>(&record).is_multicast, 0);
    let multicast = pte.map_multicast(&domain, 4).unwrap();
    let sent = last::<PteMapCmd>(&record);
    assert_eq!((sent.is_multicast, sent.pid_offset), (1, 4));
    assert_ne!(single.index(), multicast.index());
}

#[test]
fn a_wait_object_says_where_its_news_are() {
    let nic = nic(DriverRelease::Main2026_07);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    let (first, second) = (lni.alloc_wait().unwrap(), lni.alloc_wait().unwrap());
    assert_ne!(first.id(), second.id());
    let path = second.path(Path::new("/sys"));
    let number = second.id().to_string();
    assert!(path.starts_with("/sys/class/cxi_user/cxi0/clients"), "{path:?}");
    assert!(path.ends_with(format!("wait/{number}/intr")), "{path:?}");

    // A mock in the same process has no sysfs.
    let sysfs = tempfile::tempdir().unwrap();
    let error = second.open(sysfs.path()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    let place = second.path(sysfs.path());
    std::fs::create_dir_all(&place).unwrap();
    let error = second.open(sysfs.path()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::IsADirectory, "it is read");
    std::fs::remove_dir(&place).unwrap();
    std::fs::write(&place, "\n").unwrap();
    let interrupt = second.open(sysfs.path()).unwrap();
    // An ordinary file never has news.
    assert!(!interrupt.wait(Some(std::time::Duration::ZERO)).unwrap());
    // A file that always has: that of pressure stall information, unless a trigger is written.
    let pressure = Path::new("/proc/pressure/cpu");
    if !pressure.exists() {
        return cxi_test_kit::skip(format_args!("there is no {}", pressure.display()));
    }
    std::fs::remove_file(&place).unwrap();
    symlink(pressure, &place).unwrap();
    let interrupt = second.open(sysfs.path()).unwrap();
    assert!(interrupt.wait(Some(std::time::Duration::ZERO)).unwrap());
}

#[test]
fn a_pid_is_its_number() {
    let pid = Pid::new(510).unwrap();
    assert_eq!(pid.to_string(), "510");
    assert_eq!((u16::from(pid), u32::from(pid)), (510, 510));
}

#[test]
fn an_lni_waits_for_inbound_traffic() {
    let (lni, record) = recorded(&nic(DriverRelease::Main2026_07));
    lni.device().inbound_wait().unwrap();
    let opcodes: Vec<_> =
        record.recording().exchanges.iter().filter_map(Exchange::opcode).collect();
    assert_eq!(opcodes.last(), Some(&Opcode::INBOUND_WAIT));
}
