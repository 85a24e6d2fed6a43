# Threads that do everything at once, under ThreadSanitizer. It takes a nightly toolchain and its
# sources, because the standard library is built with the sanitizer too.
race() {
    RUSTFLAGS="-Zsanitizer=thread" CXI_TEST_ROUNDS=${CXI_TEST_ROUNDS:-8} \
        cargo +nightly test -Zbuild-std --target "$(rustc_host)" --target-dir target/race \
        --package cxi-tests --test threads
}

has_nightly_sources() {
    local root
    root=$(RUSTUP_AUTO_INSTALL=0 rustc +nightly --print sysroot 2>/dev/null) &&
        [ -r "$root/lib/rustlib/src/rust/library/Cargo.lock" ]
}

if has_nightly_sources; then
    long_step "data races" race
else
    skip "data races" "no nightly toolchain with its sources (rustup toolchain install nightly --component rust-src)"
fi

# What the kernel writes to, and what it may not: the buffers of a response, of a list, and memory
# that a NIC uses. Under Miri where it is, and under AddressSanitizer where the toolchain is nightly.
sanitized() {
    RUSTFLAGS="-Zsanitizer=address" ASAN_OPTIONS=detect_leaks=0 \
        cargo +nightly test --target "$(rustc_host)" --target-dir target/address \
        --package cxi-ioctl --package cxi-tests --lib --test chardev --test response -- "$@"
}

# Memory that a NIC may still write to is leaked on purpose, and Miri has no files to map.
interpreted() {
    MIRIFLAGS="-Zmiri-permissive-provenance -Zmiri-ignore-leaks" \
        cargo +nightly miri test --package cxi-ioctl --lib -- --skip mapping::
}

if RUSTUP_AUTO_INSTALL=0 rustc +nightly --version >/dev/null 2>&1; then
    long_step "memory, under AddressSanitizer" sanitized
else
    skip "memory, under AddressSanitizer" "no nightly toolchain (rustup toolchain install nightly)"
fi
if RUSTUP_AUTO_INSTALL=0 cargo +nightly miri --version >/dev/null 2>&1; then
    long_step "memory, under Miri" interpreted
else
    skip "memory, under Miri" "no Miri (rustup component add miri --toolchain nightly)"
fi
discard target/race target/address
