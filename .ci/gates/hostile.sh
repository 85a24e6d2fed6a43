# Hostile input: what once failed and every fuzz target for some seconds, on this toolchain. Two
# targets run at a time.
fuzz() {
    cargo run --quiet --release --manifest-path fuzz/Cargo.toml --bin smoke -- 20
}

step "format of the fuzz targets" cargo fmt --manifest-path fuzz/Cargo.toml --check
step "lints of the fuzz targets" cargo clippy --quiet --manifest-path fuzz/Cargo.toml --all-targets -- -D warnings
step "hostile input" fuzz
discard fuzz/target
