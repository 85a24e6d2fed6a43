# Instructions of the hot paths, each with a limit.

# The runner has to be of the version that Cargo.lock names.
gungraun=$(sed -n '/^name = "gungraun"$/{n;s/version = "\(.*\)"/\1/p}' Cargo.lock)
install="cargo install --locked gungraun-runner --version $gungraun"

instruction_counts() { cargo bench --quiet --package cxi-benches --features instructions --bench instructions; }

if ! command -v valgrind > /dev/null; then
    skip "instruction counts" "valgrind is not installed"
elif [ "$(gungraun-runner --version 2>/dev/null)" != "gungraun-runner $gungraun" ]; then
    skip "instruction counts" "their runner is not installed ($install)"
else
    long_step "instruction counts" instruction_counts
fi
