# The Debian packages, of the profile that builds fastest.

if ! cargo_has deb; then
    skip "Debian packages" "cargo-deb is not installed (cargo install --locked cargo-deb)"
elif ! command -v dpkg-shlibdeps > /dev/null; then
    skip "Debian packages" "needs Debian's dpkg-dev"
else
    long_step "Debian packages" .ci/deb dev
fi
