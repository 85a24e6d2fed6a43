//! The command that builds and installs `libcxi.so.1` and `libcxi_job.so.0`.

#![forbid(unsafe_code)]

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::builder::OsStringValueParser;
use clap::{Args, Parser, Subcommand};
use cxi_capi_build::{LIBCXI, LIBCXI_JOB, Library, Places, Product, Result, install};

/// Build libcxi.so.1 and libcxi_job.so.0, and install them.
#[derive(Debug, Parser)]
struct Arguments {
    /// Profile of cargo's to build with
    #[arg(long, global = true, default_value = "release")]
    profile: String,
    #[command(subcommand)]
    command: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Build them in a directory, with libcxi.a and libcxi_job.a
    Make {
        /// The directory
        directory: PathBuf,
    },
    /// Build libcxi_job.so.0 alone, also for another system: CARGO_BUILD_TARGET names it, and CC its
    /// compiler
    Shared {
        /// The directory
        directory: PathBuf,
    },
    /// Build them, and install them with their headers and pkg-config files
    Install(Install),
}

#[derive(Debug, Args)]
struct Install {
    /// Directory in which they are used
    #[arg(long, env = "PREFIX", default_value = "/usr/local")]
    prefix: PathBuf,
    /// Directory for libraries, below the prefix unless it is absolute
    #[arg(long, env = "LIBDIR", default_value = "lib")]
    libdir: PathBuf,
    /// Prepended to all paths, for building packages
    #[arg(long, env = "DESTDIR", default_value = "", value_parser = OsStringValueParser::new())]
    destdir: OsString,
}

#[allow(clippy::print_stderr, reason = "this is a command")]
fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cxi-capi-build: {error}");
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stdout, reason = "this is a command")]
fn run(arguments: &Arguments) -> Result<()> {
    let (what, profile) = (&arguments.command, &*arguments.profile);
    if let What::Shared { directory } = what {
        make_directory(directory)?;
        let library =
            Library::make_shared(&LIBCXI_JOB, &compile(&LIBCXI_JOB, profile)?, directory)?;
        println!("{}", library.shared().display());
        return Ok(());
    }
    for product in [&LIBCXI, &LIBCXI_JOB] {
        let archive = compile(product, profile)?;
        match what {
            What::Shared { .. } => {}
            What::Make { directory } => {
                make_directory(directory)?;
                let library = Library::make(product, &archive, directory)?;
                println!("{}\n{}", library.shared().display(), library.archive().display());
            }
            What::Install(arguments) => {
                let places = Places {
                    destdir: PathBuf::from(&arguments.destdir),
                    prefix: arguments.prefix.clone(),
                    libdir: arguments.libdir.clone(),
                };
                let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
                let library = Library::make(product, &archive, directory.path())?;
                for file in install(&library, &places)? {
                    println!("{}", file.display());
                }
            }
        }
    }
    Ok(())
}

fn make_directory(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))
}

/// Has cargo build the archive. Returns its path.
fn compile(product: &Product, profile: &str) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--profile", profile, "--package", product.package])
        .arg("--message-format=json-render-diagnostics")
        .arg("--manifest-path")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo could not build {}", product.package));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|message| message.get("filenames").cloned())
        .filter_map(|files| files.as_array().cloned())
        .flatten()
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .find(|file| file.ends_with(product.cargo_archive()))
        .ok_or_else(|| format!("cargo made no {}", product.cargo_archive()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_enough() {
        let words = ["cxi-capi-build", "install", "--prefix", "/opt/cxi"];
        let arguments = Arguments::try_parse_from(words).unwrap();
        assert_eq!(arguments.profile, "release");
        let What::Install(install) = arguments.command else {
            panic!("another command");
        };
        assert_eq!(install.prefix, PathBuf::from("/opt/cxi"));
        assert!(install.destdir.is_empty());
    }
}
