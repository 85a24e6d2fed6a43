//! Report of `ctl state`.

use cxi_hw::List;
use cxi_mock::{EntrySnapshot, PortalSnapshot, UnexpectedSnapshot};
use serde_json::{Value, json};

use super::node::Node;
use super::server::Windows;

/// Number of entries of a list that are shown, because lists may have thousands.
const SHOWN: usize = 64;

impl Node {
    /// All NICs, with what is in use on them.
    pub(crate) fn state(&self) -> Result<Value, String> {
        let nics = self
            .server()
            .physical()
            .map(|function| {
                let nic = &function.nic;
                let state = serde_json::to_value(nic.state()).map_err(|error| error.to_string())?;
                let hazards: Vec<_> = nic.hazards().iter().map(ToString::to_string).collect();
                let windows = match &*function.windows.lock() {
                    Windows::Unknown => "not opened yet".to_owned(),
                    Windows::Mappable => "mappable".to_owned(),
                    Windows::Refused(why) => format!("not mappable: {why}"),
                };
                Ok(json!({
                    "device": function.device_name(),
                    "pci_address": function.address.to_string(),
                    "release": nic.release().name(),
                    "plugged": !nic.faults().is_unplugged(),
                    "link_up": nic.hardware().is_link_up(),
                    "windows": windows,
                    "hazards": hazards,
                    "state": state,
                    "portals": nic.portals().iter().map(portal).collect::<Value>(),
                }))
            })
            .collect::<Result<Vec<_>, String>>()?;
        Ok(json!({ "nics": nics }))
    }
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
