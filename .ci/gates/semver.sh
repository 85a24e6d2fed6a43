# Whether the libraries keep what their last release promised, as semantic versioning has it.

last_release() { git describe --tags --abbrev=0 --match 'v*' 2>/dev/null; }

public_api() { cargo semver-checks --quiet --baseline-rev "$(last_release)" "${packages_libraries[@]}"; }

if [ -z "$(last_release)" ]; then
    skip "public API" "no release to compare with (no tag v*)"
elif ! cargo_has semver-checks; then
    skip "public API" "cargo-semver-checks is not installed (cargo install --locked cargo-semver-checks)"
else
    long_step "public API" public_api
fi
