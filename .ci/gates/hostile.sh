# Hostile input: every fuzz target for some seconds, on this toolchain.
fuzz() {
    cargo run --quiet --release --manifest-path fuzz/Cargo.toml --bin smoke -- 20
}

step "hostile input" fuzz
