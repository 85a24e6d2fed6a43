//! Scenario fields to request bytes and response bytes to fields, against bytes laid out by hand.
#![forbid(unsafe_code)]

use cxi_ioctl::DriverRelease;
use cxi_tests::{decode, encode};
use serde_json::{Map, Value, json};

fn cmd(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// A service descriptor with something in every field.
fn descriptor() -> (Value, [u8; 68]) {
    let fields = json!({
        "restricted_members": true,
        "restricted_tcs": true,
        "is_system_svc": true,
        "cntr_pool_id": 2,
        "num_vld_vnis": 2,
        "vnis": [0x1234, 7],
        "tcs": [false, true, false, false, true],
        "members": [{"type": "GID", "gid": 70_000}, {"type": -2, "uid": 5}],
        "limits": {"ptes": {"max": 3, "res": 1}, "acs": {"max": 0x0102, "res": 4}},
        "svc_id": 77
    });
    let mut bytes = [0; 68];
    bytes[0] = 0b1010_0101;
    bytes[1] = 2;
    put(&mut bytes, 2, &[0x34, 0x12, 7, 0]);
    bytes[11] = 1;
    bytes[14] = 1;
    put(&mut bytes, 16, &70_000_u32.to_le_bytes());
    put(&mut bytes, 20, &2_u32.to_le_bytes());
    put(&mut bytes, 24, &5_u32.to_le_bytes());
    put(&mut bytes, 28, &[0xFE, 0xFF, 0xFF, 0xFF]);
    put(&mut bytes, 32, &[3, 0, 1, 0]);
    put(&mut bytes, 60, &[2, 1, 4, 0]);
    put(&mut bytes, 64, &77_u32.to_le_bytes());
    (fields, bytes)
}

#[test]
fn service_request() {
    let (fields, descriptor) = descriptor();
    let bytes = encode::request(
        "SVC_ALLOC",
        &cmd(json!({"svc_desc": fields})),
        DriverRelease::Main,
    );
    let mut expected = vec![0; 88];
    expected[0] = 28;
    put(&mut expected, 16, &descriptor);
    assert_eq!(bytes.unwrap(), expected);
}

#[test]
fn service_response() {
    let (_, descriptor) = descriptor();
    let response = decode::response("SVC_GET", &descriptor, &[], DriverRelease::Main).unwrap();
    let service = &response["svc_desc"];
    assert_eq!(service["restricted_members"], true);
    assert_eq!(service["restricted_vnis"], false);
    assert_eq!(service["enable"], false);
    assert_eq!(service["cntr_pool_id"], 2);
    assert_eq!(service["vnis"], json!([0x1234, 7, 0, 0]));
    assert_eq!(service["tcs"], json!([0, 1, 0, 0, 1]));
    assert_eq!(service["members"][0]["type"], "GID");
    assert_eq!(service["members"][0]["gid"], 70_000);
    assert_eq!(service["members"][1]["type"], -2);
    assert_eq!(service["limits"]["acs"], json!({"max": 0x0102, "res": 4}));
    assert_eq!(service["limits"]["les"], json!({"max": 0, "res": 0}));
    assert_eq!(service["svc_id"], 77);
}

#[test]
fn shapes_follow_the_release() {
    let fields = cmd(json!({"svc_id": 3}));
    let old = encode::request("LNI_ALLOC", &fields, DriverRelease::Shs14_0_1).unwrap();
    assert_eq!(old, [1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let new = encode::request("LNI_ALLOC", &fields, DriverRelease::Main).unwrap();
    assert_eq!((new.len(), new[4], new[16]), (24, 0, 3));
    let fields = cmd(json!({"eq_hndl": 4, "value": -2}));
    let old = encode::request("EQ_ADJUST_RESERVED_FC", &fields, DriverRelease::Shs12_0).unwrap();
    assert_eq!(old[4..12], [4, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF]);
    let new = encode::request("EQ_ADJUST_RESERVED_FC", &fields, DriverRelease::Main).unwrap();
    assert_eq!(new[16..24], [4, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF]);
    for (release, length) in [(DriverRelease::Shs13_0, 80), (DriverRelease::Shs13_1, 84)] {
        let bytes = vec![0; length];
        assert!(decode::response("GET_DEV_PROPERTIES", &bytes, &[], release).is_ok());
        let longer = vec![0; length + 1];
        assert!(decode::response("GET_DEV_PROPERTIES", &longer, &[], release).is_err());
    }
}

#[test]
fn nested_and_signed_fields() {
    let fields = cmd(json!({"lni": 1, "opts": {"count": 64, "flags": 2, "lcid": 3}}));
    let bytes = encode::request("CQ_ALLOC", &fields, DriverRelease::Main).unwrap();
    assert_eq!((bytes[16], bytes[24], bytes[36], bytes[40]), (1, 64, 2, 3));
    let fields = cmd(json!({"opts": {"policy": -1}}));
    let bytes = encode::request("CQ_ALLOC", &fields, DriverRelease::Main).unwrap();
    assert_eq!(bytes[28..32], [0xFF; 4]);
    let fields = cmd(json!({"lni_hndl": 1, "opts": {"is_matching": 1, "ethernet": true}}));
    let bytes = encode::request("PTE_ALLOC", &fields, DriverRelease::Main).unwrap();
    assert_eq!(bytes[24..26], [1 << 7, 1 << 3]);
    let response = decode::response(
        "EQ_ADJUST_RESERVED_FC",
        &[0xFF; 4],
        &[],
        DriverRelease::Main,
    );
    assert_eq!(response.unwrap(), json!({"reserved_fc": -1}));
}

#[test]
fn lists_are_entries() {
    let mut list = [0; 48];
    put(&mut list, 0, &1_u32.to_le_bytes());
    put(&mut list, 24, &2_u32.to_le_bytes());
    put(&mut list, 46, &[0xFF, 0xFF]);
    let response = decode::response(
        "SVC_RSRC_LIST_GET",
        &[2, 0, 0, 0],
        &list,
        DriverRelease::Main,
    )
    .unwrap();
    assert_eq!(response["count"], 2);
    assert_eq!(response["rsrc_list"].as_array().unwrap().len(), 2);
    assert_eq!(response["rsrc_list"][1]["svc_id"], 2);
    assert_eq!(response["rsrc_list"][1]["in_use"][7], 65_535);
    let cut = &list[..30];
    assert!(
        decode::response("SVC_RSRC_LIST_GET", &[2, 0, 0, 0], cut, DriverRelease::Main).is_err()
    );
    assert!(decode::response("SVC_DESTROY", &[0; 4], &[], DriverRelease::Main).is_err());
}

#[test]
fn what_cannot_be_encoded_says_where() {
    let cases = r#"
        SVC_DESTROY {"svc": 1} => cmd.svc: cxi_svc_destroy_cmd has no such field
        SVC_DESTROY {"svc_id": 4294967296} => cmd.svc_id: 4294967296 is not in -2147483648..=4294967295
        SVC_DESTROY {"svc_id": [1]} => cmd.svc_id: expected a number, got [1]
        SVC_GET {"resp": 8} => cmd.resp is filled in by the transport
        SVC_ALLOC {"svc_desc": {"vnis": [1, 2, 3, 4, 5]}} => cmd.svc_desc.vnis: at most 4 entries, got 5
        SVC_ALLOC {"svc_desc": {"vnis": [1, 65536]}} => cmd.svc_desc.vnis[1]: 65536 is not in -32768..=65535
        SVC_ALLOC {"svc_desc": {"limits": {"txq": {}}}} => cmd.svc_desc.limits.txq: cxi_rsrc_limits has no such field
        SVC_ALLOC {"svc_desc": {"flags": 1}} => cmd.svc_desc.flags: cxi_svc_desc has no such field
        PTE_ALLOC {"opts": {"matching": 1}} => cmd.opts.matching: cxi_pt_alloc_opts has no such field"#;
    for case in cases.lines().skip(1) {
        let (request, reason) = case.split_once(" => ").unwrap();
        let (op, fields) = request.trim().split_once(' ').unwrap();
        let fields = serde_json::from_str(fields).unwrap();
        let error = encode::request(op, &cmd(fields), DriverRelease::Main).unwrap_err();
        assert_eq!(error, reason);
    }
}
