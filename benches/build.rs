//! What instruction counts depend on beside the code, for the benchmark that counts.

use std::env;
use std::process::Command;

fn main() {
    let variable = |name| env::var(name).unwrap_or_default();
    let version = Command::new(variable("RUSTC")).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let profile = format!(
        "{}, opt-level {}",
        variable("PROFILE"),
        variable("OPT_LEVEL")
    );
    let flags = variable("CARGO_ENCODED_RUSTFLAGS").replace('\u{1f}', " ");
    for (name, value) in [
        ("BUILT_BY", version.unwrap_or_default()),
        ("BUILT_FOR", variable("TARGET")),
        ("BUILT_AS", profile),
        ("BUILT_WITH", flags),
    ] {
        println!("cargo::rustc-env={name}={value}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
