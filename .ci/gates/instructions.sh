# Instructions of the hot paths, each with a limit.

# Also compared with HPE's library, if CXI_TEST_LIBCXI_LIB names its directory.
c_library_counts() { cargo test --quiet --release --package cxi-tests --test c_abi cost::; }

instruction_counts() { cargo bench --quiet --package cxi-benches --features instructions --bench instructions; }

if ! command -v valgrind > /dev/null; then
    skip "instruction counts" "valgrind is not installed"
elif ! has_runner; then
    skip "instruction counts" "gungraun's runner is not installed (cargo install --locked gungraun-runner --version $gungraun)"
else
    long_step "instruction counts" instruction_counts
fi
if has_cc && command -v valgrind > /dev/null; then
    long_step "instruction counts of the C library" c_library_counts
else
    skip "instruction counts of the C library" "needs valgrind and a C compiler"
fi
