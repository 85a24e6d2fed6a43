//! DMA commands: their data is in memory.

use cxi_hw::{CommandByte, DmaAtomic, DmaFlags, DmaOp, FullDma, MatchId, NomatchDma, ReturnCode};

use crate::Engine;
use crate::flight::{Fetch, Owner};
use crate::issue::{Common, Local};
use crate::packet::Atomic;
use crate::transmit::{Sender, of_size};

impl Engine {
    /// A DMA command, from a queue or out of a triggered one.
    pub(crate) fn execute_dma(
        &mut self,
        sender: Sender,
        byte: CommandByte,
        bytes: &[u8; DmaAtomic::BYTES],
    ) -> Result<(), ReturnCode> {
        let op = DmaOp(byte.opcode());
        match op {
            DmaOp::NOOP => {
                self.skip(sender);
                Ok(())
            }
            DmaOp::PUT | DmaOp::GET | DmaOp::RENDEZVOUS_PUT => {
                of_size(byte, 2)?;
                let head = std::array::from_fn(|at| bytes[at]);
                let command = FullDma::decode(&head);
                let common = Common {
                    op,
                    dfa: command.dfa,
                    index_ext: command.index_ext,
                    flags: command.flags,
                    initiator: command.initiator,
                    match_bits: command.match_bits,
                    header_data: command.header_data,
                    remote_offset: command.remote_offset,
                    user_ptr: command.user_ptr,
                    ct: command.ct,
                    eq: command.eq,
                    length: command.request_len,
                    eager: command.eager_length,
                    rendezvous_id: command.rendezvous_id,
                    small: false,
                };
                let local = Local::Memory(command.lac, command.local_addr);
                self.issue(sender, &common, None, None, local)
            }
            DmaOp::NOMATCH_PUT | DmaOp::NOMATCH_GET => {
                of_size(byte, 1)?;
                let head = std::array::from_fn(|at| bytes[at]);
                let command = NomatchDma::decode(&head);
                let put = op == DmaOp::NOMATCH_PUT;
                let common = Common {
                    op: if put { DmaOp::PUT } else { DmaOp::GET },
                    dfa: command.dfa,
                    index_ext: command.index_ext,
                    flags: command.flags | DmaFlags::RESTRICTED,
                    initiator: MatchId::default(),
                    match_bits: 0,
                    header_data: 0,
                    remote_offset: command.remote_offset,
                    user_ptr: 0,
                    ct: command.ct,
                    eq: command.eq,
                    length: command.request_len,
                    eager: 0,
                    rendezvous_id: 0,
                    small: false,
                };
                let local = Local::Memory(command.lac, command.local_addr);
                self.issue(sender, &common, None, None, local)
            }
            DmaOp::ATOMIC | DmaOp::FETCHING_ATOMIC => {
                of_size(byte, 4)?;
                self.execute_dma_atomic(sender, op, &DmaAtomic::decode(bytes))
            }
            _ => Err(ReturnCode::ILLEGAL_OP),
        }
    }

    fn execute_dma_atomic(
        &mut self,
        sender: Sender,
        op: DmaOp,
        command: &DmaAtomic,
    ) -> Result<(), ReturnCode> {
        let atomic = Atomic {
            op: command.atomic_op,
            ty: command.atomic_type,
            compare: command.cswap_op,
            operand: [0; 16],
            second: words(command.op2_word1, command.op2_word2),
        };
        let common = Common {
            op,
            dfa: command.dfa,
            index_ext: command.index_ext,
            flags: command.flags,
            initiator: command.initiator,
            match_bits: command.match_bits,
            header_data: command.header_data,
            remote_offset: command.remote_offset,
            user_ptr: command.user_ptr,
            ct: command.ct,
            eq: command.eq,
            length: command.request_len,
            eager: 0,
            rendezvous_id: 0,
            small: false,
        };
        let fetch = (op == DmaOp::FETCHING_ATOMIC).then_some(Fetch {
            lac: command.write_lac,
            iova: command.local_write_addr,
            len: (common.length as usize).min(16),
        });
        let local = Local::Memory(command.lac, command.local_read_addr);
        self.issue(sender, &common, Some(atomic), fetch, local)
    }

    /// A DMA command that does nothing has ended.
    fn skip(&mut self, sender: Sender) {
        if let Owner::Triggered(number, generation) = sender.owner {
            self.end_triggered(number, generation);
        }
    }
}

/// An operand of two words.
pub(crate) fn words(low: u64, high: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}
