# What users get with the crates.

# What users build with no feature stays small: at most 20 crates, macro crates included.
dependency_count() {
    local count
    count=$(cargo tree --package cxi --edges normal --no-default-features --prefix none \
        | sed 's/ .*//' | sort -u | wc -l)
    printf '    cxi builds %d crates (at most 20)\n' "$count"
    [ "$count" -le 20 ]
}

features_of() {
    cargo tree "$@" --edges normal,build,dev --prefix none --format '{p} {f}' | sed 's/ (\*)$//' | sort -u
}

# Tests of one package build no dependency otherwise than tests of all do (`tests/features`), except for two
# that are to build less: the demo's, which a new user builds first, and those of cxi-ioctl, of which one is
# also built for release.
same_features() {
    local package other all
    all=$(features_of --workspace) || return 1
    for package in $(cargo tree --workspace --depth 0 --prefix none --format '{p}' | sed -n 's/ .*//p' | sort -u); do
        [[ $package != cxi-demo && $package != cxi-ioctl ]] || continue
        other=$(features_of --package "$package" | comm -23 - <(printf '%s\n' "$all"))
        [ -z "$other" ] && continue
        printf '    %s builds otherwise than the workspace:\n%s\n' "$package" "$other"
        return 1
    done
}

# Each holds the texts of its licenses.
packages() {
    local crate
    cargo package "${packages_published[@]}" --allow-dirty --no-verify --quiet || return 1
    for crate in "${published[@]}"; do
        [ "$(tar --list --file "target/package/$crate-$(version_of "$crate").crate" | grep -c '/LICENSE-')" -eq 2 ] && continue
        printf '    %s: no licenses in its package\n' "$crate"
        return 1
    done
}

version_of() { cargo pkgid --package "$1" | sed 's/.*[#@]//'; }

step "dependency count" dependency_count
step "features of one package and of all" same_features
step "packages" packages
has_ended "tools for gates"
if cargo_has deny; then
    step "licenses, bans, sources" cargo deny --all-features check licenses bans sources
    if timeout 60 cargo deny fetch db >/dev/null 2>&1; then
        step "advisories" cargo deny --all-features check --disable-fetch advisories
    else
        skip "advisories" "their database cannot be reached from here"
    fi
else
    skip "licenses, bans, sources, advisories" "cargo-deny is not installed (cargo install --locked cargo-deny)"
fi
