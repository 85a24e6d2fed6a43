# Hostile input: what once failed and every fuzz target for some seconds, on this toolchain. Two
# targets run at a time.
fuzz() {
    cargo run --quiet --release --manifest-path fuzz/Cargo.toml --bin smoke -- 20
}

step "format of the fuzz targets" cargo fmt --manifest-path fuzz/Cargo.toml --check
step "hostile input" fuzz
