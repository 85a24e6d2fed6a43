//! SEARCH and SEARCH_AND_DELETE: looking for unexpected messages.

use cxi_hw::{EventType, List, ReturnCode, TargetCommand, TargetFlags, TargetLong};

use crate::portal::{self, Key};
use crate::{Engine, PortalOptions};

impl Engine {
    /// Reports unexpected messages, oldest first, and takes them off the list if they are to be
    /// deleted. The last event is a SEARCH that found nothing, unless one message was wanted and
    /// found.
    pub(crate) fn search(&mut self, command: &TargetCommand, delete: bool) {
        let number = command.ptlte_index;
        let once = command.flags.contains(TargetFlags::USE_ONCE);
        let mut from = 0;
        loop {
            let Some(portal) = self.portals.table.get_mut(number) else {
                return;
            };
            let options = portal.config.options;
            let key = Key::new(command, options, self.settings.pid_bits);
            let matching = options.contains(PortalOptions::IS_MATCHING);
            let Some(place) = key.find_unexpected(&portal.unexpected, from, matching) else {
                break;
            };
            from = place + 1;
            if delete {
                let pool = portal.config.pool;
                if let Some(header) = portal.unexpected.remove(place) {
                    self.pools.give(pool, 1);
                    let found = (List::UNEXPECTED, command.buffer_id);
                    self.post_overflow(number, &header, found, false);
                }
            } else if let Some(header) = portal.unexpected.get(place).cloned() {
                let found = (EventType::SEARCH, List::UNEXPECTED, command.buffer_id);
                self.post_header(number, &header, found, false);
            }
            if once {
                break;
            }
        }
        let found = from > 0;
        let counts = if delete {
            &mut self.telemetry.deletions
        } else {
            &mut self.telemetry.searches
        };
        counts.add(found);
        if once && found {
            return;
        }
        let Some(portal) = self.portals.table.get(number) else {
            return;
        };
        let event = TargetLong {
            buffer_id: command.buffer_id,
            return_code: ReturnCode::NO_MATCH,
            ..portal::event(EventType::SEARCH, number, List::UNEXPECTED)
        };
        self.signals.post(portal.config.eq, &event.encode());
    }
}
