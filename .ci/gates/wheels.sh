# The wheels for this machine, of the profile that builds fastest.

if ! maturin --version > /dev/null 2>&1; then
    skip "wheels" "maturin is not installed (pip install maturin)"
elif ! has_cc; then
    skip "wheels" "there is no C compiler"
else
    long_step "wheels" .ci/wheels dev
fi
