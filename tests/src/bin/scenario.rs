//! Lists, prints and packs recorded scenarios.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command prints"
)]

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use cxi_tests::archive;

const USAGE: &str = "usage: scenario list [PART OF A NAME]
       scenario print DRIVER/NAME
       scenario pack DIRECTORY  replaces the project's copy with the scenarios in a directory";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["list"] => list(""),
        ["list", part] => list(part),
        ["print", name] => print(name),
        ["pack", directory] => pack(Path::new(directory)),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn list(part: &str) -> Result<(), String> {
    let mut names: Vec<_> = archive::packed()?
        .into_iter()
        .map(|file| file.path)
        .collect();
    names.sort_unstable();
    let mut text = String::new();
    for name in names.iter().filter(|name| name.contains(part)) {
        text.push_str(name.strip_suffix(".json").unwrap_or(name));
        text.push('\n');
    }
    show(text.as_bytes())
}

fn print(name: &str) -> Result<(), String> {
    let wanted = format!("{}.json", name.strip_suffix(".json").unwrap_or(name));
    let files = archive::packed()?;
    let file = files
        .iter()
        .find(|file| file.path == wanted)
        .ok_or_else(|| format!("no scenario '{name}'; 'scenario list' has their names"))?;
    show(&file.json)
}

fn show(text: &[u8]) -> Result<(), String> {
    std::io::stdout()
        .write_all(text)
        .map_err(|error| error.to_string())
}

fn pack(directory: &Path) -> Result<(), String> {
    let files = archive::directory(directory)?;
    let bytes = archive::pack(&files)?;
    let copy = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/scenarios.tar.xz");
    std::fs::write(&copy, &bytes).map_err(|error| format!("{}: {error}", copy.display()))?;
    println!("{} scenarios, {} bytes packed", files.len(), bytes.len());
    Ok(())
}
