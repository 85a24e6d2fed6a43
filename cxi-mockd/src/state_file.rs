//! A file in which a node's services live on.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::{Doing, ServeError};
use cxi_mock::{MockNode, NodeSnapshot, SnapshotHeader};

/// Reads the node of a file, if there is such a file.
pub(crate) fn read(path: &Path) -> Result<Option<MockNode>, ServeError> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.doing(|| format!("read {}", path.display()))?,
    };
    let bad = |error: &dyn std::fmt::Display| {
        ServeError::Input(format!("{} is no state of a node: {error}", path.display()))
    };
    let header: SnapshotHeader = serde_json::from_slice(&text).map_err(|error| bad(&error))?;
    header.check().map_err(|error| bad(&error))?;
    let snapshot: NodeSnapshot = serde_json::from_slice(&text).map_err(|error| bad(&error))?;
    let node = MockNode::restore(&snapshot).map_err(|error| bad(&error))?;
    Ok(Some(node))
}

/// Writes the node to a file, all of it or nothing.
pub(crate) fn write(path: &Path, node: &MockNode) -> Result<(), ServeError> {
    let what = || format!("write {}", path.display());
    let mut text = serde_json::to_vec_pretty(&node.snapshot())
        .map_err(io::Error::from)
        .doing(what)?;
    text.push(b'\n');
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let part: PathBuf = path.with_file_name(name);
    let written = File::create(&part)
        .and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written.doing(what)
}
