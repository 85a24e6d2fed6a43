//! A request has the rights that its process has when it makes the request.

use std::process::Command;

use cxi_test_kit::{Directory, skip};
use cxi_tests::node::{DEVICE, need_node, printed, run};

#[test]
fn io_uring_gives_no_rights() {
    need_node!(cxi_test_kit::root("lose rights"));
    let directory = Directory::new();
    let program = directory.join("uring");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/c/uring.c");
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-o", &program, source])
        .output();
    match compiled {
        Err(error) => return skip(format_args!("there is no C compiler cc: {error}")),
        Ok(output) => assert!(output.status.success(), "{output:?}"),
    }
    let output = run(&["--", &program, DEVICE, "1234"]);
    if output.status.code() == Some(77) {
        return skip("the kernel has no io_uring");
    }
    assert_eq!(printed(&output), "1 1");
}
