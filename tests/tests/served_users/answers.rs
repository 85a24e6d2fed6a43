//! Memory that cannot take an answer delays its caller, but no other process.

use crate::need_node;
use crate::node::{self, DEVICE, printed, run};

#[test]
fn answers_go_where_only_the_mock_itself_answers() {
    need_node!(node::has("python3"));
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/python/page.py");
    let attribute = "/sys/class/cxi_user/cxi0/device/properties/nid";
    let output = run(&["--", "timeout", "20", "python3", program, DEVICE, attribute]);
    assert_eq!(printed(&output), "ok");
}
