//! Observation of a served node's data path: packets as they end, a capture, events in the trace,
//! and the lists of PtlTEs.

use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cxi_test_kit::Directory;
use cxi_tests::node::{self, OPEN, client, cxi_mock, need_node, printed, run, script};
use serde_json::{Value, json};

/// Operation, length, list and result of each packet, by their last field.
fn ends(packets: &[Value]) -> Vec<Value> {
    let end = |packet: &Value| {
        json!([
            packet["match_bits"],
            packet["moved"],
            packet["length"],
            packet["list"],
            packet["result"],
        ])
    };
    packets.iter().map(end).collect()
}

fn expected() -> Vec<Value> {
    vec![
        json!(["0x5", 100, 100, "PRIORITY", "OK"]),
        json!(["0x100000000", 24, 24, "OVERFLOW", "OK"]),
        json!(["0x0", 0, 0, null, "PTLTE_NOT_FOUND"]),
    ]
}

#[test]
fn a_capture_has_every_operation_and_the_trace_every_event() {
    need_node!(node::windows());
    let directory = Directory::new();
    let (capture, trace) = (directory.join("capture"), directory.join("trace"));
    let options = ["--capture", &capture, "--trace", &trace, OPEN[0], OPEN[1]];
    let program = ["--", client(), "packets", "cxi0"];
    printed(&run(&[&options[..], &program].concat()));
    let packets = node::json_lines(&capture);
    assert_eq!(ends(&packets), expected(), "{packets:#?}");
    let first = &packets[0];
    assert_eq!((&first["device"], &first["operation"]), (&json!("cxi0"), &json!("PUT")));
    assert_eq!(first["vni"], 10);
    assert_ne!(first["from"]["pid"], first["to"]["pid"]);
    let processes = ["from", "to"].map(|end| first[end]["process"].as_str().expect("known"));
    assert_eq!(processes[0], processes[1], "one process has both PIDs");
    assert!(client().contains(processes[0].split(' ').next().expect("its name")), "{processes:?}");
    let took = first["microseconds"].as_f64().expect("known");
    assert!(took > 0.0 && took < 1e7, "{took}");
    assert_eq!(packets[2]["to"]["portal_index"], 7);
    let order: Vec<f64> = packets.iter().filter_map(|it| it["seconds"].as_f64()).collect();
    assert!(order.len() == 3 && order.is_sorted(), "{order:?}");

    let lines = node::json_lines(&trace);
    assert!(lines.iter().any(|line| line["command"] == "CQ_ALLOC"));
    let events: Vec<&Value> = lines.iter().filter(|line| line["event"].is_string()).collect();
    let kinds: Vec<&str> = events.iter().filter_map(|it| it["event"].as_str()).collect();
    assert_eq!(kinds, ["STATE_CHANGE", "LINK", "LINK", "PUT", "PUT", "ACK"]);
    assert_eq!((&events[0]["state"], &events[0]["result"]), (&json!("ENABLED"), &json!("OK")));
    assert_eq!((&events[3]["buffer_id"], &events[3]["length"]), (&json!(21), &json!(100)));
    assert_eq!(events[4]["list"], "OVERFLOW");
    assert_eq!(events[5]["user_pointer"], "0xfeed");
    assert_eq!(events[5]["result"], "PTLTE_NOT_FOUND");
}

/// Perfetto's rules for the format: bars that do not overlap on a track, names for all tracks, and
/// arrows whose ends are inside bars.
#[test]
fn a_capture_as_a_timeline_has_bars_on_named_tracks_and_arrows() {
    need_node!(node::windows());
    let directory = Directory::new();
    let capture = directory.join("capture.json");
    let program = ["--", client(), "packets", "cxi0"];
    printed(&run(&[&["--capture", &capture, OPEN[0], OPEN[1]], &program[..]].concat()));
    let text = std::fs::read_to_string(&capture).expect("text");
    let events: Vec<Value> = serde_json::from_str(&text).expect("a list");
    let of_kind = |kind: &'static str| events.iter().filter(move |event| event["ph"] == kind);
    let number = |event: &Value, field: &str| event[field].as_f64().expect("a number");
    let names = |what: &str| -> Vec<(&Value, &Value)> {
        let named = of_kind("M").filter(|event| event["name"] == what);
        named.map(|event| (&event["pid"], &event["tid"])).collect()
    };

    let bars: Vec<&Value> = of_kind("X").collect();
    let sent: Vec<&Value> =
        bars.iter().filter_map(|bar| bar["args"].as_object().map(|_| &bar["args"])).collect();
    let sent: Vec<Value> = sent.into_iter().cloned().collect();
    assert_eq!(ends(&sent), expected(), "{text}");
    let titles: Vec<&str> = bars.iter().filter_map(|bar| bar["name"].as_str()).collect();
    assert!(titles.contains(&"PUT 100 bytes"), "{titles:?}");
    assert!(titles.contains(&"PUT 0 bytes: PTLTE_NOT_FOUND"), "{titles:?}");
    let (nics, tracks) = (names("process_name"), names("thread_name"));
    let mut until = std::collections::HashMap::new();
    for bar in &bars {
        let (start, took) = (number(bar, "ts"), number(bar, "dur"));
        assert!(start >= 0.0 && took > 0.0, "{bar}");
        for field in ["ts", "dur"] {
            let text = bar[field].to_string();
            let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            assert!(decimals <= 3, "{field} has digits of the binary number: {bar}");
        }
        assert!(nics.iter().any(|nic| *nic.0 == bar["pid"]), "{bar}");
        assert!(tracks.contains(&(&bar["pid"], &bar["tid"])), "{bar}");
        // Perfetto takes the process instead of a larger number.
        assert!(bar["tid"].as_u64().is_some_and(|tid| u32::try_from(tid).is_ok()), "{bar}");
        let until = until.entry(bar["tid"].as_u64()).or_insert(0.0);
        assert!(start >= *until, "{bar} begins before {until}");
        *until = start + took;
    }
    let surrounded = |end: &Value| {
        bars.iter().any(|bar| {
            let since = number(end, "ts") - number(bar, "ts");
            bar["tid"] == end["tid"] && (0.0..=number(bar, "dur")).contains(&since)
        })
    };
    let arrows: Vec<[&Value; 2]> = of_kind("s")
        .map(|from| {
            let to = of_kind("f").find(|to| to["id"] == from["id"]);
            [from, to.expect("it arrives")]
        })
        .collect();
    assert_eq!((arrows.len(), of_kind("f").count()), (2, 2), "{text}");
    for [from, to] in arrows {
        assert!(surrounded(from) && surrounded(to), "{from} {to}");
        assert_ne!(from["tid"], to["tid"]);
        assert!(number(from, "ts") < number(to, "ts"), "{from} {to}");
        assert_eq!((&to["bp"], &from["cat"]), (&json!("e"), &to["cat"]));
    }
    // The guide's picture.
    if cxi_test_kit::has("jq") {
        let draw = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/mpi/timeline.jq");
        let mut jq = Command::new("jq");
        jq.args(["-r", "--argjson", "last", "40", "-f", draw, &capture]);
        let picture = printed(&jq.output().expect("jq runs"));
        let count = |part: &str| picture.matches(part).count();
        let drawn = (count("<title>"), count("class=\"arrow\""));
        assert_eq!(drawn, (bars.len(), 2), "{picture}");
    }
}

/// The format's rules: each block ends with its length, and a packet names an interface before it.
#[test]
fn a_capture_as_pcapng_has_a_packet_for_every_operation() {
    need_node!(node::windows());
    let directory = Directory::new();
    let capture = directory.join("capture.pcapng");
    let options = ["--capture", &capture, OPEN[0], OPEN[1]];
    let program = ["--", client(), "packets", "cxi0"];
    printed(&run(&[&options[..], &program].concat()));
    let file = std::fs::read(&capture).expect("a file");
    let mut blocks = Vec::new();
    let mut rest = &file[..];
    while !rest.is_empty() {
        let length = word(&rest[4..]) as usize;
        let (block, after) = rest.split_at(length);
        assert_eq!((length % 4, word(&block[length - 4..]) as usize), (0, length));
        blocks.push((word(block), &block[8..length - 4]));
        rest = after;
    }
    let kinds: Vec<_> = blocks.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [0x0a0d_0d0a, 1, 1, 6, 6, 6]);
    assert_eq!(word(blocks[0].1), 0x1a2b_3c4d);
    // Each interface has packets of type 252, and its name as the first option.
    assert_eq!(blocks[2].1, b"\xfc\0\0\0\0\0\0\0\x02\0\x04\0cxi0\0\0\0\0");
    let mut packets = Vec::new();
    let mut before = 0;
    for (_, packet) in &blocks[3..] {
        assert_eq!((word(packet), word(&packet[12..])), (1, word(&packet[16..])));
        let at = u64::from(word(&packet[4..])) << 32 | u64::from(word(&packet[8..]));
        let age = SystemTime::now().duration_since(UNIX_EPOCH + Duration::from_micros(at));
        assert!(at >= before && age.expect("it is over") < Duration::from_secs(600));
        before = at;
        let tagged = &packet[20..][..word(&packet[12..]) as usize];
        let tagged = tagged.strip_prefix(b"\0\x0c\0\x04json").expect("its dissector");
        // From and to the NIC with the address 0x100.
        let ends = b"\0\x14\0\x04\0\0\x01\0\0\x15\0\x04\0\0\x01\0\0\x24";
        let tagged = tagged.strip_prefix(ends).expect("its ends");
        let (info, payload) = tagged[2..].split_at(usize::from(tagged[1]));
        assert!(info.starts_with(b"cxi0 VNI 10 PUT "), "{info:?}");
        let payload = payload.strip_prefix(&[0; 4]).expect("the last tag");
        packets.push(serde_json::from_slice::<Value>(payload).expect("JSON"));
    }
    assert_eq!(ends(&packets), expected(), "{packets:#?}");
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(*bytes.first_chunk().expect("four bytes"))
}

#[test]
fn the_state_shows_the_lists_of_portals() {
    need_node!(node::windows());
    let directory = Directory::new();
    let dir = directory.join("node");
    let client = [client(), "packets", "cxi0", cxi_mock(), "ctl", "state"];
    let answer = printed(&run(&[&OPEN[..], &["--dir", &dir, "--"], &client].concat()));
    let state: Value = serde_json::from_str(&answer).expect("the state is JSON");
    let portals = state["nics"][0]["portals"].as_array().expect("a list");
    let enabled = |portal: &&Value| portal["state"] == "ENABLED";
    let portal = portals.iter().find(enabled).expect("one is enabled");
    let lists: Vec<_> = portal["lists"]
        .as_array()
        .expect("lists")
        .iter()
        .map(|list| json!([list["list"], list["length"], list["first"][0]["buffer_id"]]))
        .collect();
    assert_eq!(
        lists,
        [json!(["PRIORITY", 1, 21]), json!(["OVERFLOW", 1, 22]), json!(["REQUEST", 0, null]),]
    );
    let overflow = &portal["lists"][1]["first"][0];
    assert_eq!(overflow["flags"], json!(["MANAGE_LOCAL", "OP_PUT"]));
    assert_eq!((&overflow["offset"], &overflow["length"]), (&json!(24), &json!(4096)));
    let unexpected = &portal["unexpected"];
    assert_eq!(unexpected["length"], 1);
    assert_eq!(unexpected["first"][0]["match_bits"], "0x100000000");
}

#[test]
fn packets_are_shown_as_they_end() {
    need_node!(node::windows());
    let directory = Directory::new();
    let dir = directory.join("node");
    // There is traffic as long as packets are shown.
    let shown = |options: &str| {
        let file = directory.join("packets");
        let show = format!(
            "\"$SERVER\" ctl packets {options} > {file} & looks=$!
             while kill -0 $looks 2> /dev/null; do \"$CLIENT\" packets cxi0 > /dev/null; done
             wait $looks"
        );
        script(&["--dir", &dir, OPEN[0], OPEN[1]], &show);
        file
    };
    let packets = node::json_lines(&shown("--count 30 --json"));
    assert_eq!(packets.len(), 30);
    let ends = ends(&packets);
    let expected = expected();
    // It may have begun in the middle of an exchange.
    let start = expected.iter().position(|end| *end == ends[0]).expect("known");
    for (at, end) in ends.iter().enumerate() {
        assert_eq!(*end, expected[(start + at) % 3], "{at}");
    }
    let text = std::fs::read_to_string(shown("--count 3")).expect("text");
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.contains(" cxi0 VNI 10 PUT "), "{text}");
    assert!(text.contains("match 0x5, 100 of 100 bytes: OK"), "{text}");
}
