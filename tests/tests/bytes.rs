//! Lists, and what is wrong with a scenario. That fields get into bytes and back is shown by the
//! scenarios: a field in another place would be answered differently.
#![forbid(unsafe_code)]

use cxi_ioctl::DriverRelease;
use cxi_tests::{decode, encode};

#[test]
fn lists_are_entries() {
    let mut list = [0; 48];
    (list[0], list[24]) = (1, 2);
    list[46..].fill(0xFF);
    let response =
        decode::response("SVC_RSRC_LIST_GET", &[2, 0, 0, 0], &list, DriverRelease::Main2026_07)
            .unwrap();
    assert_eq!(response["count"], 2);
    assert_eq!(response["rsrc_list"].as_array().unwrap().len(), 2);
    assert_eq!(response["rsrc_list"][1]["svc_id"], 2);
    assert_eq!(response["rsrc_list"][1]["in_use"][7], 65_535);
    let cut = &list[..30];
    assert!(
        decode::response("SVC_RSRC_LIST_GET", &[2, 0, 0, 0], cut, DriverRelease::Main2026_07)
            .is_err()
    );
    assert!(decode::response("SVC_DESTROY", &[0; 4], &[], DriverRelease::Main2026_07).is_err());
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
        let error = encode::request(op, &fields, DriverRelease::Main2026_07).unwrap_err();
        assert_eq!(error, reason);
    }
}
