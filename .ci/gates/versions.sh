# The oldest compiler and the oldest dependencies that Cargo.toml promises.

# A copy, so that the lock file of the repository stays as it is.
oldest=target/ci/oldest

copy_sources() {
    mkdir -p "$oldest" && rm -rf "${oldest:?}/src" && mkdir "$oldest/src" || return 1
    git ls-files -z --cached --others --exclude-standard | xargs -0 tar --create --ignore-failed-read 2>/dev/null \
        | tar --extract --directory "$oldest/src" || return 1
    # Only for features of tests, and it names newer versions than what is promised.
    rm -r "$oldest/src/tests/features" || return 1
    find "$oldest/src" -name Cargo.toml -exec sed -i '/^cxi-features/d; s|"tests/features", ||' {} +
}

# Cargo's option is unstable; RUSTC_BOOTSTRAP gives it to any toolchain, for this one command.
lock_oldest() {
    local manifest=$oldest/src/Cargo.toml said
    if said=$(RUSTC_BOOTSTRAP=1 cargo -Z direct-minimal-versions generate-lockfile --manifest-path "$manifest" 2>&1 \
        && cargo fetch --locked --manifest-path "$manifest" 2>&1); then
        return
    fi
    printf '%s\n' "$said"
    grep -qiE 'resolve host|network|offline|failed to download|could not connect' <<<"$said" || return 1
    skip "oldest dependencies" "the registry cannot be reached from here"
    return "$SKIPPED"
}

oldest_dependencies() {
    copy_sources || return 1
    lock_oldest || return
    cargo check --quiet --locked --manifest-path "$oldest/src/Cargo.toml" --target-dir "$oldest/target" \
        "${most_features[@]}" "${packages_published[@]}"
}

oldest_compiler() {
    local version=$1
    shift
    cargo "+$version" check --quiet --locked --target-dir "target/ci/rust-$version" "${most_features[@]}" "$@"
}

long_step "oldest dependencies" oldest_dependencies

# compiler VERSION PACKAGES...
compiler() {
    local version=$1
    shift
    if has_toolchain "$version"; then
        long_step "Rust $version" oldest_compiler "$version" "$@"
    else
        skip "Rust $version" "it is not installed (rustup toolchain install --profile minimal $version)"
    fi
}

# The README promises what the manifests do.
readme_promise() {
    grep -qF "($(promised_rust Cargo.toml) or later)" README.md && return
    printf '    README.md and Cargo.toml name different compilers\n'
    return 1
}

step "promised compiler" readme_promise
compiler "$(promised_rust Cargo.toml)" "${packages_published[@]}"
discard "$oldest" target/ci/rust-*
