//! PtlTEs and their lists as `ctl state` shows them.

use cxi_hw::List;
use serde_json::{Value, json};

use cxi_mock::{EntrySnapshot, Nic, PortalSnapshot, UnexpectedSnapshot};

/// Entries of a list that are shown: lists may have thousands.
const SHOWN: usize = 64;

/// All PtlTEs of a NIC.
pub(crate) fn describe(nic: &Nic) -> Value {
    nic.portals().iter().map(portal).collect()
}

fn portal(portal: &PortalSnapshot) -> Value {
    let named = [List::PRIORITY, List::OVERFLOW, List::REQUEST].iter();
    let lists = named.zip(&portal.lists).map(|(name, entries)| {
        json!({
            "list": name.to_string(),
            "length": entries.len(),
            "first": entries.iter().take(SHOWN).map(entry).collect::<Vec<_>>(),
        })
    });
    let unexpected = portal.unexpected.iter();
    json!({
        "portal": portal.number,
        "rgid": portal.rgid,
        "state": portal.state.to_string(),
        "drop_count": portal.drop_count,
        "lists": lists.collect::<Vec<_>>(),
        "unexpected": {
            "length": portal.unexpected.len(),
            "first": unexpected.take(SHOWN).map(message).collect::<Vec<_>>(),
        },
    })
}

fn entry(entry: &EntrySnapshot) -> Value {
    let flags = entry.flags.iter_names().map(|(name, _)| name);
    json!({
        "buffer_id": entry.buffer_id,
        "match_bits": format!("{:#x}", entry.match_bits),
        "ignore_bits": format!("{:#x}", entry.ignore_bits),
        "match_id": format!("{:#x}", entry.match_id.0),
        "start": format!("{:#x}", entry.start),
        "length": entry.length,
        "offset": entry.offset,
        "flags": flags.collect::<Vec<_>>(),
    })
}

fn message(message: &UnexpectedSnapshot) -> Value {
    json!({
        "operation": message.op.to_string(),
        "initiator": format!("{:#x}", message.initiator.0),
        "vni": message.vni,
        "match_bits": format!("{:#x}", message.match_bits),
        "length": message.length,
        "kept": message.kept,
        "start": format!("{:#x}", message.start),
    })
}
