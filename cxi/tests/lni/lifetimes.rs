//! Programs that must not compile: handles, windows and options that outlive what they depend on,
//! and safe code that could make the driver or the NIC write anywhere.
//!
//! The compiler's messages are part of the test, so it runs with the release they were recorded
//! with. `TRYBUILD=overwrite cargo test -p cxi --test lni lifetimes -- --ignored` records them anew.

#[test]
#[ignore = "builds all dependencies once more, for a minute; .ci/run has it beside others"]
fn what_outlives_its_parent_does_not_compile() {
    if cxi_test_kit::has_recorded_compiler() {
        trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
    }
}
