//! `cxi cdi`: the NICs as devices of the Container Device Interface.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use cxi::Host;
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::files;
use crate::node::{Node, reading};
use crate::options::Common;
use crate::output::Report;

/// Every runtime that supports CDI supports this version, which has everything that is used here.
const VERSION: &str = "0.3.0";
/// The kind that sites already use in their container configurations.
const KIND: &str = "hpe.com/cxi";
const EVERY_NIC: &str = "all";
/// File in which runtimes look for the specification.
const FILE: &str = "/etc/cdi/hpe.com-cxi.json";

#[derive(Debug, Args)]
pub(crate) struct CdiArgs {
    /// Write a file, or /etc/cdi/hpe.com-cxi.json if none is named, instead of printing. It is
    /// replaced atomically
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[allow(clippy::option_option, reason = "how clap expresses an optional value")]
    output: Option<Option<PathBuf>>,
    /// A file or directory of this machine, such as a library, that containers with a NIC also see,
    /// at the same path and read-only
    #[arg(long, value_name = "PATH", value_parser = absolute)]
    mount: Vec<PathBuf>,
}

fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err("expected an absolute path".to_owned()) }
}

pub(crate) fn run(arguments: &CdiArgs, common: &Common) -> Result<Report, Failure> {
    let file = arguments.output.as_ref();
    let file =
        file.map(|named| common.machine_path("--output=FILE", named.as_ref(), FILE)).transpose()?;
    reading(common, |node| of_node(arguments, node, file.as_deref()))
}

fn of_node(arguments: &CdiArgs, node: &Node, file: Option<&Path>) -> Result<Report, Failure> {
    if !node.is_mock() && Host::system().socket().is_some() {
        return Err(Failure::bad_input(
            "a node behind a socket has no device nodes for containers",
        )
        .hint("Serve it as files: cxi-mock run --door fuse."));
    }
    let specification = describe(arguments, node);
    let text = format!("{specification:#}\n");
    let Some(path) = file else { return Ok(Report::new(text, &specification)) };
    if let Some(directory) = path.parent() {
        // If this fails, writing the file fails too and reports why.
        let _ = fs::create_dir_all(directory);
    }
    files::replace(path, &text)?;
    Ok(Report::of(format!("{}\n", path.display()), "written", &path))
}

fn describe(arguments: &CdiArgs, node: &Node) -> Value {
    let dev = Host::system().dev().to_owned();
    let (mut nodes, mut mounts, mut devices) = (Vec::new(), Vec::new(), Vec::new());
    for device in node.functions() {
        let path = dev.join(device.id().to_string());
        let edits = if fs::metadata(&path).is_ok_and(|found| !found.file_type().is_char_device()) {
            // A served mock has a FUSE file here instead of a character device.
            let host = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            mounts.push(mount(&host, &path, &["rw", "bind"]));
            edits(&[], mounts.last().as_slice())
        } else {
            nodes.push(json!({"path": path, "permissions": "rw"}));
            edits(nodes.last().as_slice(), &[])
        };
        devices.push(json!({"name": device.id(), "containerEdits": edits}));
    }
    let all: [Vec<&Value>; 2] = [nodes.iter().collect(), mounts.iter().collect()];
    let all = edits(&all[0], &all[1]);
    devices.push(json!({"name": EVERY_NIC, "containerEdits": all}));
    let mut specification = json!({"cdiVersion": VERSION, "kind": KIND, "devices": devices});
    let options = ["ro", "nosuid", "nodev", "rbind"];
    let more = arguments.mount.iter();
    let more: Vec<_> = more.map(|path| mount(path, path, &options)).collect();
    if !more.is_empty() {
        // These apply to containers with any of the devices.
        specification["containerEdits"] = json!({"mounts": more});
    }
    specification
}

fn mount(host: &Path, container: &Path, options: &[&str]) -> Value {
    json!({"hostPath": host, "containerPath": container, "options": options})
}

/// The edits for a container with a device, without empty lists.
fn edits(nodes: &[&Value], mounts: &[&Value]) -> Value {
    let lists = [("deviceNodes", nodes), ("mounts", mounts)];
    let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
    lists.map(|(name, list)| (name, json!(list))).collect()
}
