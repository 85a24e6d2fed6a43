//! The counters of a NIC, by the names of their files in sysfs.

use cxi_hw::{DmaOp, EventType, ReturnCode, StateReason};

use crate::Telemetry;

impl Telemetry {
    /// Returns the value of a counter of a NIC, by the name of its file in sysfs; `None` for those
    /// that the engine does not count.
    ///
    /// ```
    /// let telemetry = cxi_engine::Telemetry::default();
    /// assert_eq!(telemetry.counter("lpe_net_match_priority_3"), Some(0));
    /// assert_eq!(telemetry.counter("hni_pcs_good_cw"), None);
    /// ```
    #[must_use]
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.of_commands(name)
            .or_else(|| self.of_requests(name))
            .or_else(|| self.of_lists(name))
            .or_else(|| self.of_errors(name))
            .or_else(|| self.of_number(name))
            .or_else(|| Some(self.events[event_of(name)?.0]))
    }

    /// Counters of the commands that this NIC executed.
    fn of_commands(&self, name: &str) -> Option<u64> {
        let (transmit, target) = (&self.transmit, &self.target);
        let ok = ReturnCode::OK.0;
        Some(match name {
            "cq_success_tx_cntr" => transmit[ok],
            "cq_success_tgt_cntr" => target[ok],
            "cq_fail_tx_cntr" => transmit.total() - transmit[ok],
            "cq_fail_tgt_cntr" => target.total() - target[ok],
            "cq_num_tx_cmd_align_errors" => transmit[ReturnCode::CMD_ALIGN_ERROR.0],
            "cq_num_tx_cmd_arg_errors" => transmit[ReturnCode::CMD_INVALID_ARG.0],
            "cq_num_tx_cmd_op_errors" => transmit[ReturnCode::ILLEGAL_OP.0],
            "cq_num_tgt_cmd_arg_errors" => target[ReturnCode::CMD_INVALID_ARG.0],
            "tou_cq_tou_num_cmds" => self.counter_commands.total(),
            "tou_num_doorbell_writes" => self.doorbells,
            "oxe_num_hrp_cmds" => self.high_rate_commands,
            "oxe_err_no_translation" => self.sources_refused[ReturnCode::NO_TRANSLATION.0],
            "oxe_err_page_perm" => self.sources_refused[ReturnCode::PAGE_PERM_ERROR.0],
            "hni_hrp_ack" => self.high_rate_acks,
            "pct_spt_timeouts" => self.timeouts,
            "pct_retry_srb_requests" => self.retries,
            _ => return None,
        })
    }

    /// Counters of requests from the fabric, before any list is searched.
    fn of_requests(&self, name: &str) -> Option<u64> {
        let atomics = [DmaOp::ATOMIC, DmaOp::FETCHING_ATOMIC];
        let puts = [DmaOp::PUT, DmaOp::RENDEZVOUS_PUT];
        let found = |ops: &[DmaOp]| ops.iter().map(|op| self.commands[op.0]).sum();
        let accepted = |ops: &[DmaOp]| ops.iter().map(|op| self.accepted[op.0]).sum();
        let plain = |of: u64| of - self.restricted_packets - self.small_messages;
        Some(match name {
            "ixe_rx_ptl_restricted_pkt" => self.restricted_packets,
            "ixe_rx_ptl_smallmsg_pkt" => self.small_messages,
            "ixe_rx_ptl_unrestricted_pkt" => plain(self.requests),
            "ixe_dmawr_flush_reqs" => self.flush_requests,
            "ixe_dmawr_amo_invalid_op" => self.refusals[ReturnCode::AMO_INVAL_OP_ERROR.0],
            "ixe_dmawr_amo_misaligned" => self.refusals[ReturnCode::AMO_ALIGN_ERROR.0],
            "pct_trs_hit_on_req" => self.repetitions,
            "rmu_ptl_success_cntr" => self.commands.total(),
            "rmu_ptl_invld_vni_cntr" => self.refusals[ReturnCode::VNI_NOT_FOUND.0],
            "rmu_ptl_no_ptlte_cntr" => self.refusals[ReturnCode::PTLTE_NOT_FOUND.0],
            "ixe_disp_lpe_puts" => found(&puts),
            "ixe_disp_lpe_amos" => found(&atomics),
            "ixe_disp_lpe_puts_ok" => accepted(&puts),
            "ixe_disp_lpe_gets_ok" => accepted(&[DmaOp::GET]),
            "ixe_disp_lpe_amos_ok" => accepted(&atomics),
            "lpe_put_cmds" => found(&[DmaOp::PUT]),
            "lpe_rendezvous_put_cmds" => found(&[DmaOp::RENDEZVOUS_PUT]),
            "ixe_disp_lpe_gets" | "lpe_get_cmds" => found(&[DmaOp::GET]),
            "lpe_amo_cmds" => found(&[DmaOp::ATOMIC]),
            "lpe_famo_cmds" => found(&[DmaOp::FETCHING_ATOMIC]),
            _ => return None,
        })
    }

    /// Counters of operations on lists.
    fn of_lists(&self, name: &str) -> Option<u64> {
        Some(match name {
            "lpe_plec_hits" => self.fast_path_hits,
            "lpe_unlink_cmds" => self.unlinks.total(),
            "lpe_unlink_success" => self.unlinks.succeeded,
            "lpe_search_cmds" => self.searches.total(),
            "lpe_search_success" => self.searches.succeeded,
            "lpe_search_fail" => self.searches.failed,
            "lpe_search_delete_cmds" => self.deletions.total(),
            "lpe_search_delete_success" => self.deletions.succeeded,
            "lpe_search_delete_fail" => self.deletions.failed,
            _ => return None,
        })
    }

    /// Counters of what a list could not do.
    fn of_errors(&self, name: &str) -> Option<u64> {
        let disabled = |reason: StateReason| self.state_changes[reason.0];
        Some(match name.strip_prefix("lpe_err_")? {
            "entry_not_found_eq_full" => self.queue_full,
            "entry_not_found_no_match_in_overflow" => self.no_match,
            "entry_not_found_unlink_failed" => self.unlinks.failed,
            "pt_disabled_eq_full" => disabled(StateReason::FC_EQ_FULL),
            "pt_disabled_no_match_in_overflow" => disabled(StateReason::FC_NO_MATCH),
            "pt_disabled_cant_alloc_unexpected" => disabled(StateReason::FC_UNEXPECTED_FAIL),
            "pt_disabled_req_empty" => disabled(StateReason::FC_REQUEST_FULL),
            "no_space_append" => self.appends[ReturnCode::NO_SPACE.0],
            "no_space_net" => self.refusals[ReturnCode::NO_SPACE.0],
            "ptlte_sw_managed" => self.appends[ReturnCode::PTLTE_SW_MANAGED.0],
            "op_violation" => self.refusals[ReturnCode::OP_VIOLATION.0],
            "setstate_no_match" => self.elements.iter().map(|it| it.states.failed).sum(),
            _ => return None,
        })
    }

    /// Counters that exist once for each operation, pool or processing element.
    fn of_number(&self, name: &str) -> Option<u64> {
        let (name, number) = name.rsplit_once('_')?;
        let number: u8 = number.parse().ok()?;
        match name {
            "cq_dma_cmd_counts" => return Some(self.dma_commands[number]),
            "cq_cq_cmd_counts" => return Some(self.queue_commands[number]),
            "tou_ct_cmd_counts" => return Some(self.counter_commands[number]),
            "cq_sts_tle_in_use" => {
                let used = self.triggered_in_use.get(usize::from(number))?;
                return Some((*used).into());
            }
            _ => {}
        }
        let element = self.elements.get(usize::from(number))?;
        let entries = element.entries;
        Some(match name.strip_prefix("lpe_")? {
            "append_cmds" => element.appends.total(),
            "append_success" => element.appends.succeeded,
            "setstate_cmds" => element.states.total(),
            "setstate_success" => element.states.succeeded,
            "net_match_requests" => element.requests,
            "net_match_success" => element.matched.total(),
            "net_match_priority" => element.matched[0],
            "net_match_overflow" => element.matched[1],
            "net_match_request" => element.matched[2],
            "net_match_local" => element.managed,
            "net_match_useonce" => element.used_once,
            "num_truncated" => element.truncated,
            "rndzv_puts" => element.rendezvous,
            "rndzv_puts_offloaded" => element.offloaded,
            "unexpected_get_amo" => element.unexpected_others,
            "cfg_pe_le_shared_num_total" => entries.total.into(),
            "cfg_pe_le_shared_num_total_allocated" => entries.allocated.into(),
            "cfg_pe_le_shared_num_shared" => entries.shared.into(),
            "cfg_pe_le_shared_num_shared_allocated" => entries.shared_allocated.into(),
            _ => return None,
        })
    }
}

/// The type of the events that a counter counts, either of all events or of those from lists.
fn event_of(counter: &str) -> Option<EventType> {
    let name = match counter.strip_prefix("ee_event_") {
        Some(name) => name.strip_suffix("_cntr")?,
        None => match counter.strip_prefix("lpe_event_")? {
            "statechange" => "state_change",
            name => name,
        },
    };
    let named =
        |kind: &EventType| kind.name().is_some_and(|known| known.eq_ignore_ascii_case(name));
    (0..32).map(EventType).find(named)
}
