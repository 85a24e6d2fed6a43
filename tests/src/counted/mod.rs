//! Counts the system calls of the safe library's functions, which is a cost without noise.
//!
//! A child makes each call between two marks, and its parent counts the system calls between them. The
//! child is any program that calls [`act`] with the rest of its arguments, so that both a test and a
//! benchmark can be the child.

mod messages;
mod operations;
mod scene;
mod trace;

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

pub use operations::{OPERATIONS, Operation};
pub use scene::{Carrier, Scene, files};
pub use trace::{Call, Uncounted};

/// Place where calls are made.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// On files in an empty directory, and a mock in the same process.
    Files(&'a Path),
    /// On a NIC of this node, by name.
    Node(&'a str),
}

impl Place<'_> {
    fn arguments(&self) -> [&OsStr; 2] {
        match self {
            Self::Files(directory) => ["files".as_ref(), directory.as_os_str()],
            Self::Node(name) => ["node".as_ref(), name.as_ref()],
        }
    }

    /// Creates everything that the calls need.
    ///
    /// # Errors
    ///
    /// The directory cannot be written, or the NIC cannot be opened.
    pub fn scene(&self) -> Result<Scene, String> {
        match self {
            Self::Files(directory) => Scene::on_files(directory, &|transport| transport),
            Self::Node(name) => Scene::on_node(name),
        }
    }
}

/// The system calls of each of [`OPERATIONS`] at its second call. `program` must call [`act`] with
/// the arguments that are added to its own.
///
/// # Errors
///
/// Tracing is not allowed here, or a call failed.
pub fn count(mut program: Command, place: Place<'_>) -> Result<Vec<Vec<Call>>, Uncounted> {
    program.args(place.arguments());
    let between = trace::between_marks(&mut program)?;
    // Every other interval lies between two operations.
    let counted: Vec<_> = between.into_iter().step_by(2).collect();
    if counted.len() == OPERATIONS.len() {
        Ok(counted)
    } else {
        let text = format!("{} of {} calls were made", counted.len(), OPERATIONS.len());
        Err(Uncounted::Failed(text))
    }
}

/// The child's part: makes all calls once, waits for the parent, and makes them again between marks.
///
/// # Errors
///
/// The arguments are wrong, or a call failed.
pub fn act(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let place = match words.as_slice() {
        ["files", directory] => Place::Files(Path::new(directory)),
        ["node", name] => Place::Node(name),
        _ => return Err("expected: files DIRECTORY, or node NAME".to_owned()),
    };
    let mut scene = place.scene()?;
    for operation in OPERATIONS {
        operation.run(&mut scene)?;
    }
    trace::wait_for_parent()?;
    for operation in OPERATIONS {
        trace::mark();
        let done = operation.run(&mut scene);
        trace::mark();
        done?;
    }
    Ok(())
}
