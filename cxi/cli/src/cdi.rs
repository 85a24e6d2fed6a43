//! `cxi cdi`: the NICs as devices of the Container Device Interface.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use cxi::Host;
use serde::Serialize;

use crate::exit::Failure;
use crate::files;
use crate::node::{Node, reading};
use crate::options::Common;
use crate::output::Report;

/// Nothing here is younger than this version, which all runtimes with CDI know.
const VERSION: &str = "0.3.0";
/// The kind that sites name already.
const KIND: &str = "hpe.com/cxi";
const EVERY_NIC: &str = "all";
/// Where runtimes look for it.
const FILE: &str = "/etc/cdi/hpe.com-cxi.json";

#[derive(Debug, Args)]
pub(crate) struct CdiArgs {
    /// Write a file, or /etc/cdi/hpe.com-cxi.json if none is named, instead of printing. It is
    /// replaced as a whole
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[allow(clippy::option_option, reason = "how clap spells an optional value")]
    output: Option<Option<PathBuf>>,
    /// A file or directory of this machine, such as a library, that containers with a NIC also see,
    /// at the same path and read-only
    #[arg(long, value_name = "PATH", value_parser = absolute)]
    mount: Vec<PathBuf>,
}

fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() {
        Ok(path)
    } else {
        Err("expected an absolute path".to_owned())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Specification {
    cdi_version: &'static str,
    kind: &'static str,
    devices: Vec<NamedDevice>,
    /// What a container with any of the devices gets.
    #[serde(skip_serializing_if = "Edits::is_empty")]
    container_edits: Edits,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NamedDevice {
    name: String,
    container_edits: Edits,
}

#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Edits {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    device_nodes: Vec<DeviceNode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mounts: Vec<Mount>,
}

#[derive(Clone, Serialize)]
struct DeviceNode {
    path: PathBuf,
    permissions: &'static str,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Mount {
    host_path: PathBuf,
    container_path: PathBuf,
    options: Vec<&'static str>,
}

impl Edits {
    fn is_empty(&self) -> bool {
        self.device_nodes.is_empty() && self.mounts.is_empty()
    }

    fn device(path: PathBuf) -> Self {
        // What a served mock has in its place is a file.
        if fs::metadata(&path).is_ok_and(|found| !found.file_type().is_char_device()) {
            let mount = Mount {
                host_path: fs::canonicalize(&path).unwrap_or_else(|_| path.clone()),
                container_path: path,
                options: vec!["rw", "bind"],
            };
            return Self {
                mounts: vec![mount],
                ..Self::default()
            };
        }
        let node = DeviceNode {
            path,
            permissions: "rw",
        };
        Self {
            device_nodes: vec![node],
            ..Self::default()
        }
    }

    fn mount(path: &Path) -> Mount {
        Mount {
            host_path: path.to_owned(),
            container_path: path.to_owned(),
            options: vec!["ro", "nosuid", "nodev", "rbind"],
        }
    }
}

/// The report about a specification that is in a file.
#[derive(Serialize)]
struct Written<'a> {
    written: &'a Path,
}

pub(crate) fn run(arguments: &CdiArgs, common: &Common) -> Result<Report, Failure> {
    let file = arguments.output.as_ref();
    let file = file
        .map(|named| common.machine_path("--output=FILE", named.as_ref(), FILE))
        .transpose()?;
    reading(common, |node| of_node(arguments, node, file.as_deref()))
}

fn of_node(arguments: &CdiArgs, node: &Node, file: Option<&Path>) -> Result<Report, Failure> {
    let specification = describe(arguments, node);
    let text = serde_json::to_string_pretty(&specification)
        .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?
        + "\n";
    let Some(path) = file else {
        return Ok(Report::verbatim(text));
    };
    if let Some(directory) = path.parent() {
        // An error shows when the file is written.
        let _ = fs::create_dir_all(directory);
    }
    files::replace(path, &text)?;
    let text = format!("{}\n", path.display());
    Ok(Report::new(text, &Written { written: path }))
}

fn describe(arguments: &CdiArgs, node: &Node) -> Specification {
    let dev = Host::system().dev().to_owned();
    let mut devices: Vec<NamedDevice> = node
        .devices()
        .iter()
        .map(|device| NamedDevice {
            name: device.id().to_string(),
            container_edits: Edits::device(dev.join(device.id().to_string())),
        })
        .collect();
    let mut all = Edits::default();
    for Edits {
        device_nodes,
        mounts,
    } in devices.iter().map(|device| device.container_edits.clone())
    {
        all.device_nodes.extend(device_nodes);
        all.mounts.extend(mounts);
    }
    devices.push(NamedDevice {
        name: EVERY_NIC.to_owned(),
        container_edits: all,
    });
    let mounts = arguments.mount.iter().map(|path| Edits::mount(path));
    Specification {
        cdi_version: VERSION,
        kind: KIND,
        devices,
        container_edits: Edits {
            device_nodes: Vec::new(),
            mounts: mounts.collect(),
        },
    }
}
