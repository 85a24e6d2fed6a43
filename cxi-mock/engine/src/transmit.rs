//! Commands of transmit queues.

use cxi_hw::{Class, CommandByte, CqCommand, CqOp, ReturnCode};

use crate::command_queue::{Fetched, Kind};
use crate::flight::Owner;
use crate::{CommunicationProfile, Engine};

/// On whose behalf a command runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    pub(crate) rgid: u16,
    pub(crate) profile: CommunicationProfile,
    pub(crate) owner: Owner,
}

/// Refuses a command that does not have the length of its kind.
pub(crate) fn of_size(byte: CommandByte, slots: usize) -> Result<(), ReturnCode> {
    if byte.slots() == slots {
        Ok(())
    } else {
        Err(ReturnCode::CMD_INVALID_ARG)
    }
}

impl Engine {
    pub(crate) fn execute_transmit(
        &mut self,
        number: u16,
        fetched: &Fetched,
    ) -> Result<(), ReturnCode> {
        let byte = fetched.byte;
        match byte.class() {
            Class::IDC => self.execute_immediate(number, fetched),
            Class::DMA => {
                let lcid = match self.queues.table.get(number).map(|it| &it.kind) {
                    Some(Kind::Transmit { lcid, .. }) => *lcid,
                    _ => return Err(ReturnCode::ILLEGAL_OP),
                };
                let sender = self.sender(number, lcid, false)?;
                self.execute_dma(sender, byte, &fetched.head())
            }
            Class::CT => self.execute_counter(number, fetched),
            _ => self.execute_cq(number, fetched),
        }
    }

    /// Who sends with an LCID of a queue.
    pub(crate) fn sender(
        &self,
        number: u16,
        lcid: u8,
        triggered: bool,
    ) -> Result<Sender, ReturnCode> {
        let queue = self.queues.table.get(number);
        let queue = queue.ok_or(ReturnCode::CMD_INVALID_ARG)?;
        let profile = self.profiles.get(&(queue.rgid, lcid));
        let owner = if triggered {
            Owner::Triggered(number, queue.generation)
        } else {
            Owner::Queue(number, queue.generation)
        };
        Ok(Sender {
            rgid: queue.rgid,
            profile: *profile.ok_or(ReturnCode::CMD_INVALID_ARG)?,
            owner,
        })
    }

    fn execute_cq(&mut self, number: u16, fetched: &Fetched) -> Result<(), ReturnCode> {
        let byte = fetched.byte;
        of_size(byte, 2)?;
        match CqOp(byte.opcode()) {
            // Each command ends before the next one starts.
            CqOp::NOOP | CqOp::FENCE => Ok(()),
            CqOp::LCID => {
                let selected = CqCommand::decode(&fetched.head()).lcid;
                let queue = self.queues.table.get_mut(number);
                let queue = queue.ok_or(ReturnCode::CMD_INVALID_ARG)?;
                if !self.profiles.contains_key(&(queue.rgid, selected)) {
                    return Err(ReturnCode::CMD_INVALID_ARG);
                }
                if let Kind::Transmit {
                    lcid, triggered, ..
                } = &mut queue.kind
                {
                    if *triggered && selected != 0 {
                        return Err(ReturnCode::CMD_INVALID_ARG);
                    }
                    *lcid = selected;
                }
                Ok(())
            }
            _ => Err(ReturnCode::ILLEGAL_OP),
        }
    }
}
