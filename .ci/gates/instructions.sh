# Instructions a call of the hot paths, against those that are stored.
instruction_counts() {
    local report status
    report=$(cargo bench --quiet --package cxi-benches --bench instructions)
    status=$?
    printf '%s\n' "$report" | grep -v '^ .*[+-]0\.[0-9] %'
    # Without valgrind, or with another compiler, there is nothing to compare.
    if grep -q '^skipped: ' <<< "$report"; then
        skipped+=("instruction counts: ${report#skipped: }")
    fi
    return $status
}

step "instruction counts" instruction_counts
