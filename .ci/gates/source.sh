# The text of the sources, before anything runs.

shell_scripts() {
    local script
    for script in .ci/run .ci/api .ci/mutation .ci/tools .ci/lib.sh .ci/gates/*.sh docs/integration/*/*.sh; do
        bash -n "$script" || return 1
    done
}

step "format" cargo fmt --all --check
step "lints" cargo clippy --workspace --all-targets --quiet -- -D warnings
step "scripts" shell_scripts
