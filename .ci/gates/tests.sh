# The README's second command.
tests() { cargo test --workspace; }

# The command of the README that a new user runs first.
main_job() { cargo run --quiet --package cxi-cli -- demo; }

# A response that the kernel side writes during write(2) must be seen by optimised code too.
release_response() { cargo test --release --package cxi-tests --test response; }

# libcxi.so.1 and libcxi_job.so.0 as a user installs them.
c_library() {
    local place
    place=$(mktemp -d) || return 1
    DESTDIR=$place cargo run --release --quiet --package cxi-capi-build -- install --prefix /usr &&
        [ -e "$place/usr/lib/libcxi.so.1" ] && [ -e "$place/usr/include/libcxi/libcxi.h" ] &&
        [ -e "$place/usr/lib/libcxi_job.so.0" ] && [ -e "$place/usr/include/cxi_job.h" ]
    local result=$?
    rm -r "$place"
    return $result
}

step "tests" tests
step "main job" main_job
step "response in release mode" release_response
if has_cc; then
    step "C library" c_library
else
    skip "C library" "needs a C compiler"
fi
