//! Masking what a recording reveals about a site.

use std::collections::BTreeMap;
use std::mem::offset_of;

use super::recording::{Exchange, Recording};
use crate::Opcode;
use crate::abi::device::DevInfoUse;
use crate::abi::service::{SvcAllocCmd, SvcDesc, SvcMember, SvcSetNetnsCmd};

/// Offset of the service in SVC_ALLOC and SVC_UPDATE.
const IN_COMMAND: usize = offset_of!(SvcAllocCmd, svc_desc);
/// Argument of a SVC_SET_NETNS that must not succeed; it names no namespace.
const NO_ID: u32 = u32::MAX;
/// Ids of users, groups and namespaces become numbers from here on, so that they stand out.
const FIRST: u32 = 900_001;

impl Recording {
    /// Replaces what identifies a site: the fabric address and the name of each NIC by zeros; ids of
    /// users, groups and network namespaces by others, the same id always by the same. Root's 0
    /// stays. Everything else is as it was, so that the recording can be replayed.
    #[must_use]
    pub fn masked(mut self) -> Self {
        let mut ids = BTreeMap::new();
        for exchange in &mut self.exchanges {
            let opcode = exchange.opcode();
            let Exchange::Command { command, response, list, .. } = exchange else { continue };
            match opcode {
                // The address of the NIC is the first field of both.
                Some(Opcode::DEV_INFO_GET) => {
                    zero(response, 0, size_of::<u32>());
                    let name = offset_of!(DevInfoUse, fru_description);
                    zero(response, name, size_of::<[u8; 16]>());
                }
                Some(Opcode::GET_DEV_PROPERTIES) => zero(response, 0, size_of::<u32>()),
                Some(Opcode::SVC_GET) => members(response, &mut ids),
                Some(Opcode::SVC_LIST_GET) => {
                    for service in list.chunks_mut(size_of::<SvcDesc>()) {
                        members(service, &mut ids);
                    }
                }
                Some(Opcode::SVC_ALLOC | Opcode::SVC_ALLOC_PARENT | Opcode::SVC_UPDATE) => {
                    members(command.get_mut(IN_COMMAND..).unwrap_or_default(), &mut ids);
                }
                Some(Opcode::SVC_SET_NETNS) => {
                    id(command, offset_of!(SvcSetNetnsCmd, netns), &mut ids);
                }
                Some(Opcode::SVC_GET_NETNS) => id(response, 0, &mut ids),
                _ => {}
            }
        }
        self
    }
}

fn zero(bytes: &mut [u8], at: usize, len: usize) {
    for byte in bytes.iter_mut().skip(at).take(len) {
        *byte = 0;
    }
}

fn members(service: &mut [u8], ids: &mut BTreeMap<u32, u32>) {
    let first = offset_of!(SvcDesc, members);
    for slot in 0..crate::abi::service::SVC_MAX_MEMBERS {
        id(service, first + slot * size_of::<SvcMember>(), ids);
    }
}

fn id(bytes: &mut [u8], at: usize, ids: &mut BTreeMap<u32, u32>) {
    let field = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut);
    let Some(field) = field else { return };
    let number = u32::from_ne_bytes(*field);
    if number != 0 && number != NO_ID {
        let next = FIRST + u32::try_from(ids.len()).unwrap_or_default();
        let other = *ids.entry(number).or_insert(next);
        *field = other.to_ne_bytes();
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::{FromZeros, IntoBytes};

    use super::*;
    use crate::abi::device::DevInfoGetCmd;
    use crate::abi::service::{SvcGetCmd, SvcListGetCmd};

    fn service(uids: [u32; 2]) -> SvcDesc {
        SvcDesc {
            svc_id: 7,
            vnis: [1024, 0, 0, 0],
            members: uids.map(|id| SvcMember { id, kind: 1 }),
            ..SvcDesc::new_zeroed()
        }
    }

    fn exchange(command: &[u8], response: &[u8], list: &[u8]) -> Exchange {
        Exchange::Command {
            command: command.to_vec(),
            result: Ok(()),
            response: response.to_vec(),
            list: list.to_vec(),
        }
    }

    #[test]
    fn ids_are_replaced_alike_and_nothing_else_is() {
        let list = [service([1000, 2000]), service([2000, 0])];
        let create = SvcAllocCmd::of(service([3000, 1000]));
        let info = DevInfoUse {
            nid: 0x1234,
            pid_bits: 9,
            fru_description: *b"a name of a card",
            ..DevInfoUse::new_zeroed()
        };
        let recording = Recording {
            exchanges: vec![
                exchange(SvcListGetCmd::new().as_bytes(), &[], list.as_bytes()),
                exchange(SvcGetCmd::of(7).as_bytes(), list[0].as_bytes(), &[]),
                exchange(create.as_bytes(), &[], &[]),
                exchange(DevInfoGetCmd::new().as_bytes(), info.as_bytes(), &[]),
                exchange(SvcSetNetnsCmd::of(7, u32::MAX).as_bytes(), &[], &[]),
            ],
        };
        let [a, b, c] = [FIRST, FIRST + 1, FIRST + 2];
        let masked = [service([a, b]), service([b, 0])];
        let expected = Recording {
            exchanges: vec![
                exchange(SvcListGetCmd::new().as_bytes(), &[], masked.as_bytes()),
                exchange(SvcGetCmd::of(7).as_bytes(), masked[0].as_bytes(), &[]),
                exchange(SvcAllocCmd::of(service([c, a])).as_bytes(), &[], &[]),
                exchange(
                    DevInfoGetCmd::new().as_bytes(),
                    DevInfoUse { pid_bits: 9, ..DevInfoUse::new_zeroed() }.as_bytes(),
                    &[],
                ),
                exchange(SvcSetNetnsCmd::of(7, u32::MAX).as_bytes(), &[], &[]),
            ],
        };
        assert_eq!(recording.masked(), expected);
    }
}
