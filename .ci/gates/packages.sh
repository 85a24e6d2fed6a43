# The Debian and RPM packages, of the profile that builds fastest.

if ! cargo_has deb; then
    skip "packages" "cargo-deb is not installed (cargo install --locked cargo-deb)"
elif ! command -v dpkg-shlibdeps > /dev/null; then
    skip "packages" "needs Debian's dpkg-dev"
elif ! has_cc; then
    skip "packages" "there is no C compiler"
else
    long_step "packages" .ci/packages dev
fi
