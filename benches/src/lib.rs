//! Shared helpers of the workspace's benches.
