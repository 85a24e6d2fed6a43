# Each fuzz target for a minute, two at a time; the tests run them for a second.
fuzz() { cargo run --quiet --profile fuzz --package cxi-fuzz --bin smoke -- 60; }

long_step "hostile input for longer" fuzz
discard target/fuzz
