# How many lines of each crate the gate `tests` has run: at least as many of 100 as its floor, which is
# what a whole run as root measured, less about two. The C libraries are loaded by C programs, in a
# build of their own that does not count.

floors="
cxi-ioctl 95
cxi-ioctl/hw 94
cxi 96
cxi/data 95
cxi/site 95
cxi/job 94
cxi/vni-etcd 96
cxi/cli 92
cxi/cni 94
cxi/capi 0
cxi/job-capi 0
cxi-mock 96
cxi-mock/engine 96
cxi-mock/serve 91
cxi-mock/fabric-manager 95
"

# Tests inside the sources are not counted.
coverage_table() {
    awk -v root="$PWD/" -v floors="$floors" '
        function crate_of(file) {
            if (index(file, root) != 1 || file ~ /(\/tests\/|\/tests\.rs$)/) return ""
            file = substr(file, length(root) + 1)
            return sub(/\/src\/.*/, "", file) && file in floor ? file : ""
        }
        function first_test_line(file,    line, number) {
            while ((getline line < file) > 0) {
                number++
                if (line ~ /^#\[cfg\(test\)\]/) { close(file); return number }
            }
            close(file)
            return 1e9
        }
        BEGIN {
            count = split(floors, word)
            for (at = 1; at < count; at += 2) { order[++crates] = word[at]; floor[word[at]] = word[at + 1] }
        }
        /^SF:/ { file = substr($0, 4); crate = crate_of(file); if (crate != "") end = first_test_line(file) }
        /^DA:/ && crate != "" {
            split(substr($0, 4), line, ",")
            if (line[1] >= end) next
            lines[crate]++
            if (line[2] > 0) run[crate]++
            else missed[crate] = missed[crate] sprintf("        %s:%d\n", substr(file, length(root) + 1), line[1])
        }
        END {
            printf "    %-24s %7s %7s %8s %6s\n", "crate", "lines", "run", "percent", "floor"
            for (at = 1; at <= crates; at++) {
                crate = order[at]
                share = lines[crate] ? 100 * run[crate] / lines[crate] : 0
                printf "    %-24s %7d %7d %7.1f%% %5d%%\n", crate, lines[crate], run[crate], share, floor[crate]
                if (share < floor[crate]) { bad = 1; list = list missed[crate] }
            }
            if (bad) printf "    below a floor; not run:\n%s", list
            exit bad
        }' target/ci/coverage.lcov
}

# The programs of the build that the tests run.
counted_programs() {
    counted cargo test --workspace --no-run --quiet --message-format=json 2>/dev/null \
        | sed -nE 's/^.*"executable":"([^"]+)".*$/\1/p' | sort -u
}

coverage() {
    local program objects=()
    "$llvm_tools/llvm-profdata" merge --sparse --output=target/ci/merged "$profiles"/*.profraw || return 1
    while read -r program; do objects+=("--object=$program"); done < <(counted_programs)
    "$llvm_tools/llvm-cov" export --format=lcov --instr-profile=target/ci/merged "${objects[@]}" \
        > target/ci/coverage.lcov 2> target/ci/coverage.log || { cat target/ci/coverage.log; return 1; }
    coverage_table
}

if [ "$(id -u)" -ne 0 ]; then
    skip "coverage" "the floors are those of a run as root"
elif ! has_llvm_tools; then
    skip "coverage" "llvm-tools are not installed (rustup component add llvm-tools)"
elif ! compgen -G "$profiles/*.profraw" > /dev/null; then
    skip "coverage" "the gate tests has not run (.ci/run tests coverage)"
else
    step "coverage" coverage
fi
