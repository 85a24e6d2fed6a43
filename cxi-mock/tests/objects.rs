//! Event queues, portal table entries and memory: what no recorded scenario covers.

mod common;

use std::sync::Arc;

use common::{alloc, cp, desc, domain, lni, md, nic, root, send, write};
use cxi_hw::PtlteState;
use cxi_ioctl::abi::domain::PID_ANY;
use cxi_ioctl::abi::lni::LniFreeCmd;
use cxi_ioctl::abi::memory::{AtuMapCmd, AtuUnmapCmd, AtuUpdateMdCmd, MapFlags};
use cxi_ioctl::abi::portal::{PteAllocCmd, PteMapCmd};
use cxi_ioctl::abi::queue::{EqAdjustReservedFcCmd, EqAdjustReservedFcCmdV1, EqAllocCmd};
use cxi_ioctl::abi::service::{RSRC_AC, RSRC_LE};
use cxi_ioctl::{DriverRelease, Errno, pte_status};
use cxi_mock::{Backing, CallerMemory, HazardKind, InProcess};
use zerocopy::IntoBytes;

/// An open file with an LNI of a service for VNI 5.
fn with_lni(release: DriverRelease) -> (InProcess, u32) {
    let root = root(&nic(release));
    let lni = lni(&root, alloc(&root, desc(&[5])).unwrap()).unwrap();
    (root, lni)
}

fn eq_cmd(lni: u32, md: u32) -> EqAllocCmd {
    let mut command = EqAllocCmd::new();
    command.lni = lni;
    command.queue_md = md;
    command.attr.queue = 1 << 20;
    command.attr.queue_len = 4096;
    command
}

/// The register for reserved slots has 14 bits, however long the queue is.
#[test]
fn an_event_queue_lies_in_its_memory_and_holds_what_it_reserves() {
    let (root, lni) = with_lni(DriverRelease::Shs14_0_1);
    let mut memory = AtuMapCmd::new();
    (memory.lni, memory.va, memory.len) = (lni, 1 << 20, 2 << 20);
    memory.flags = 13;
    let md = send(&root, &memory).unwrap().id;
    for (before, pages, reserved_slots, refused) in [
        (1, 1, 0, true),
        (0, 513, 0, true),
        (0, 512, 16_384, true),
        (0, 512, 16_383, false),
        (0, 1, 64, true),
        (0, 1, 63, false),
    ] {
        let mut command = eq_cmd(lni, md);
        command.attr.queue -= before * 4096;
        command.attr.queue_len = pages * 4096;
        command.attr.reserved_slots = reserved_slots;
        let expected = if refused { Err(Errno::EINVAL) } else { Ok(()) };
        assert_eq!(send(&root, &command).map(drop), expected, "{command:?}");
    }
}

#[test]
fn an_event_buffer_that_wraps_around_is_a_hazard() {
    for release in DriverRelease::ALL {
        let nic = nic(release);
        let root = root(&nic);
        let lni = lni(&root, alloc(&root, desc(&[5])).unwrap()).unwrap();
        let mut command = eq_cmd(lni, md(&root, lni));
        let queue = 4096_u64.wrapping_neg();
        command.attr.queue = queue;
        send(&root, &command).unwrap();
        let kinds: Vec<_> = nic.hazards().into_iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [HazardKind::EventBufferWraps { queue }], "{release}");
    }
}

#[test]
fn reserved_slots_change_in_both_layouts() {
    let (root, lni) = with_lni(DriverRelease::Main2026_07);
    let eq = send(&root, &eq_cmd(lni, md(&root, lni))).unwrap().eq;
    let command = EqAdjustReservedFcCmd::of(eq, 63);
    assert_eq!(send(&root, &command).unwrap().reserved_fc, 63);
    let (root, lni) = with_lni(DriverRelease::Shs14_0_1);
    let eq = send(&root, &eq_cmd(lni, md(&root, lni))).unwrap().eq;
    let command = EqAdjustReservedFcCmdV1::of(eq, 5);
    assert_eq!(send(&root, &command).unwrap().reserved_fc, 5);
    // The other layout means handle 0 to this driver.
    let mut command = EqAdjustReservedFcCmd::new();
    command.eq_hndl = eq;
    assert_eq!(send(&root, &command).unwrap_err(), Errno::EINVAL);
}

#[test]
fn an_entry_is_mapped_in_a_domain_of_its_own_lni() {
    let (root, one) = with_lni(DriverRelease::Shs14_0_1);
    let domain = domain(&root, one, 5, PID_ANY).unwrap().domain;
    let map = |lni, pid_offset| {
        let mut pte = PteAllocCmd::new();
        pte.lni_hndl = lni;
        let mut command = PteMapCmd::new();
        command.pte_number = send(&root, &pte).unwrap().pte_number;
        (command.domain_hndl, command.pid_offset) = (domain, pid_offset);
        send(&root, &command).map(|response| response.pte_index)
    };
    assert_eq!(map(lni(&root, 2).unwrap(), 0), Err(Errno::EINVAL));
    assert_eq!(map(one, 256), Err(Errno::EINVAL));
    assert_eq!(map(one, 255), Ok(0));
}

#[test]
fn the_status_of_an_entry_tells_its_pool() {
    let nic = nic(DriverRelease::Main2026_07);
    let root = root(&nic);
    let mut reserving = desc(&[5]);
    reserving.limits.types[RSRC_LE].res = 40;
    let lni = lni(&root, alloc(&root, reserving).unwrap()).unwrap();
    let mut command = PteAllocCmd::new();
    command.lni_hndl = lni;
    let number = send(&root, &command).unwrap().pte_number;
    // The first entry of the LNI with RGID 1 is on the processing element with that number.
    nic.hardware().set_les_allocated(0, 1, 9).unwrap();
    nic.hardware().set_les_allocated(1, 1, 7).unwrap();
    let (status, offsets) = pte_status(&root, number, 4).unwrap();
    assert_eq!(PtlteState(status.state), PtlteState::DISABLED);
    assert_eq!((status.les_reserved, status.les_allocated, status.les_max), (40, 7, 100));
    assert_eq!((status.ule_count, offsets), (0, vec![]));
}

/// Newer drivers look for it: the recorded scenario `o_atu_update_wrap`.
#[test]
fn an_update_that_wraps_around_is_as_wrong_as_one_beyond_the_mapping() {
    let (root, lni) = with_lni(DriverRelease::Shs14_0_1);
    let mut command = AtuMapCmd::new();
    (command.lni, command.va, command.len) = (lni, 4096, 8192);
    command.flags = (MapFlags::READ | MapFlags::WRITE).bits();
    let mut update = AtuUpdateMdCmd::new();
    update.id = send(&root, &command).unwrap().id;
    (update.va, update.len) = (u64::MAX, 2);
    update.flags = MapFlags::FAULT.bits();
    assert_eq!(send(&root, &update), Err(Errno::EINVAL));
}

/// A caller without memory behind any address.
struct Nowhere;

impl CallerMemory for Nowhere {
    fn respond(&mut self, _: &[u8]) -> Result<(), Errno> {
        Ok(())
    }

    fn read_response(&mut self, _: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::EFAULT)
    }

    fn write_list(&mut self, _: &[u8]) -> Result<(), Errno> {
        Ok(())
    }

    fn backing(&self, _: u64, _: u64) -> Backing {
        Backing::Missing
    }
}

#[test]
fn memory_that_cannot_be_pinned_leaves_its_address_context() {
    let nic = nic(DriverRelease::Main2026_07);
    let root = root(&nic);
    let mut without = desc(&[50]);
    without.limits.types[RSRC_AC].max = 0;
    let without = alloc(&root, without).unwrap();
    let pin = |svc| {
        let mut command = AtuMapCmd::new();
        command.lni = lni(&root, svc).unwrap();
        (command.va, command.len) = (4096, 4096);
        command.flags = (MapFlags::PIN | MapFlags::READ).bits();
        let client = root.client();
        client.write(root.caller(), command.as_bytes(), &mut Nowhere)
    };
    let with = alloc(&root, desc(&[51])).unwrap();
    assert_eq!(pin(with), Err(Errno::EFAULT));
    assert_eq!(nic.state().stats.ac, 1);
    assert_eq!(pin(without), Err(Errno::EBADR));
    assert_eq!(nic.state().stats.ac, 1);
}

#[test]
fn logical_address_contexts_hold_their_lni() {
    let (root, lni) = with_lni(DriverRelease::Main2026_07);
    let alloc = |lni: u32| {
        let mut lac = [0xFF; 4];
        let command = [[88, 0], [0, 0], [lni, 0]];
        write(&root, command.as_bytes(), &mut lac).map(|()| u32::from_ne_bytes(lac))
    };
    let free = |lni: u32, lac: u32| write(&root, [89, lni, lac].as_bytes(), &mut []);
    let free_lni = LniFreeCmd::of(lni);
    assert_eq!(alloc(lni + 1), Err(Errno::EINVAL));
    // A mapping takes the first.
    md(&root, lni);
    for lac in 1..8 {
        assert_eq!(alloc(lni), Ok(lac));
    }
    assert_eq!(alloc(lni), Err(Errno::ENOSPC));
    assert_eq!(free(lni + 1, 3), Err(Errno::EINVAL));
    assert_eq!(free(lni, 3), Ok(()));
    assert_eq!(alloc(lni), Ok(3));
    send(&root, &AtuUnmapCmd::of(1)).unwrap();
    // Any number drops a reference, even one that was never allocated.
    for lac in [1, 2, 3, 9, 9, 9, 9] {
        assert_eq!(send(&root, &free_lni).unwrap_err(), Errno::EBUSY);
        assert_eq!(free(lni, lac), Ok(()));
    }
    let nic = root.client().nic();
    assert_eq!(nic.hazards(), []);
    assert_eq!(free(lni, 4), Ok(()));
    assert_eq!(nic.hazards()[0].kind, HazardKind::LniReferenceDropped { lni });
    send(&root, &free_lni).unwrap();
    assert!(nic.state().rgids.is_empty());
    let other = common::lni(&root, 2).unwrap();
    alloc(other).unwrap();
    let nic = Arc::clone(nic);
    drop(root);
    assert_eq!(nic.state().stats.lni, 0);
}

#[test]
fn hazards_are_noted_where_a_kernel_may_crash() {
    let nic = nic(DriverRelease::Shs14_0_1);
    let root = root(&nic);
    let lni = lni(&root, alloc(&root, desc(&[5])).unwrap()).unwrap();
    cp(&root, lni, 77).unwrap();
    assert_eq!(nic.hazards(), []);
    drop(root);
    let events = nic.hazards();
    assert_eq!(events[0].kind, HazardKind::ProfileUsedAfterFree { vni: 77 });
    assert!(
        events[0].to_string().starts_with("a real shs-14.0.1 kernel may crash here: "),
        "{}",
        events[0]
    );
}
