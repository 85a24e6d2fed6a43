//! Memory that cannot take an answer delays its caller, but no other process.

use cxi_tests::node::{DEVICE, need_node, printed, run};

#[test]
fn answers_go_where_only_the_mock_itself_answers() {
    need_node!(cxi_test_kit::has("python3"));
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/python/page.py");
    let attribute = "/sys/class/cxi_user/cxi0/device/properties/nid";
    let output = run(&["--", "timeout", "20", "python3", program, DEVICE, attribute]);
    assert_eq!(printed(&output), "ok");
}
