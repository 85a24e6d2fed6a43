# What the libraries offer changes only on purpose, and with a line in the changelog.

public_api() {
    .ci/api
    case $? in
        0) ;;
        3)
            skip "public API" "cargo-public-api does not know what this toolchain's rustdoc writes (install a newer one)"
            return "$SKIPPED"
            ;;
        *)
            printf '    the public API is not that of docs/api; if that is meant: .ci/api renew\n'
            return 1
            ;;
    esac
}

if cargo_has public-api; then
    step "public API" public_api
else
    skip "public API" "cargo-public-api is not installed (cargo install --locked cargo-public-api)"
fi
discard target/ci/docs
