# Hostile input: what once failed and every fuzz target for some seconds, on this toolchain. Two
# targets run at a time.
fuzz() {
    local seconds=5
    [ "${CXI_CI_LONG:-}" != 1 ] || seconds=60
    cargo run --quiet --release --manifest-path fuzz/Cargo.toml --bin smoke -- "$seconds"
}

step "format of the fuzz targets" cargo fmt --manifest-path fuzz/Cargo.toml --check
step "lints of the fuzz targets" cargo clippy --quiet --manifest-path fuzz/Cargo.toml --target-dir target --all-targets -- -D warnings
step "hostile input" fuzz
discard fuzz/target
