//! Effect of traffic on each counter.

use cxi::lni::LeList;
use cxi_data::{
    Append, Atomic, AtomicOp, Buffer, Dma, Message, Nomatch, Search, SetState, TargetFlags, Unlink,
};

use crate::scene::{LEN, Scene};

/// All counters of a NIC.
const COUNTERS: &str = include_str!("../../../../cxi-mock/serve/src/sysfs/telemetry.txt");

/// The counters that something moves, without those of events and of commands by their operation.
fn moved(scene: &mut Scene, act: impl FnOnce(&mut Scene)) -> Vec<(&'static str, u64)> {
    scene.settle();
    let before = scene.nic().telemetry();
    act(scene);
    scene.settle();
    let after = scene.nic().telemetry();
    let of_interest = |name: &&str| !name.contains("_cmd_counts_") && !name.contains("_event_");
    COUNTERS
        .lines()
        .filter(of_interest)
        .filter_map(|name| {
            let difference = after.counter(name)? - before.counter(name)?;
            (difference > 0).then_some((name, difference))
        })
        .collect()
}

#[test]
fn of_puts_gets_and_atomics() {
    let (mut scene, _exposed, to) = Scene::open();
    let local = Buffer::new(&scene.one.lni, LEN).unwrap();
    let found = moved(&mut scene, |scene| {
        let transmit = &mut scene.one.transmit;
        transmit.post(&Dma::put(local.whole(), to).flush()).unwrap();
        transmit.post(&Dma::get(local.whole(), to)).unwrap();
        transmit.post(&Nomatch::put(local.whole(), to)).unwrap();
        // Its state is a command, too.
        transmit.post(&Atomic::new(AtomicOp::SUM, 1_u64, to)).unwrap();
    });
    assert_eq!(
        found,
        [
            ("cq_success_tx_cntr", 5),
            ("ixe_disp_lpe_amos", 1),
            ("ixe_disp_lpe_amos_ok", 1),
            ("ixe_disp_lpe_gets", 1),
            ("ixe_disp_lpe_gets_ok", 1),
            ("ixe_disp_lpe_puts", 2),
            ("ixe_disp_lpe_puts_ok", 2),
            ("ixe_dmawr_flush_reqs", 1),
            ("ixe_rx_ptl_restricted_pkt", 1),
            ("ixe_rx_ptl_unrestricted_pkt", 3),
            ("lpe_amo_cmds", 1),
            ("lpe_get_cmds", 1),
            ("lpe_net_match_priority_2", 4),
            ("lpe_net_match_requests_2", 4),
            ("lpe_net_match_success_2", 4),
            ("lpe_put_cmds", 2),
            ("rmu_ptl_success_cntr", 4),
        ]
    );
}

#[test]
fn of_unexpected_messages_searches_and_unlinks() {
    let mut scene = Scene::new();
    let buffer = Buffer::new(&scene.two.lni, LEN).unwrap();
    let found = moved(&mut scene, |scene| {
        let (two, transmit) = (&mut scene.two, &mut scene.one.transmit);
        two.target.post(&SetState::disable(&two.pte)).unwrap();
        let refused = SetState::enable(&two.pte).if_dropped(5);
        two.target.post(&refused).unwrap();
        two.target.post(&SetState::enable(&two.pte)).unwrap();
        let overflow = Append::new(&two.pte, LeList::Overflow, buffer.whole());
        let overflow = overflow.ignore(u64::MAX).managed(64).buffer_id(3);
        let overflow = overflow.flags(TargetFlags::OP_PUT);
        two.target.post(&overflow).unwrap();
        for tag in 1..=3 {
            let message = Message::new(&[1; 8], two.address.portal(0));
            transmit.post(&message.match_bits(tag)).unwrap();
        }
        scene.run();
        let two = &mut scene.two;
        let search = |tag| Search::new(&two.pte, 9).match_bits(tag).first();
        two.target.post(&search(1)).unwrap();
        two.target.post(&search(2).delete()).unwrap();
        two.target.post(&search(2).delete()).unwrap();
        two.target.post(&search(2)).unwrap();
        let once = TargetFlags::OP_PUT | TargetFlags::USE_ONCE;
        let claims = Append::new(&two.pte, LeList::Priority, buffer.whole());
        let claims = claims.flags(once).match_bits(1);
        two.target.post(&claims).unwrap();
        for _ in 0..2 {
            let unlink = Unlink::new(&two.pte, LeList::Overflow, 3);
            two.target.post(&unlink).unwrap();
        }
    });
    assert_eq!(
        found,
        [
            ("cq_success_tgt_cntr", 11),
            ("cq_success_tx_cntr", 4),
            ("ixe_disp_lpe_puts", 3),
            ("ixe_disp_lpe_puts_ok", 3),
            ("ixe_rx_ptl_smallmsg_pkt", 3),
            ("lpe_append_cmds_2", 2),
            ("lpe_append_success_2", 2),
            // The third message has not been claimed.
            ("lpe_cfg_pe_le_shared_num_shared_allocated_2", 1),
            ("lpe_cfg_pe_le_shared_num_total_allocated_2", 1),
            ("lpe_err_entry_not_found_unlink_failed", 1),
            ("lpe_err_setstate_no_match", 1),
            ("lpe_net_match_local_2", 3),
            ("lpe_net_match_overflow_2", 3),
            ("lpe_net_match_requests_2", 3),
            ("lpe_net_match_success_2", 3),
            ("lpe_put_cmds", 3),
            ("lpe_search_cmds", 2),
            ("lpe_search_delete_cmds", 2),
            ("lpe_search_delete_fail", 1),
            ("lpe_search_delete_success", 1),
            ("lpe_search_fail", 1),
            ("lpe_search_success", 1),
            ("lpe_setstate_cmds_2", 3),
            ("lpe_setstate_success_2", 2),
            ("lpe_unlink_cmds", 2),
            ("lpe_unlink_success", 1),
            ("rmu_ptl_success_cntr", 3),
        ]
    );
}

#[test]
fn of_what_fails() {
    let (mut scene, _exposed, to) = Scene::open();
    let local = Buffer::new(&scene.one.lni, LEN).unwrap();
    let found = moved(&mut scene, |scene| {
        let nowhere = scene.two.address.portal(9);
        let transmit = &mut scene.one.transmit;
        let put = |to| Dma::put(local.whole(), to);
        transmit.post(&put(nowhere)).unwrap();
        // Beyond the entry's end, with other match bits, and misaligned.
        transmit.post(&put(to).offset(1)).unwrap();
        transmit.post(&put(to).match_bits(77)).unwrap();
        let sum = Atomic::new(AtomicOp::SUM, 1_u64, to);
        transmit.post(&sum.offset(3)).unwrap();
        let of_float = Atomic::new(AtomicOp::BOR, 1_f64, to);
        transmit.post(&of_float).unwrap();
    });
    assert_eq!(
        found,
        [
            ("cq_success_tx_cntr", 6),
            ("ixe_disp_lpe_amos", 2),
            ("ixe_disp_lpe_puts", 2),
            ("ixe_dmawr_amo_invalid_op", 1),
            ("ixe_dmawr_amo_misaligned", 1),
            ("ixe_rx_ptl_unrestricted_pkt", 5),
            ("lpe_amo_cmds", 2),
            ("lpe_err_entry_not_found_no_match_in_overflow", 1),
            ("lpe_err_op_violation", 1),
            ("lpe_net_match_requests_2", 4),
            ("lpe_put_cmds", 2),
            ("rmu_ptl_no_ptlte_cntr", 1),
            ("rmu_ptl_success_cntr", 4),
        ]
    );
}
