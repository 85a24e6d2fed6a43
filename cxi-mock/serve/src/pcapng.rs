//! A capture file in the format pcapng, which Wireshark opens: each NIC is an interface, and each
//! operation a packet whose payload is JSON.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;

use super::capture::nic_name;
use super::error::{Doing, ServeError};
use super::packet::Packet;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
/// Says in which byte order the file is.
const MAGIC: u32 = 0x1a2b_3c4d;
/// `LINKTYPE_WIRESHARK_UPPER_PDU`: tags that say how to read a packet come before its payload.
const TAGGED: u16 = 252;
/// Tags that name a packet's dissector and what Wireshark prints in its columns Source, Destination
/// and Info. Versions before 4.2 do not know the last one, and for the others only IP addresses will do.
const DISSECTOR: u16 = 12;
const SOURCE: u16 = 20;
const DESTINATION: u16 = 21;
const INFO: u16 = 36;
/// The interface of what is said of the capture itself.
const CAPTURE: u32 = 0;

/// A file with packets. Clones write to the same file.
#[derive(Clone, Debug)]
pub(crate) struct Pcapng {
    start: (Instant, SystemTime),
    node: Option<String>,
    blocks: Arc<Mutex<Blocks>>,
}

#[derive(Debug)]
struct Blocks {
    file: File,
    /// Position of the next block, so that the file is complete at any time.
    end: u64,
    /// Their names, by number.
    interfaces: Vec<String>,
}

impl Pcapng {
    /// Makes the file, or empties it.
    pub(crate) fn create(path: &Path) -> Result<Self, ServeError> {
        let file = File::create(path).doing(|| format!("write the capture {}", path.display()))?;
        let mut blocks = Blocks { file, end: 0, interfaces: Vec::new() };
        let mut header = MAGIC.to_le_bytes().to_vec();
        header.extend([1, 0, 0, 0]); // version 1.0
        header.extend([0xff; 8]); // a section of unknown length
        blocks.write(SECTION_HEADER, &header);
        blocks.interface("cxi-mock".to_owned());
        Ok(Self {
            start: (Instant::now(), SystemTime::now()),
            node: None,
            blocks: Arc::new(Mutex::new(blocks)),
        })
    }

    /// The same file, for one node of several.
    pub(crate) fn on_node(&self, name: &str) -> Self {
        Self { node: Some(name.to_owned()), ..self.clone() }
    }

    /// Adds an operation that ended at this time.
    pub(crate) fn operation(&self, at: Instant, packet: &Packet) {
        let mut blocks = self.blocks.lock();
        let interface = blocks.interface(nic_name(self.node.as_deref(), &packet.device));
        let info = packet.to_string();
        let ends = [packet.from.nid, packet.to.endpoint.nid];
        let ends = [SOURCE, DESTINATION].into_iter().zip(ends.map(u32::to_be_bytes));
        let ends: Vec<(u16, [u8; 4])> = ends.collect();
        blocks.packet(interface, self.microseconds(at), packet, &ends, &info);
    }

    /// Adds that operations are missing.
    pub(crate) fn not_seen(&self, at: Instant, count: u64) {
        let info = format!("{count} operations were not seen");
        let payload = json!({ "node": self.node, "not_seen": count });
        let at = self.microseconds(at);
        self.blocks.lock().packet(CAPTURE, at, &payload, &[], &info);
    }

    /// Since 1970.
    fn microseconds(&self, at: Instant) -> u64 {
        let (start, time) = self.start;
        let time = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = time + at.saturating_duration_since(start);
        u64::try_from(time.as_micros()).unwrap_or_default()
    }
}

impl Blocks {
    /// The number of an interface, which is added if it is new.
    fn interface(&mut self, name: String) -> u32 {
        let number = self.interfaces.iter().position(|other| *other == name).unwrap_or_else(|| {
            let mut body = TAGGED.to_le_bytes().to_vec();
            body.extend([0; 6]); // reserved, and no limit of the length
            let length = u16::try_from(name.len()).unwrap_or_default();
            body.extend([2_u16, length].map(u16::to_le_bytes).as_flattened()); // its name
            body.extend(padded(name.as_bytes()));
            body.extend([0; 4]); // the end of the options
            self.write(INTERFACE, &body);
            self.interfaces.push(name);
            self.interfaces.len() - 1
        });
        u32::try_from(number).unwrap_or(CAPTURE)
    }

    /// Adds a packet between two ends, if it has any.
    fn packet(
        &mut self,
        interface: u32,
        at: u64,
        payload: &impl Serialize,
        ends: &[(u16, [u8; 4])],
        info: &str,
    ) {
        let mut data = Vec::new();
        let ends = ends.iter().map(|(tag, nid)| (*tag, &nid[..]));
        let tags = [(DISSECTOR, &b"json"[..])].into_iter().chain(ends);
        for (tag, text) in tags.chain([(INFO, info.as_bytes()), (0, &[])]) {
            let text = padded(text);
            let length = u16::try_from(text.len()).unwrap_or_default();
            data.extend([tag, length].map(u16::to_be_bytes).as_flattened());
            data.extend(text);
        }
        if serde_json::to_writer(&mut data, payload).is_err() {
            return;
        }
        let length = u32::try_from(data.len()).unwrap_or_default();
        #[allow(clippy::cast_possible_truncation, reason = "the time is in two halves")]
        let head = [interface, (at >> 32) as u32, at as u32, length, length];
        let mut body = head.map(u32::to_le_bytes).as_flattened().to_vec();
        body.extend(padded(&data));
        self.write(PACKET, &body);
    }

    /// Adds a block. If the disk is full, some are missing, and the program is not affected.
    fn write(&mut self, kind: u32, body: &[u8]) {
        let length = u32::try_from(body.len() + 12).unwrap_or_default();
        let [kind, length] = [kind, length].map(u32::to_le_bytes);
        let block = [&kind, &length, body, &length].concat();
        if self.file.write_all_at(&block, self.end).is_ok() {
            self.end += block.len() as u64;
        }
    }
}

/// With zeros up to a multiple of four bytes.
fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}
