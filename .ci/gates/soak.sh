# The data path of a served node for half an hour, and what the server holds after it.
soak() { CXI_TEST_SECONDS=3600 cargo test --package cxi-tests --test soak_data_path -- --nocapture; }

# Everyone who may change services of a node, in any order, with everything that may go wrong.
storm() { CXI_STORM_SEQUENCES=100000 cargo test --release --package cxi-cni --test storm -- --nocapture; }

# The same with real programs, which are killed, on a served node.
storm_on_a_node() { CXI_TEST_SECONDS=1800 CXI_STORM_SEQUENCES=2000 cargo test --package cxi-tests --test served_storm -- --nocapture; }

long_step "soak" soak
long_step "storm" storm
long_step "storm on a node" storm_on_a_node
