# The data path of a served node for half an hour, and what the server holds after it.
soak() { CXI_TEST_SECONDS=1800 cargo test --package cxi-tests --test soak_data_path -- --nocapture; }

long_step "soak" soak
