//! Shared helpers of the workspace's tests.
