//! Collections of scenarios: the packed copy, or a directory.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use lzma_rust2::XzReader;

/// The project's own copy.
const PACKED: &[u8] = include_bytes!("../conformance/scenarios.tar.xz");

/// A scenario file that has been read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct File {
    /// Path within the collection, such as `main/dom_basic.json`.
    pub path: String,
    /// Its bytes.
    pub json: Vec<u8>,
}

/// The scenarios of the project's own copy, by path.
///
/// # Errors
///
/// The copy is damaged.
pub fn packed() -> Result<Vec<File>, String> {
    unpack(PACKED)
}

/// Reads a packed collection.
///
/// # Errors
///
/// It is damaged.
pub fn unpack(bytes: &[u8]) -> Result<Vec<File>, String> {
    let damaged = |error: std::io::Error| format!("the packed scenarios are damaged: {error}");
    let mut tar = tar::Archive::new(XzReader::new(bytes, true));
    let mut files = Vec::new();
    for entry in tar.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let path = entry.path().map_err(damaged)?.display().to_string();
        let mut json = Vec::new();
        entry.read_to_end(&mut json).map_err(damaged)?;
        files.push(File { path, json });
    }
    Ok(files)
}

/// Reads all `*.json` below a directory, by path.
///
/// # Errors
///
/// The directory cannot be read, or contains no scenario.
pub fn directory(root: &Path) -> Result<Vec<File>, String> {
    if !root.is_dir() {
        return Err(format!("{}: no such directory", root.display()));
    }
    let mut files = Vec::new();
    collect(root, root, &mut files)?;
    if files.is_empty() {
        return Err(format!("{}: no scenario (*.json) in it", root.display()));
    }
    files.sort();
    Ok(files)
}

fn collect(root: &Path, directory: &Path, files: &mut Vec<File>) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    for entry in fs::read_dir(directory).map_err(|error| failed(directory, error))? {
        let path: PathBuf = entry.map_err(|error| failed(directory, error))?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            let json = fs::read(&path).map_err(|error| failed(&path, error))?;
            let path = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            files.push(File { path, json });
        }
    }
    Ok(())
}
