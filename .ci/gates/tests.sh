# The README's second command.
tests() { cargo test --workspace; }

# The command of the README that a new user runs first.
main_job() { cargo run --quiet --package cxi-cli -- demo; }

# A response that the kernel side writes during write(2) must be seen by optimised code too.
release_response() { cargo test --release --package cxi-tests --test response; }

step "tests" tests
step "main job" main_job
step "response in release mode" release_response
