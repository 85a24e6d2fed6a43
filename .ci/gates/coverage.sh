# How many lines of the libraries the workspace's tests run: 95 of 100 in each.

# Tests inside the sources are not counted. What is served by the mock runs in other processes.
coverage_table() {
    awk -v least=95 '
        function group_of(file) {
            if (file ~ /\/tests\.rs$/ ) return ""
            if (match(file, /\/(cxi-ioctl|cxi|cxi\/job|cxi-mock)\/src\//)) {
                return substr(file, RSTART + 1, RLENGTH - length("//src/"))
            }
            return ""
        }
        function first_test_line(file,    line, number) {
            while ((getline line < file) > 0) {
                number++
                if (line ~ /^#\[cfg\(test\)\]/) { close(file); return number }
            }
            close(file)
            return 1e9
        }
        /^SF:/ { file = substr($0, 4); group = group_of(file); if (group != "") end = first_test_line(file) }
        /^DA:/ && group != "" {
            split(substr($0, 4), line, ",")
            if (line[1] >= end) next
            lines[group]++
            if (line[2] > 0) run[group]++
            else missed[group] = missed[group] sprintf("        %s:%d\n", substr(file, index(file, group "/src/")), line[1])
        }
        END {
            printf "    %-10s %7s %7s %8s\n", "crate", "lines", "run", "percent"
            count = split("cxi-ioctl cxi cxi/job cxi-mock", order, " ")
            for (at = 1; at <= count; at++) {
                group = order[at]
                share = lines[group] ? 100 * run[group] / lines[group] : 0
                printf "    %-10s %7d %7d %7.1f%%\n", group, lines[group], run[group], share
                if (share < least) { bad = 1; list = list missed[group] }
            }
            if (bad) printf "    less than %d %%; not run:\n%s", least, list
            exit bad
        }' target/ci/coverage.lcov
}

# Packages whose tests run little of those four, or nothing.
besides=(cxi-benches cxi-capi-tests cxi-engine cxi-fabric-manager cxi-hw cxi-vni-etcd)

coverage() {
    # Nothing of an earlier run counts, and programs that tests run as other users write here too.
    cargo llvm-cov clean --workspace || return 1
    mkdir -p target/ci target/llvm-cov-target && chmod 1777 target/llvm-cov-target || return 1
    cargo llvm-cov --quiet --no-report --workspace "${besides[@]/#/--exclude=}" --all-features || return 1
    # Programs that tests kill, or let run out of disk, leave no whole profile.
    cargo llvm-cov report --failure-mode all --lcov --output-path target/ci/coverage.lcov || return 1
    coverage_table
}

if ! cargo_has llvm-cov; then
    skip "coverage" "cargo-llvm-cov is not installed (cargo install --locked cargo-llvm-cov)"
elif ! has_llvm_tools; then
    skip "coverage" "llvm-tools are not installed (rustup component add llvm-tools)"
else
    step "coverage" coverage
fi
discard target/llvm-cov-target
