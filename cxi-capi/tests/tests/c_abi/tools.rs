//! Programs of others, if there are any here.
