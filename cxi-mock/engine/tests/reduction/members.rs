//! Receivers of messages to a tree.

use cxi_engine::{Fabric, MulticastTree};
use cxi_hw::ReturnCode;
use cxi_hw::reduction::{ReductionPacket, Sequence};

use crate::network::{TREE, member, received, send};
use crate::rig::{self, Rig, VNI};
use crate::{contribution, order};

const ROOT: u32 = 0x10;

/// A root and leaves on a tree.
fn tree(leaves: u32) -> (Fabric, Vec<Rig>) {
    let fabric = Fabric::new();
    let nics = (ROOT..=ROOT + leaves).map(|nid| member(&fabric, nid));
    let nics = nics.collect();
    let tree = MulticastTree::new(ROOT, ROOT..=ROOT + leaves);
    fabric.set_tree(TREE, &tree.timeout(10).ports(2));
    (fabric, nics)
}

/// Counts and first words of what has come.
fn sums(nic: &mut Rig) -> Vec<(u32, u64)> {
    let packets = received(nic).into_iter();
    packets.map(|(_, it)| (it.count, it.payload[0])).collect()
}

#[test]
fn a_root_reaches_all_and_leaves_the_root() {
    let (fabric, mut nics) = tree(5);
    send(&mut nics[0], 3, &order(Sequence::new(1)));
    for leaf in &mut nics[1..] {
        let [(3, packet)] = received(leaf)[..] else { panic!("one packet of reduction 3") };
        assert_eq!(packet.sequence, Sequence::new(1));
    }
    assert!(received(&mut nics[0]).is_empty());
    for (index, leaf) in (1..).zip(&mut nics[1..]) {
        send(leaf, 3, &contribution(index, 1, 10));
    }
    // Three switches above leaves, two above those, one below the root: one packet comes out.
    assert_eq!(sums(&mut nics[0]), [(5, 50)]);
    assert!(nics[1..].iter_mut().all(|leaf| received(leaf).is_empty()));
    assert!(fabric.is_idle());
}

#[test]
fn what_is_held_back_goes_on_when_its_time_is_over() {
    let (fabric, mut nics) = tree(2);
    send(&mut nics[0], 0, &order(Sequence::new(1)));
    send(&mut nics[1], 0, &contribution(1, 1, 10));
    assert!(sums(&mut nics[0]).is_empty());
    assert!(fabric.needs_time() && !fabric.is_idle());
    for _ in 0..10 {
        fabric.tick();
    }
    assert_eq!(sums(&mut nics[0]), [(1, 10)]);
    assert!(!fabric.needs_time());
    received(&mut nics[1]);
    received(&mut nics[2]);
    assert!(fabric.is_idle());
}

#[test]
fn what_engines_cannot_read_passes() {
    let (_, mut nics) = tree(2);
    send(&mut nics[0], 0, &order(Sequence::new(1)));
    let odd = ReductionPacket { op: 0x30, ..contribution(1, 1, 10) };
    send(&mut nics[1], 0, &odd);
    assert_eq!(sums(&mut nics[0]), [(1, 10)]);
}

/// A multicast address is behind the VNIs of a domain, as portal indices are.
#[test]
fn another_vni_is_out_of_reach() {
    let (_, mut nics) = tree(3);
    nics[2].engine.remove_receive_profile(1);
    nics[2].engine.add_receive_profile(1, VNI + 1..=VNI + 1);
    nics[3].engine.unmap_multicast(1, TREE.into());
    // The same tree with a portal index is another address.
    nics[3].engine.map_multicast(1, 1 << 13 | u32::from(TREE), rig::PORTAL);
    send(&mut nics[0], 0, &order(Sequence::new(1)));
    let reached: Vec<_> = nics.iter_mut().map(|nic| received(nic).len()).collect();
    assert_eq!(reached, [0, 1, 0, 0]);
    let refused = |nic: usize, code: ReturnCode| nics[nic].engine.telemetry().refusals[code.0];
    assert_eq!(refused(2, ReturnCode::VNI_NOT_FOUND), 1);
    assert_eq!(refused(3, ReturnCode::PTLTE_NOT_FOUND), 1);
}

#[test]
fn strangers_and_trees_that_are_gone_get_nothing() {
    let (fabric, mut nics) = tree(2);
    let mut stranger = member(&fabric, 0x99);
    send(&mut stranger, 0, &order(Sequence::new(1)));
    send(&mut stranger, 0, &contribution(1, 1, 1));
    assert!(nics.iter_mut().all(|nic| received(nic).is_empty()));
    send(&mut nics[0], 0, &order(Sequence::new(1)));
    assert!(received(&mut stranger).is_empty());
    send(&mut nics[1], 0, &contribution(1, 1, 1));
    fabric.remove_tree(TREE);
    assert!(!fabric.needs_time());
    send(&mut nics[2], 0, &contribution(2, 1, 1));
    assert!(received(&mut nics[0]).is_empty());
}

#[test]
fn links_and_partitions_count() {
    let (fabric, mut nics) = tree(3);
    fabric.set_link(ROOT + 1, false);
    fabric.partition([ROOT], [ROOT + 2]);
    send(&mut nics[0], 0, &order(Sequence::new(1)));
    let reached: Vec<_> = nics.iter_mut().map(|nic| received(nic).len()).collect();
    assert_eq!(reached, [0, 0, 0, 1]);
    for (index, leaf) in (1..).zip(&mut nics[1..]) {
        send(leaf, 0, &contribution(index, 1, 1 << index));
    }
    for _ in 0..10 {
        fabric.tick();
    }
    assert_eq!(sums(&mut nics[0]), [(1, 8)]);
}
