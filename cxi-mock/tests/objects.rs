//! Argument checks and dependencies of event queues, counters, portal table entries, memory.

mod common;

use std::sync::Arc;

use common::{alloc, cp, desc, domain, lni, md, nic, only, root, send, write};
use cxi_ioctl::abi::counter::{CtAllocCmd, CtWbUpdateCmd};
use cxi_ioctl::abi::domain::{DomainFreeCmd, DomainReserveCmd, PID_ANY};
use cxi_ioctl::abi::lni::LniFreeCmd;
use cxi_ioctl::abi::memory::{AtuMapCmd, AtuUnmapCmd, AtuUpdateMdCmd, MapFlags};
use cxi_ioctl::abi::portal::{
    PTLTE_DISABLED, PteAllocCmd, PteFreeCmd, PteLeInvalidateCmd, PteMapCmd, PteUnmapCmd,
};
use cxi_ioctl::abi::queue::{
    EqAdjustReservedFcCmd, EqAdjustReservedFcCmdV1, EqAllocCmd, EqFreeCmd, EqResizeCmd,
    EqResizeCompleteCmd,
};
use cxi_ioctl::abi::service::{RSRC_AC, RSRC_LE};
use cxi_ioctl::zerocopy::IntoBytes;
use cxi_ioctl::{DriverRelease, Errno, pte_status};
use cxi_mock::{Backing, CallerMemory, Credentials, HazardKind, InProcess};

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

/// The register has 14 bits, however long the queue is.
#[test]
fn reserved_slots_have_a_limit_of_their_own() {
    let (root, lni) = with_lni(DriverRelease::Shs14_0_1);
    let mut memory = AtuMapCmd::new();
    (memory.lni, memory.va, memory.len) = (lni, 1 << 20, 2 << 20);
    memory.flags = 13;
    let md = send(&root, &memory).unwrap().id;
    let reserve = |slots: u32| {
        let mut command = eq_cmd(lni, md);
        command.attr.queue_len = 2 << 20;
        command.attr.reserved_slots = slots;
        send(&root, &command).map(drop)
    };
    assert_eq!(reserve(16_384), Err(Errno::EINVAL));
    assert_eq!(reserve(16_383), Ok(()));
}

#[test]
fn event_queue_arguments() {
    let (root, lni) = with_lni(DriverRelease::Shs14_0_1);
    let md = md(&root, lni);
    let refuse = |change: fn(&mut EqAllocCmd)| {
        let mut command = eq_cmd(lni, md);
        change(&mut command);
        assert_eq!(
            send(&root, &command).unwrap_err(),
            Errno::EINVAL,
            "{command:?}"
        );
    };
    refuse(|command| command.lni = 77);
    refuse(|command| command.queue_md = 77);
    refuse(|command| command.event_wait = 77);
    refuse(|command| command.status_wait = 77);
    refuse(|command| command.attr.queue_len = 0);
    refuse(|command| command.attr.queue_len = 4097);
    refuse(|command| command.attr.queue_len = 17 * 4096);
    refuse(|command| command.attr.queue = 0);
    refuse(|command| command.attr.queue += 64);
    refuse(|command| command.attr.queue -= 4096);
    refuse(|command| command.attr.status_thresh_count = 5);
    refuse(|command| {
        command.attr.status_thresh_base = 101;
        command.attr.status_thresh_count = 1;
    });
    refuse(|command| {
        command.attr.status_thresh_base = 40;
        command.attr.status_thresh_delta = 21;
        command.attr.status_thresh_count = 3;
    });
    refuse(|command| command.attr.reserved_slots = 64);
    let mut command = eq_cmd(lni, md);
    command.attr.reserved_slots = 63;
    command.attr.status_thresh_base = 40;
    command.attr.status_thresh_delta = 20;
    command.attr.status_thresh_count = 3;
    assert!(send(&root, &command).is_ok());
}

#[test]
fn event_queues_are_resized_in_two_steps() {
    let (root, lni) = with_lni(DriverRelease::Shs14_0_1);
    let (old, new) = (md(&root, lni), md(&root, lni));
    let eq = send(&root, &eq_cmd(lni, old)).unwrap().eq;
    let mut resize = EqResizeCmd::new();
    resize.eq_hndl = eq;
    resize.queue = 1 << 20;
    resize.queue_len = 2 * 4096;
    resize.queue_md = new;
    let complete = EqResizeCompleteCmd::of(eq);
    let unmap = |id| send(&root, &AtuUnmapCmd::of(id));
    assert_eq!(send(&root, &complete), Err(Errno::EINVAL));
    send(&root, &resize).unwrap();
    assert_eq!(send(&root, &resize), Err(Errno::EINVAL));
    assert_eq!(
        (unmap(old), unmap(new)),
        (Err(Errno::EBUSY), Err(Errno::EBUSY))
    );
    send(&root, &complete).unwrap();
    assert_eq!((unmap(old), unmap(new)), (Ok(()), Err(Errno::EBUSY)));
    send(&root, &EqFreeCmd::of(eq)).unwrap();
    assert_eq!(unmap(new), Ok(()));
}

#[test]
fn reserved_slots_change_in_both_layouts() {
    let (root, lni) = with_lni(DriverRelease::Main);
    let eq = send(&root, &eq_cmd(lni, md(&root, lni))).unwrap().eq;
    let mut command = EqAdjustReservedFcCmd::of(eq, 63);
    assert_eq!(send(&root, &command).unwrap().reserved_fc, 63);
    command.value = 1;
    assert_eq!(send(&root, &command).unwrap_err(), Errno::ENOSPC);
    command.value = -64;
    assert_eq!(send(&root, &command).unwrap_err(), Errno::EINVAL);
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
fn counter_write_backs_are_aligned() {
    let (root, lni) = with_lni(DriverRelease::Shs14_0_1);
    let mut command = CtAllocCmd::of(lni);
    command.wb = 4;
    assert_eq!(send(&root, &command).unwrap_err(), Errno::EINVAL);
    command.wb = 8;
    let ctn = send(&root, &command).unwrap().ctn;
    let mut update = CtWbUpdateCmd::of(ctn);
    update.wb = 0;
    assert_eq!(send(&root, &update), Err(Errno::EINVAL));
    // Unlike the allocation, this looks at no alignment.
    update.wb = 12;
    assert_eq!(send(&root, &update), Ok(()));
    update.ctn = 99;
    assert_eq!(send(&root, &update), Err(Errno::EINVAL));
}

#[test]
fn mapped_entries_and_domains_are_busy() {
    let (root, one) = with_lni(DriverRelease::Shs14_0_1);
    let two = lni(&root, 2).unwrap();
    let pte = |lni| {
        let mut command = PteAllocCmd::new();
        command.lni_hndl = lni;
        send(&root, &command).unwrap().pte_number
    };
    let (pte, foreign) = (pte(one), pte(two));
    let domain = domain(&root, one, 5, PID_ANY).unwrap().domain;
    let map = |pte_number, domain_hndl, pid_offset| {
        let mut command = PteMapCmd::new();
        command.pte_number = pte_number;
        command.domain_hndl = domain_hndl;
        command.pid_offset = pid_offset;
        send(&root, &command).map(|response| response.pte_index)
    };
    assert_eq!(map(pte, domain, 256), Err(Errno::EINVAL));
    assert_eq!(map(pte, 99, 0), Err(Errno::EINVAL));
    assert_eq!(map(99, domain, 0), Err(Errno::EINVAL));
    assert_eq!(map(foreign, domain, 0), Err(Errno::EINVAL));
    assert_eq!(map(pte, domain, 255), Ok(0));
    assert_eq!(map(pte, domain, 255), Ok(1));
    let free = PteFreeCmd::of(pte);
    let free_domain = DomainFreeCmd::of(domain);
    assert_eq!(send(&root, &free), Err(Errno::EBUSY));
    assert_eq!(send(&root, &free_domain), Err(Errno::EBUSY));
    let mut unmap = PteUnmapCmd::new();
    for index in [0, 1] {
        unmap.pte_index = index;
        assert_eq!(send(&root, &unmap), Ok(()));
        assert_eq!(send(&root, &unmap), Err(Errno::EINVAL));
    }
    assert_eq!(send(&root, &free), Ok(()));
    assert_eq!(send(&root, &free_domain), Ok(()));
    let mut invalidate = PteLeInvalidateCmd::new();
    invalidate.pte_index = pte;
    assert_eq!(send(&root, &invalidate), Err(Errno::EINVAL));
}

#[test]
fn the_status_of_an_entry_tells_its_pool() {
    let nic = nic(DriverRelease::Main);
    let root = root(&nic);
    let mut reserving = desc(&[5]);
    reserving.limits.types[RSRC_LE].res = 40;
    let lni = lni(&root, alloc(&root, reserving).unwrap()).unwrap();
    let mut command = PteAllocCmd::new();
    command.lni_hndl = lni;
    let number = send(&root, &command).unwrap().pte_number;
    // The first entry of an LNI is on the first processing element.
    nic.hardware().set_les_allocated(0, 1, 7).unwrap();
    let (status, offsets) = pte_status(&root, number, 4).unwrap();
    assert_eq!(u32::from(status.state), PTLTE_DISABLED);
    assert_eq!(
        (status.les_reserved, status.les_allocated, status.les_max),
        (40, 7, 100)
    );
    assert_eq!((status.ule_count, offsets), (0, vec![]));
}

#[test]
fn memory_flags_and_updates() {
    let (root, lni) = with_lni(DriverRelease::Shs14_0_1);
    let map = |va, len, flags| {
        let mut command = AtuMapCmd::new();
        command.lni = lni;
        command.va = va;
        command.len = len;
        command.flags = flags;
        send(&root, &command).map(|response| response.md)
    };
    assert_eq!(map(4096, 1, 1 | 1 << 4).unwrap_err(), Errno::EINVAL);
    assert_eq!(map(4096, 1, 1 << 1).unwrap_err(), Errno::EOPNOTSUPP);
    assert_eq!(map(4096, 1, 1 << 9).unwrap_err(), Errno::EOPNOTSUPP);
    assert_eq!(map(1 << 47, 1, 0).unwrap_err(), Errno::EFAULT);
    let unknown = map(4096, 1, 1 << 13).unwrap();
    let md = map(4100, 4096, 12).unwrap();
    assert_ne!(unknown.lac, md.lac);
    assert_eq!((md.va, md.len), (4096, 8192));
    let update = |va, len| {
        let mut command = AtuUpdateMdCmd::new();
        command.id = md.id;
        command.va = va;
        command.len = len;
        command.flags = MapFlags::FAULT.bits();
        send(&root, &command)
    };
    assert_eq!(update(4096, 8192), Ok(()));
    assert_eq!(update(4096, 8193), Err(Errno::EINVAL));
    assert_eq!(update(4096, 0), Ok(()));
    assert_eq!(update(u64::MAX, 2), Err(Errno::EINVAL));
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
    let nic = nic(DriverRelease::Main);
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
fn a_pid_that_another_profile_uses_is_lost_to_those_who_ask_for_any() {
    let nic = nic(DriverRelease::Main);
    let root = root(&nic);
    let (ann, bob) = (Credentials::user(1, 1), Credentials::user(2, 2));
    let (ann, bob) = (root.with_credentials(ann), root.with_credentials(bob));
    let one = alloc(&root, only(desc(&[50]), 1)).unwrap();
    let two = alloc(&root, only(desc(&[50]), 2)).unwrap();
    let (one, two) = (lni(&ann, one).unwrap(), lni(&bob, two).unwrap());
    assert_eq!(domain(&ann, one, 50, PID_ANY).unwrap().pid, 0);
    assert_eq!(domain(&bob, two, 50, PID_ANY).unwrap_err(), Errno::EEXIST);
    assert_eq!(domain(&bob, two, 50, PID_ANY).unwrap().pid, 1);
}

#[test]
fn a_reservation_is_for_the_first_domain_on_a_pid() {
    let (root, lni) = with_lni(DriverRelease::Main);
    let other = common::lni(&root, 2).unwrap();
    send(&root, &DomainReserveCmd::of(lni, 5, 7, 3)).unwrap();
    for pid in [7, 9] {
        send(
            &root,
            &DomainFreeCmd::of(domain(&root, lni, 5, pid).unwrap().domain),
        )
        .unwrap();
        assert_eq!(domain(&root, other, 5, 8).unwrap_err(), Errno::EEXIST);
        assert!(domain(&root, other, 5, pid).is_ok());
        assert_eq!(domain(&root, lni, 5, pid).unwrap_err(), Errno::EEXIST);
    }
    // With the last PID goes what the reservation had of the profile.
    let references = || root.client().nic().state().rx_profiles[2].refcount;
    assert_eq!(references(), 4);
    domain(&root, lni, 5, 8).unwrap();
    assert_eq!(references(), 4);
}

#[test]
fn logical_address_contexts_hold_their_lni() {
    let (root, lni) = with_lni(DriverRelease::Main);
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
    assert_eq!(
        nic.hazards()[0].kind,
        HazardKind::LniReferenceDropped { lni }
    );
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
        events[0]
            .to_string()
            .starts_with("a real shs-14.0.1 kernel may crash here: "),
        "{}",
        events[0]
    );
}
