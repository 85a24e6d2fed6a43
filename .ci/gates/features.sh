# Each feature of each published crate alone, none of them, and all; in long runs every combination,
# and the other processor that Slingshot nodes have.

# Checked only: clippy's lints of all features together are in the gate `source`. A warning is found in
# the output, because flags that deny warnings would compile every dependency again.
features() {
    local crate log
    log=$(mktemp) || return 1
    for crate in "${published[@]}"; do
        if ! nice cargo hack check --quiet --package "$crate" --exclude-features aws-lc-rs "$@" > "$log" 2>&1 ||
            grep '^warning: ' "$log" | grep -qv 'specified feature `aws-lc-rs` not found'; then
            cat "$log"
            rm "$log"
            return 1
        fi
    done
    rm "$log"
}

aarch64() {
    RUSTFLAGS="-D warnings" cargo check --quiet --target aarch64-unknown-linux-gnu "${most_features[@]}" "${packages_published[@]}"
}

has_ended "tools for features"
if cargo_has hack; then
    # One package is checked at a time, which leaves most of a processor to the tests.
    beside "each feature" features --each-feature
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
