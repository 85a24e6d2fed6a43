# Threads that do everything at once, under ThreadSanitizer. It takes a nightly toolchain and its
# sources, because the standard library is built with the sanitizer too.
race() {
    RUSTFLAGS="-Zsanitizer=thread" CXI_TEST_ROUNDS=${CXI_TEST_ROUNDS:-8} \
        cargo +nightly test -Zbuild-std --target "$(rustc_host)" --target-dir target/race \
        --package cxi-tests --test threads
}

rustc_host() { rustc --version --verbose | sed -n 's/^host: //p'; }

has_nightly_sources() {
    local root
    root=$(RUSTUP_AUTO_INSTALL=0 rustc +nightly --print sysroot 2>/dev/null) &&
        [ -r "$root/lib/rustlib/src/rust/library/Cargo.lock" ]
}

if has_nightly_sources; then
    step "data races" race
else
    skip "data races" "no nightly toolchain with its sources (rustup toolchain install nightly --component rust-src)"
fi
