# Instructions of the hot paths, each with a limit.

instruction_counts() { cargo bench --quiet --package cxi-benches --features instructions --bench instructions; }

if ! command -v valgrind > /dev/null; then
    skip "instruction counts" "valgrind is not installed"
elif ! has_runner; then
    skip "instruction counts" "gungraun's runner is not installed (cargo install --locked gungraun-runner --version $gungraun)"
else
    long_step "instruction counts" instruction_counts
fi
