//! Packet headers, which precede the data in the buffers of request lists.

use cxi_hw::{DmaFlags, DmaOp, FabricAddress, List};

use crate::Settings;
use crate::packet::Request;

/// Bytes of the header that all packets have.
const FABRIC: u32 = 20;
/// Bytes of the second header of an unrestricted request.
const UNRESTRICTED: u32 = 43;
const SMALL_MESSAGE: u32 = 29;
const RESTRICTED: u32 = 11;
/// Bytes of the longest pair of headers.
const LONGEST: usize = (FABRIC + UNRESTRICTED) as usize;
/// Offset of the second header.
const PORTALS: usize = FABRIC as usize;

/// Bytes of headers in front of the data of a request.
pub(crate) fn len(list: List, request: &Request) -> u32 {
    if list != List::REQUEST {
        return 0;
    }
    let header = match (request.is_restricted(), request.small) {
        (true, _) => RESTRICTED,
        (false, true) => SMALL_MESSAGE,
        (false, false) => UNRESTRICTED,
    };
    FABRIC + header
}

/// Encodes the headers. Numbers of several bytes are big-endian.
pub(crate) fn encode(request: &Request, from: u32, settings: &Settings) -> [u8; LONGEST] {
    let mut bytes = [0; LONGEST];
    let index = u32::from(request.index);
    let (to, index_ext) =
        FabricAddress::unicast(settings.nid, request.pid.into(), index, settings.pid_bits);
    // Version 4, and a length of five words, as in an IPv4 header.
    bytes[0] = 0x45;
    put(&mut bytes, 4, &request.vni.to_be_bytes());
    put(&mut bytes, 12, &(from << 12).to_be_bytes());
    put(&mut bytes, 16, &to.0.to_be_bytes());
    let kind = match (request.is_restricted(), request.small) {
        (true, _) => 4,
        (false, true) => 1,
        (false, false) => 0,
    };
    let opcode =
        if request.op == DmaOp::PUT && request.small { DmaOp::SMALL_MESSAGE } else { request.op };
    bytes[PORTALS] = opcode.0 | kind << 4 | 1 << 7;
    bytes[PORTALS + 1] = index_ext | u8::from(request.flags.contains(DmaFlags::FLUSH)) << 7;
    let length = request.length.to_be_bytes();
    if kind == 1 {
        put(&mut bytes, PORTALS + 2, &request.header_data.to_be_bytes());
        put(&mut bytes, PORTALS + 16, &request.initiator.0.to_be_bytes());
        put(&mut bytes, PORTALS + 20, &request.match_bits.to_be_bytes());
        bytes[PORTALS + 14] = length[2] & 15;
        bytes[PORTALS + 15] = length[3];
        return bytes;
    }
    let [_, offset @ ..] = request.remote_offset.to_be_bytes();
    put(&mut bytes, PORTALS + 2, &offset);
    if kind == 4 {
        bytes[PORTALS + 9] = length[2] & 15;
        bytes[PORTALS + 10] = length[3];
        return bytes;
    }
    let id = request.rendezvous_id;
    bytes[PORTALS + 14] = id >> 4;
    bytes[PORTALS + 15] =
        u8::from(request.flags.contains(DmaFlags::USE_OFFSET_FOR_GET)) << 2 | id << 4;
    put(&mut bytes, PORTALS + 16, &length);
    put(&mut bytes, PORTALS + 20, &request.initiator.0.to_be_bytes());
    put(&mut bytes, PORTALS + 24, &request.match_bits.to_be_bytes());
    put(&mut bytes, PORTALS + 32, &request.header_data.to_be_bytes());
    let eager = if request.op == DmaOp::RENDEZVOUS_PUT { request.eager } else { 0 };
    let [_, high, middle, low] = (eager << 4).to_be_bytes();
    put(&mut bytes, PORTALS + 40, &[high, middle, low]);
    bytes
}

fn put(bytes: &mut [u8; LONGEST], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}
