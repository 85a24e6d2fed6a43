//! Asks the kernel whether it copies pinned pages at a fork.

use rustix::net::netlink::RDMA;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

const HEADER: usize = 16;
/// `RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET)`.
const SYS_GET: u16 = 5 << 10 | 6;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK`.
const COPY_ON_FORK: u16 = 93;
/// The bits of an attribute's type field that contain the type itself.
const TYPE: u16 = 0x3FFF;

/// Asks the kernel. Any failure counts as no.
pub(crate) fn copy_on_fork() -> bool {
    ask().unwrap_or(false)
}

fn ask() -> Option<bool> {
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(RDMA))
            .ok()?;
    let mut request = [0; HEADER];
    request[..4].copy_from_slice(&(HEADER as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&SYS_GET.to_ne_bytes());
    request[6..8].copy_from_slice(&REQUEST.to_ne_bytes());
    send(&socket, &request, SendFlags::empty()).ok()?;
    let mut answer = [0; 4096];
    // The kernel has queued its response when `send` returns.
    let (len, _) = recv(&socket, &mut answer, RecvFlags::DONTWAIT).ok()?;
    parse(answer.get(..len)?)
}

/// The attribute in a response, if it is there.
fn parse(answer: &[u8]) -> Option<bool> {
    let half = |bytes: &[u8]| bytes.first_chunk().map(|half| u16::from_ne_bytes(*half));
    if half(answer.get(4..)?)? != SYS_GET {
        return None;
    }
    let mut attributes = answer.get(HEADER..)?;
    loop {
        let len = usize::from(half(attributes)?);
        let kind = half(attributes.get(2..)?)? & TYPE;
        let value = attributes.get(4..len)?;
        if kind == COPY_ON_FORK {
            return value.first().map(|flag| *flag != 0);
        }
        attributes = attributes.get(len.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: u16, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        for (kind, value) in attributes {
            let len = u16::try_from(4 + value.len()).unwrap();
            bytes.extend(len.to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(*value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn the_attribute_is_found_behind_others() {
        let behind = |flag| answer(SYS_GET, &[(66, &[1, 2, 3, 4]), (67, &[9]), (93, &[flag])]);
        assert_eq!(parse(&behind(1)), Some(true));
        assert_eq!(parse(&behind(0)), Some(false));
    }

    #[test]
    fn anything_else_is_no_answer() {
        assert_eq!(parse(&answer(SYS_GET, &[(66, &[1])])), None);
        assert_eq!(parse(&answer(2, &[(93, &[1])])), None);
        assert_eq!(parse(&answer(SYS_GET, &[(93, &[])])), None);
        let whole = answer(SYS_GET, &[(66, &[1, 2, 3, 4]), (93, &[1])]);
        for len in 0..whole.len() - 3 {
            assert_eq!(parse(&whole[..len]), None, "{len}");
        }
        // An attribute of length 0 would make this loop endless.
        let mut endless = answer(SYS_GET, &[(66, &[1])]);
        endless[HEADER] = 0;
        assert_eq!(parse(&endless), None);
    }
}
