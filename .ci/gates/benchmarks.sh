# Every series is tried once, not measured, in the build that the tests run.
benchmarks() { counted cargo test --quiet --workspace --benches; }

# Those that run on a NIC, on one that the mock serves.
benchmarks_on_a_nic() {
    counted "$node" run -- env CXI_BENCH_DEVICE=cxi0 cargo test --quiet --workspace --benches
}

step "benchmarks, once" benchmarks
node=target/debug/mock-server
# Built where the tests have not run.
counted cargo test --quiet --package cxi-tests --test served --no-run
"$node" run -- true 2>/dev/null
if [ $? -eq 77 ]; then
    skip "benchmarks on a NIC" "no node can be served here ($node run -- true says why)"
else
    step "benchmarks on a NIC, once" benchmarks_on_a_nic
fi
