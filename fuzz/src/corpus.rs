//! Inputs in files: committed seeds, inputs that once failed, and those that fail now.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::Target;

/// A file and what is in it.
pub type Kept = (PathBuf, Vec<u8>);

fn root(directory: &str, target: Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(directory).join(target.name)
}

/// Returns the inputs that a target starts from: its own seeds and those of `seeds/`.
///
/// # Errors
///
/// A file cannot be read.
pub fn seeds(target: Target) -> io::Result<Vec<Vec<u8>>> {
    let mut inputs = (target.seeds)();
    inputs.extend(files(&root("seeds", target))?.into_iter().map(|kept| kept.1));
    Ok(inputs)
}

/// Inputs that once failed, in `regressions/`.
///
/// # Errors
///
/// A file cannot be read.
pub fn regressions(target: Target) -> io::Result<Vec<Kept>> {
    files(&root("regressions", target))
}

/// Keeps an input that fails, in `artifacts/`.
///
/// # Errors
///
/// It cannot be written.
pub fn keep(target: Target, input: &[u8]) -> io::Result<PathBuf> {
    write(&root("artifacts", target), "crash-", input)
}

/// Writes what a target starts from into a directory, for cargo-fuzz.
///
/// # Errors
///
/// It cannot be written.
pub fn export(target: Target, directory: &Path) -> io::Result<usize> {
    let mut inputs = seeds(target)?;
    inputs.extend(regressions(target)?.into_iter().map(|kept| kept.1));
    for input in &inputs {
        write(directory, "", input)?;
    }
    Ok(inputs.len())
}

fn write(directory: &Path, prefix: &str, input: &[u8]) -> io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let path = directory.join(format!("{prefix}{:016x}", hasher.finish()));
    fs::write(&path, input)?;
    Ok(path)
}

fn files(directory: &Path) -> io::Result<Vec<Kept>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut kept = entries
        .map(|entry| {
            let path = entry?.path();
            let bytes = fs::read(&path)?;
            Ok((path, bytes))
        })
        .collect::<io::Result<Vec<_>>>()?;
    kept.sort();
    Ok(kept)
}
