# The text of the sources, before anything runs.

shell_scripts() {
    local script
    for script in .ci/run .ci/api .ci/mutation .ci/tools .ci/lib.sh .ci/gates/*.sh cxi-cli/integration/*/*.sh; do
        bash -n "$script" || return 1
    done
}

# docs/DESIGN.md names every library source with unsafe code.
unsafe_files() {
    local file
    for file in $(git grep -lE '(allow\(|^    )unsafe_code' -- '*/src/*.rs'); do
        # Tests inside of a source are not the library's.
        sed '/^#\[cfg(test)\]/,$d' "$file" | grep -qE '(allow\(|^    )unsafe_code' || continue
        grep -qF "\`$file\`" docs/DESIGN.md || { echo "$file: has unsafe code, and docs/DESIGN.md does not name it"; return 1; }
    done
}

step "format" cargo fmt --all --check
step "lints" cargo clippy --workspace --all-targets --quiet -- -D warnings
step "scripts" shell_scripts
step "unsafe code is where the design says" unsafe_files
