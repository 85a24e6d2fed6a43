# What the gates `tests`, `coverage` and `benchmarks` run, so that `features`, which needs cargo's
# directory now and then, begins when most of it is done.
step "tests are built" counted cargo test --workspace --no-run --quiet
