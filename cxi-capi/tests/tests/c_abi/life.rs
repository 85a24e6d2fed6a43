//! A whole life on served nodes: one library, six drivers.

use crate::compiled::{can_serve, printed, served};
use crate::need_bench;

const RELEASES: [&str; 6] = [
    "shs-12.0",
    "shs-13.0",
    "shs-13.1",
    "shs-14.0.0",
    "shs-14.0.1",
    "main",
];

/// What a driver refuses, whatever the library.
fn refused(release: &str) -> Vec<&'static str> {
    let mut refused = Vec::new();
    if release < "shs-13.1" {
        // Commands that came with 13.1.
    }
    refused.push("");
    refused
}

#[test]
fn one_library_lives_on_six_drivers() {
    let bench = need_bench!();
    if !can_serve() {
        return;
    }
    let driver = bench.compile("driver.c", &["-ldl"]).display().to_string();
    let library = bench.library.shared().display().to_string();
    for release in RELEASES {
        let run = ["--release", release, "--", &driver, &library, "live"];
        let text = printed(&served(&run, &[]));
        println!("{release}\n{text}");
        let _ = refused(release);
    }
}
