# Functions that the gates share. Read by .ci/run.

skipped=()
failed=()

libraries=(cxi-ioctl cxi-hw cxi-engine cxi cxi-data cxi-site cxi-job cxi-vni-etcd cxi-mock cxi-fabric-manager)
published=("${libraries[@]}" cxi-mockd cxi-cli cxi-cni)
# The same as options of cargo.
packages_libraries=("${libraries[@]/#/--package=}")
packages_published=("${published[@]/#/--package=}")
# All features but aws-lc-rs, which takes a C compiler for the target.
most_features=(--features "cxi/serde,cxi-ioctl/tracing,cxi-site/fabric-manager,cxi-job/fabric-manager,cxi-mock/serde,cxi-vni-etcd/site")

# What a step's function returns after it skipped itself.
SKIPPED=77

# step NAME COMMAND...: runs a function or a command, and keeps its name if it fails.
step() {
    local name=$1
    shift
    printf '\n==> %s\n' "$name"
    local start=$SECONDS
    "$@"
    case $? in
        0) printf '    %s: ok (%d s)\n' "$name" $((SECONDS - start)) ;;
        "$SKIPPED") ;;
        *)
            printf '    %s: FAILED (%d s)\n' "$name" $((SECONDS - start))
            failed+=("$name")
            ;;
    esac
}

# skipped_in NAME LOG: keeps for the summary which tests a log says were skipped.
skipped_in() {
    local line
    while read -r line; do
        skipped+=("$1: $line")
    done < <(sed -n 's/^.*SKIPPED //p' "$2" | sort -u)
}

# The steps that run beside others, in the order of their beginning, and their processes.
besides=()
declare -A beside_process=()

# beside NAME COMMAND...: a step that runs beside those that follow.
beside() {
    local name=$1
    shift
    mkdir -p target/ci/beside
    "$@" > "target/ci/beside/$name" 2>&1 &
    besides+=("$name")
    beside_process[$name]=$!
}

# has_ended NAME: waits for such a step, if there is one and nobody has waited yet, and tells of it.
has_ended() {
    [ -n "${beside_process[$1]:-}" ] || return 0
    step "$1" beside_end "$1"
    unset "beside_process[$1]"
}

beside_end() {
    local status=0
    wait "${beside_process[$1]}" || status=$?
    cat "target/ci/beside/$1"
    skipped_in "$1" "target/ci/beside/$1"
    return $status
}

# Waits for all of them.
besides_end() {
    local name
    for name in "${besides[@]:+${besides[@]}}"; do has_ended "$name"; done
}

# skip NAME WHY: what is not run, and what would make it run.
skip() {
    printf '\n==> %s\n    skipped: %s\n' "$1" "$2"
    skipped+=("$1: $2")
}

# discard DIRECTORY...: removes what no later gate uses, where the disk is small.
discard() { [ -z "${CI:-}" ] || rm -rf "$@"; }

# long_step NAME COMMAND...: a step that takes too long for every change.
long_step() {
    if [ "${CXI_CI_LONG:-}" = 1 ]; then
        step "$@"
    else
        skip "$1" "long (CXI_CI_LONG=1 .ci/run)"
    fi
}

# cargo_has SUBCOMMAND: whether `cargo SUBCOMMAND` is installed.
cargo_has() { cargo "$1" --version >/dev/null 2>&1; }

has_cc() { "${CC:-cc}" --version >/dev/null 2>&1; }

has_toolchain() { RUSTUP_AUTO_INSTALL=0 rustc "+$1" --version >/dev/null 2>&1; }

# missing TARGET PROGRAM...: prints which of these programs, and the target of Rust, are not installed.
missing() {
    local target=$1 program all=
    shift
    for program in "$@"; do command -v "$program" > /dev/null || all="${all:+$all, }$program"; done
    has_target "$target" || all="${all:+$all, }the target $target"
    printf '%s' "$all"
}

has_target() { [ -d "$(rustc --print target-libdir --target "$1" 2>/dev/null)" ]; }

llvm_tools=$(rustc --print target-libdir)/../bin
has_llvm_tools() { [ -x "$llvm_tools/llvm-profdata" ] && [ -x "$llvm_tools/llvm-cov" ]; }

# A profile of what has run, for each program, which all its processes share.
profiles=target/profiles

# counted COMMAND...: with cargo's settings of the build that the tests run, in which the crates of this
# workspace count the lines that run if that is possible here.
counted() (
    if has_llvm_tools; then
        export RUSTC_WORKSPACE_WRAPPER=$PWD/.ci/counting LLVM_PROFILE_FILE=$PWD/$profiles/%m%c.profraw
        # Tests that run as other users write to cargo's directory too.
        mkdir -p "$profiles" target/tmp && chmod 1777 "$profiles" target target/tmp
    fi
    "$@"
)

rustc_host() { rustc --version --verbose | sed -n 's/^host: //p'; }

# gungraun takes a runner of its own version only.
gungraun=$(sed -n '/^name = "gungraun"$/{n;s/version = "\(.*\)"/\1/p}' Cargo.lock)
has_runner() { [ "$(gungraun-runner --version 2>/dev/null)" = "gungraun-runner $gungraun" ]; }

# promised_rust MANIFEST: the oldest compiler that it names.
promised_rust() { sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$1"; }

summary() {
    printf '\n==> summary (%d s)\n' "$SECONDS"
    local line
    for line in "${skipped[@]:+${skipped[@]}}"; do printf '    skipped: %-60s %s\n' "${line%%: *}" "${line#*: }"; done
    for line in "${failed[@]:+${failed[@]}}"; do printf '    failed:  %s\n' "$line"; done
    [ ${#failed[@]} -eq 0 ] || return 1
    printf '    all passed\n'
}
