# Every combination of features of each published crate, the empty one included, and the other
# processor that Slingshot nodes have.

combinations() {
    local crate
    for crate in "${published[@]}"; do
        cargo hack clippy --quiet --package "$crate" --feature-powerset -- -D warnings || return 1
    done
}

aarch64() {
    RUSTFLAGS="-D warnings" cargo check --quiet --target aarch64-unknown-linux-gnu --all-features "${packages_published[@]}"
}

if cargo_has hack; then
    step "features in every combination" combinations
else
    skip "features in every combination" "cargo-hack is not installed (cargo install --locked cargo-hack)"
fi

if has_target aarch64-unknown-linux-gnu; then
    step "aarch64" aarch64
else
    skip "aarch64" "the target is not installed (rustup target add aarch64-unknown-linux-gnu)"
fi
discard target/aarch64-unknown-linux-gnu
