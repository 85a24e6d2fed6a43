//! Every field of every layout lies where the hardware has it.

use std::collections::{BTreeMap, BTreeSet};

use cxi_hw::{
    AtomicOp, AtomicType, CState, Class, CommandByte, CommandFailure, CompareOp, CounterDoorbell,
    CqCommand, CqOp, CqStatus, CtCommand, CtOp, CtWriteback, DmaAtomic, DmaFlags, DmaOp, EqState,
    EqStatus, EqSwitch, EventSize, EventType, FabricAddress, FullDma, IdcAtomic, IdcHeader,
    IdcMessage, InitiatorLong, InitiatorShort, Layout, List, MatchId, NomatchDma, PtlteState,
    RendezvousMatchBits, RendezvousUserPtr, ReturnCode, SetState, SmallAtomic, StateChange,
    StateReason, TargetCommand, TargetFlags, TargetLong, TargetOp, TargetShort, Timestamp,
    TriggeredLong, TriggeredShort, command_ring, event_ring, launch_page,
};
use serde_json::Value;

/// Name, first bit, bits.
type Field = (String, usize, usize);

/// Recorded from the header of the hardware: layouts and enumerations.
fn recorded() -> Value {
    serde_json::from_str(include_str!("layouts.json")).unwrap()
}

fn recorded_fields(layout: &Value) -> Vec<Field> {
    let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    let fields = layout["fields"].as_array().unwrap().iter();
    fields
        .map(|field| {
            let name = field[0].as_str().unwrap();
            let name = name.strip_prefix("idc_header.").unwrap_or(name);
            (name.to_owned(), number(&field[1]), number(&field[2]))
        })
        .collect()
}

/// Returns the fields inside a field that has its own type.
fn inside(field: &str, layout: &str) -> Vec<(String, usize, usize)> {
    let fields = |fields: &[(&str, usize, usize)]| {
        let fields = fields.iter();
        fields.map(|(name, bit, width)| ((*name).to_owned(), *bit, *width)).collect()
    };
    match field {
        "command" | "fail_command" if layout != "c_cq_status" => {
            let parts = [("cmd_type", 0, 2), ("cmd_size", 2, 2), ("opcode", 4, 4)];
            parts.map(|(name, bit, width)| (format!("{field}.{name}"), bit, width)).into()
        }
        "dfa" => fields(&[
            ("dfa.multicast.action", 0, 3),
            ("dfa.multicast.multicast_id", 3, 13),
            ("dfa.multicast.reduction_id", 18, 3),
            ("dfa.multicast.format", 23, 9),
            ("dfa.unicast.endpoint_defined", 0, 12),
            ("dfa.unicast.nid", 12, 20),
            ("dfa.anon.action", 0, 3),
            ("dfa.anon.fa_format", 23, 9),
        ]),
        "initiator" if layout == "c_event_target_long" => fields(&[
            ("initiator.initiator.process", 0, 32),
            ("initiator.state_change.ptlte_state", 0, 3),
            ("initiator.state_change.sc_reason", 8, 4),
            ("initiator.state_change.sc_nic_auto", 16, 1),
        ]),
        "flags" if layout == "c_target_cmd" => flags(
            &TargetFlags::all()
                .iter_names()
                .map(|(name, flag)| (name, flag.bits()))
                .collect::<Vec<_>>(),
        ),
        "flags" => flags(
            &DmaFlags::all()
                .iter_names()
                .map(|(name, flag)| (name, flag.bits()))
                .collect::<Vec<_>>(),
        ),
        _ => Vec::new(),
    }
}

fn flags(names: &[(&str, u16)]) -> Vec<Field> {
    let names = names.iter();
    names.map(|(name, bits)| (name.to_lowercase(), bits.trailing_zeros() as usize, 1)).collect()
}

/// The fields of a layout with those inside a field in its place.
fn flat(layout: &Layout) -> BTreeSet<Field> {
    let mut flat = BTreeSet::new();
    for field in layout.fields {
        let inside = inside(field.name, layout.name);
        if inside.is_empty() {
            flat.insert((field.name.to_owned(), field.bit, field.width));
        }
        flat.extend(inside.into_iter().map(|(name, bit, width)| (name, field.bit + bit, width)));
    }
    flat
}

/// Layout, and what becomes of bytes that are decoded and encoded.
type Case = (Layout, Box<dyn Fn(&[u8]) -> Vec<u8>>);

macro_rules! cases {
    ($($name:ident)*) => {
        vec![$((
            $name::LAYOUT,
            Box::new(|bytes: &[u8]| $name::decode(bytes.try_into().unwrap()).encode().to_vec())
                as Box<dyn Fn(&[u8]) -> Vec<u8>>,
        )),*]
    };
}

fn cases() -> Vec<Case> {
    cases!(
        CState IdcHeader IdcMessage IdcAtomic SmallAtomic NomatchDma FullDma DmaAtomic CtCommand
        CqCommand TargetCommand SetState InitiatorShort InitiatorLong TriggeredShort TriggeredLong
        CommandFailure TargetShort TargetLong Timestamp EqSwitch EqStatus EqState CqStatus
        CtWriteback RendezvousMatchBits RendezvousUserPtr
    )
}

#[test]
fn every_recorded_field_is_in_its_place() {
    let recorded = recorded();
    let mut layouts: BTreeSet<_> =
        recorded["layouts"].as_object().unwrap().keys().cloned().collect();
    for (layout, _) in cases() {
        let theirs = &recorded["layouts"][layout.name];
        let fields: BTreeSet<_> = recorded_fields(theirs).into_iter().collect();
        assert_eq!(flat(&layout), fields, "{}", layout.name);
        assert_eq!(Some(layout.bytes as u64), theirs["bytes"].as_u64(), "{}", layout.name);
        assert!(layouts.remove(layout.name), "{}", layout.name);
    }
    // These are types, which the next tests hold to their places.
    for name in ["c_cmd", "c_fab_addr", "c_state_chg_fields"] {
        assert!(layouts.remove(name), "{name}");
    }
    assert_eq!(layouts, BTreeSet::new(), "recorded, but not here");
}

#[test]
fn what_is_decoded_encodes_to_the_same_bits() {
    for (layout, round) in cases() {
        let mut all = vec![0_u8; layout.bytes];
        for field in layout.fields {
            let mut bytes = vec![0_u8; layout.bytes];
            for bit in field.bit..field.bit + field.width {
                bytes[bit / 8] |= 1 << (bit % 8);
                all[bit / 8] |= 1 << (bit % 8);
            }
            assert_eq!(round(&bytes), bytes, "{}.{}", layout.name, field.name);
        }
        // Bits of no field are not kept.
        assert_eq!(round(&vec![0xff; layout.bytes]), all, "{}", layout.name);
    }
}

#[test]
fn the_first_byte_of_a_command() {
    for byte in 0..=u8::MAX {
        let command = CommandByte(byte);
        assert_eq!(command.class().0, byte & 3);
        assert_eq!(command.bytes(), 32 << ((byte >> 2) & 3));
        assert_eq!(command.opcode(), byte >> 4);
        let again = CommandByte::new(command.class(), (byte >> 2) & 3, command.opcode());
        assert_eq!(again, command);
    }
}

#[test]
fn addresses_and_match_ids() {
    let (address, ext) = FabricAddress::unicast(0x12345, 0x1ab, 0xe5, 9);
    assert_eq!(address.0, 0x12345 << 12 | (0xe5 >> 5) << 9 | 0x1ab);
    assert_eq!(ext, 0x05);
    assert_eq!((address.nid(), address.pid(9), address.index(ext, 9)), (0x12345, 0x1ab, 0xe5));
    assert!(!address.is_multicast());
    assert!(FabricAddress(0x1ff << 23 | 7).is_multicast());
    let id = MatchId::new(0x1ab, 0x12345, 9);
    assert_eq!((id.0, id.pid(9), id.id(9)), (0x1ab << 23 | 0x12345, 0x1ab, 0x12345));
}

#[test]
fn a_state_change_stands_in_place_of_the_initiator() {
    let change = StateChange { state: PtlteState(7), reason: StateReason(15), by_nic: true };
    assert_eq!(change.encode(), 0x0001_0f07);
    assert_eq!(StateChange::decode(u32::MAX), change);
}

#[test]
fn enumerations_have_their_numbers() {
    let recorded = recorded();
    let ours = [
        ("return_code", ReturnCode::NAMES),
        ("event_type", EventType::NAMES),
        ("sc_reason", StateReason::NAMES),
        ("atomic_op", AtomicOp::NAMES),
        ("cswap_op", CompareOp::NAMES),
        ("atomic_type", AtomicType::NAMES),
        ("ptl_list", List::NAMES),
        ("ptlte_state", PtlteState::NAMES),
        ("dma_op", DmaOp::NAMES),
        ("ct_op", CtOp::NAMES),
        ("cq_op", CqOp::NAMES),
        ("tgt_op", TargetOp::NAMES),
        ("cmd_type", Class::NAMES),
    ];
    for (name, numbers) in ours {
        let theirs = recorded["enums"][name].as_object().unwrap();
        let theirs: BTreeMap<_, _> =
            theirs.iter().map(|(name, number)| (name.as_str(), number.as_u64().unwrap())).collect();
        let numbers: BTreeMap<_, _> =
            numbers.iter().map(|(name, number)| (*name, u64::from(*number))).collect();
        assert_eq!(numbers, theirs, "{name}");
    }
    for (_, size) in EventSize::NAMES {
        assert_eq!(EventSize(*size).bytes(), [0, 16, 32, 64][usize::from(*size)]);
    }
    assert_eq!(format!("{:?} {}", ReturnCode::NO_MATCH, ReturnCode(63)), "NO_MATCH ReturnCode(63)");
}

#[test]
fn rings_and_pages() {
    let recorded = &recorded()["rings"];
    let number = |value: &Value| value.as_u64().unwrap();
    let numbers =
        |value: &Value| -> Vec<_> { value.as_array().unwrap().iter().map(number).collect() };
    assert_eq!(u64::from(command_ring::FIRST_SLOT), number(&recorded["first_slot"]));
    assert_eq!(u64::from(command_ring::FIRST_UNIT), number(&recorded["first_unit"]));
    for (slot, by_class) in (0..).zip(recorded["padding"].as_array().unwrap()) {
        let padding: [u64; 4] = [1, 2, 4, 8].map(|slots| command_ring::padding(slot, slots).into());
        assert_eq!(numbers(by_class), padding, "{slot}");
    }
    let windows = [
        launch_page::WINDOW_64,
        launch_page::WINDOW_128_ALIGNED,
        launch_page::WINDOW_128_UNALIGNED,
    ];
    assert_eq!(numbers(&recorded["windows"]), windows.map(|window| window as u64));
    assert_eq!(launch_page::window_offset(9), 256);
    assert_eq!(launch_page::window_offset(32 + 9), 256);
    let doorbells = recorded["doorbells"].as_object().unwrap();
    assert_eq!(doorbells.len(), CounterDoorbell::ALL.len());
    for (offset, what) in doorbells {
        let doorbell = CounterDoorbell::at(offset.parse().unwrap()).unwrap();
        let expected = match doorbell {
            CounterDoorbell::AddSuccess | CounterDoorbell::AddFailure => "add value",
            CounterDoorbell::ResetSuccess => "success = 0",
            CounterDoorbell::ResetFailure => "failure = 0",
        };
        assert_eq!(what, expected);
    }
    let events = [
        event_ring::BLOCK_BYTES,
        u64::from(event_ring::FIRST_BLOCK) * event_ring::BLOCK_BYTES,
        event_ring::RESERVED_BLOCKS.into(),
    ];
    assert_eq!(numbers(&recorded["event_ring"]), events);
}
