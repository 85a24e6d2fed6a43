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

# The C libraries while the kernel lies to them. C compilers have the rest of AddressSanitizer, which the
# libraries do not bring; the lies are preloaded before it.
lied_to() {
    local compiler=$PWD/target/ci/cc-address
    mkdir -p target/ci && printf '#!/bin/sh\nexec %q -fsanitize=address "$@"\n' "${CC:-cc}" > "$compiler" &&
        chmod +x "$compiler" || return 1
    CC=$compiler RUSTFLAGS="-Zsanitizer=address" ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 \
        cargo +nightly test --target "$(rustc_host)" --target-dir target/address \
        --package cxi-tests --test c_abi -- lies::no_lie_of_a_driver_ends_a_program
}

# Memory that a NIC may still write to is leaked on purpose, and Miri has no files to map.
interpreted() {
    MIRIFLAGS="-Zmiri-permissive-provenance -Zmiri-ignore-leaks" \
        cargo +nightly miri test --package cxi-ioctl --lib -- --skip mapping::
}

if RUSTUP_AUTO_INSTALL=0 rustc +nightly --version >/dev/null 2>&1; then
    long_step "memory, under AddressSanitizer" sanitized
    if has_cc; then
        long_step "lies to the C libraries, under AddressSanitizer" lied_to
    else
        skip "lies to the C libraries, under AddressSanitizer" "needs a C compiler"
    fi
else
    skip "memory, and lies to the C libraries, under AddressSanitizer" "no nightly toolchain (rustup toolchain install nightly)"
fi
if RUSTUP_AUTO_INSTALL=0 cargo +nightly miri --version >/dev/null 2>&1; then
    long_step "memory, under Miri" interpreted
else
    skip "memory, under Miri" "no Miri (rustup component add miri --toolchain nightly)"
fi
discard target/race target/address
