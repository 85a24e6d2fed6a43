# The README's second command, as whoever runs this; as root, also as an ordinary user with FUSE and
# without it, and as root without it. Where LLVM's tools are, the lines that the tests run are counted
# on the way, for the gate `coverage`.

# Where the output of each of the runs of the tests is.
logs=target/ci/tests

# tests_log AS STATUS: keeps for the summary what a run says it skips, and which tests failed.
tests_log() {
    local as=$1 status=$2 log="$logs/$1" line
    skipped_in "$as" "$log"
    [ $status -eq 0 ] || while read -r line; do
        failed+=("$as: $line")
    done < <(sed -nE 's/^(test .*) \.\.\. FAILED$/\1/p; /^error(\[.*)?: /p; /^thread .* panicked at /{N;p}' "$log" | cut -c1-300)
    return $status
}

all_tests() {
    counted cargo test --workspace --no-fail-fast 2>&1 | tee "$logs/tests"
    tests_log tests $?
}

# tests_as USER fuse|no-fuse: those that depend on either, of the same build.
tests_as() {
    local runner=CARGO_TARGET_$(rustc_host | tr 'a-z-' 'A-Z_')_RUNNER
    counted env "$runner=$PWD/.ci/as $1 $2" cargo test --workspace --no-fail-fast --lib --bins --tests
}

# tests_as_others AS USER fuse|no-fuse ...: these runs, one after the other.
tests_as_others() {
    while [ $# -gt 0 ]; do
        tests_as "$2" "$3" > "$logs/$1" 2>&1
        echo $? > "$logs/$1.status"
        shift 3
    done
}

# tests_end AS: what such a run has said, and its end.
tests_end() {
    cat "$logs/$1"
    tests_log "$1" "$(cat "$logs/$1.status")"
}

# The command of the README that a new user runs first.
main_job() { cargo run --quiet --package cxi-demo; }

# A response that the kernel side writes during write(2) must be seen by optimized code too.
release_response() { cargo test --release --package cxi-ioctl --test response; }

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

rm -rf "$profiles" "$logs"
mkdir -p "$logs"
has_ended "tools for tests"
# The account that .ci/tools makes.
user=cxi-ci
others=()
if [ "$(id -u)" -ne 0 ]; then
    skip "tests as another user, and without FUSE" "needs root"
elif ! .ci/as root fuse true 2>/dev/null; then
    skip "tests as another user, and without FUSE" "no device can be made here"
else
    others+=("as root, without FUSE" root no-fuse)
    if ! .ci/as "$user" fuse test -x "$PWD" 2>/dev/null; then
        skip "tests as an ordinary user" "needs an account $user that can reach $PWD (useradd --create-home $user)"
    else
        others+=("as an ordinary user" "$user" fuse "as an ordinary user, without FUSE" "$user" no-fuse)
    fi
fi
# Most of their time tests wait, so the runs as others share the processors with the first one.
tests_as_others "${others[@]}" &
running=$!
step "tests" all_tests
wait "$running"
for ((at = 0; at < ${#others[@]}; at += 3)); do
    step "tests ${others[at]}" tests_end "${others[at]}"
done
# Programs that must not compile: tests that build all dependencies once more. They are not counted.
beside "what must not compile" counted env LLVM_PROFILE_FILE=/dev/null \
    cargo test --package cxi --package cxi-data --test lni --test data -- --ignored compile
step "main job" main_job
beside "response in release mode" release_response
if has_cc; then
    long_step "C library" c_library
else
    skip "C library" "needs a C compiler"
fi
