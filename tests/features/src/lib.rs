//! Nothing: only the features in the manifest of this package count.

#![forbid(unsafe_code)]
