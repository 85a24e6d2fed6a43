//! Programs that must not compile: commands that outlive their memory, references into it, commands
//! in a queue of another kind, two writers.
//!
//! The compiler's messages are part of the test, so it runs with the release they were recorded
//! with. `TRYBUILD=overwrite cargo test -p cxi-data --test data compile_fail -- --ignored` records them anew.

#[test]
#[ignore = "builds all dependencies once more, for a minute; .ci/run has it beside others"]
fn what_must_not_compile_does_not() {
    if cxi_test_kit::has_recorded_compiler() {
        trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
    }
}
