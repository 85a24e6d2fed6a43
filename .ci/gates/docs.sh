docs() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet; }

step "docs" docs
