//! The directories of open files and their wait objects.

use super::place::ClientPlace;
use super::server::Function;

/// What a directory below `clients` lists.
pub(crate) fn entries(function: &Function, directory: ClientPlace) -> Vec<(String, ClientPlace)> {
    let nic = &function.nic;
    match directory {
        ClientPlace::All => nic
            .clients_of(function.vf)
            .into_iter()
            .map(|client| (client.to_string(), ClientPlace::Client(client)))
            .collect(),
        ClientPlace::Client(client) => vec![("wait".to_owned(), ClientPlace::Waits(client))],
        ClientPlace::Waits(client) => nic
            .waits_of(function.vf, client)
            .unwrap_or_default()
            .into_iter()
            .map(|wait| (wait.to_string(), ClientPlace::Wait(client, wait)))
            .collect(),
        ClientPlace::Wait(client, wait) => {
            vec![("intr".to_owned(), ClientPlace::Interrupt(client, wait))]
        }
        ClientPlace::Interrupt(..) => Vec::new(),
    }
}

/// Whether the open file or wait object is there.
pub(crate) fn exists(function: &Function, place: ClientPlace) -> bool {
    let waits = |client| function.nic.waits_of(function.vf, client);
    match place {
        ClientPlace::All => !function.nic.faults().is_removed(),
        ClientPlace::Client(client) | ClientPlace::Waits(client) => waits(client).is_some(),
        ClientPlace::Wait(client, wait) | ClientPlace::Interrupt(client, wait) => {
            waits(client).is_some_and(|waits| waits.contains(&wait))
        }
    }
}
