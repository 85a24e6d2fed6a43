# Each feature of each published crate alone, none of them, and all; in long runs every combination,
# and the other processor that Slingshot nodes have.

features() {
    local crate
    for crate in "${published[@]}"; do
        cargo hack clippy --quiet --package "$crate" --exclude-features aws-lc-rs "$@" -- -D warnings || return 1
    done
}

aarch64() {
    RUSTFLAGS="-D warnings" cargo check --quiet --target aarch64-unknown-linux-gnu "${most_features[@]}" "${packages_published[@]}"
}

if cargo_has hack; then
    step "each feature" features --each-feature
    long_step "features in every combination" features --feature-powerset
else
    skip "each feature" "cargo-hack is not installed (cargo install --locked cargo-hack)"
fi

if has_target aarch64-unknown-linux-gnu; then
    long_step "aarch64" aarch64
else
    skip "aarch64" "the target is not installed (rustup target add aarch64-unknown-linux-gnu)"
fi
discard target/aarch64-unknown-linux-gnu
