//! Nothing: without a build script, the features of build dependencies would not count.

#![forbid(unsafe_code)]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
