# Tests of the interface, the library, the engine and the mock as programs of Arm, in QEMU's user mode.
arm() {
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
    local arm=(cargo test --quiet --no-fail-fast --target aarch64-unknown-linux-gnu --target-dir target/arm)
    # The two that are left out look at a system call of this machine, which a translator makes.
    "${arm[@]}" --lib --tests --package cxi-ioctl --package cxi-hw --package cxi-engine --package cxi --package cxi-mock \
        -- --skip from_a_fuse_file --skip from_a_full_pipe &&
        # Its other tests depend on times that a translator does not keep.
        "${arm[@]}" --package cxi-data --lib --test data --test collective
}

missing=$(missing aarch64-unknown-linux-gnu qemu-aarch64-static aarch64-linux-gnu-gcc)
if [ -n "$missing" ]; then
    skip "tests on Arm" "not installed: $missing"
else
    long_step "tests on Arm" arm
fi
discard target/arm
