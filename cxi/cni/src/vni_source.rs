//! The source of a pod's VNIs.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, thread};

use cxi::{Vni, kernel_file};
use cxi_site::{IdSet, durable, end_within};
use serde::Deserialize;

use crate::call::Container;
use crate::error::{Code, Error};
use crate::record::Attachment;

/// The key of `CNI_ARGS` with the VNIs.
const ARGUMENT: &str = "CXI_VNIS";
/// The most bytes of a program's output.
const LONGEST: u64 = 64 << 10;

/// The VNIs of a pod, the application's first. Empty if the pod needs none.
pub(crate) type VniList = Vec<Vni>;

/// The source of a pod's VNIs.
#[derive(Debug, Deserialize)]
#[serde(
    tag = "source",
    rename_all = "lowercase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub(crate) enum VniSource {
    /// The configuration: all pods of the network have the same.
    Static { vnis: VniList },
    /// The runtime: `cxiVnis` of `runtimeConfig` or of `args.cni`, or `CXI_VNIS` of `CNI_ARGS`.
    Args {
        /// The VNIs that may be requested: authors of pod annotations are not trusted with others.
        allowed: IdSet,
    },
    /// A file that an agent on the node writes for each pod.
    File { path: String },
    /// A program that is called like a plugin; after DEL it learns that the VNIs are free on this
    /// node.
    Exec {
        program: PathBuf,
        #[serde(default = "timeout")]
        timeout_seconds: u32,
    },
}

const fn timeout() -> u32 {
    10
}

/// The answer of a file or program.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    vnis: VniList,
}

impl VniSource {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |text: &str| Err(Error::new(Code::Configuration, format!("cxi.vnis: {text}")));
        match self {
            Self::Static { vnis } if vnis.is_empty() => wrong("expected at least one VNI"),
            Self::File { path } if !path.starts_with('/') => {
                wrong("path: expected an absolute path")
            }
            Self::Exec { program, .. } if !program.is_absolute() => {
                wrong("program: expected an absolute path")
            }
            _ => Ok(()),
        }
    }

    /// The VNIs that a pod requests. `asked` is the request in the configuration.
    pub(crate) fn wanted(
        &self,
        container: &Container,
        asked: &[VniList],
    ) -> Result<VniList, Error> {
        match self {
            Self::Static { vnis } => Ok(vnis.clone()),
            Self::Args { allowed } => from_arguments(container, asked, allowed),
            Self::File { path } => from_file(Path::new(&filled(path, container)?)),
            Self::Exec { program, timeout_seconds } => {
                let text = call(
                    program,
                    *timeout_seconds,
                    "ADD",
                    &container.attachment,
                    &container.arguments,
                )?;
                parse(&program.display().to_string(), &text)
            }
        }
    }

    /// Notifies the source that no service of an attachment is left on this node.
    pub(crate) fn released(&self, attachment: &Attachment) -> Result<(), Error> {
        match self {
            Self::Exec { program, timeout_seconds } => {
                call(program, *timeout_seconds, "DEL", attachment, &[]).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Checks that the source is available.
    pub(crate) fn is_ready(&self) -> Result<(), Error> {
        let needed = match self {
            Self::Static { .. } | Self::Args { .. } => return Ok(()),
            // Directories may be named by the pod.
            Self::File { path } => {
                let fixed = path.split('{').next().unwrap_or_default();
                fixed.rfind('/').map_or("/", |end| &fixed[..=end]).into()
            }
            Self::Exec { program, .. } => program.clone(),
        };
        durable::answers(&needed)
            .and_then(|()| fs::metadata(&needed))
            .map(drop)
            .map_err(|error| Error::new(Code::NotServing, format!("{}: {error}", needed.display())))
    }
}

fn from_arguments(
    container: &Container,
    asked: &[VniList],
    allowed: &IdSet,
) -> Result<VniList, Error> {
    let mut asked = asked.to_vec();
    if let Some(text) = container.argument(ARGUMENT) {
        let vnis: Result<VniList, _> = text.split(',').map(str::parse).collect();
        asked.push(vnis.map_err(|error| {
            Error::new(Code::Environment, format!("CNI_ARGS: {ARGUMENT}: {error}"))
        })?);
    }
    let Some(first) = asked.first() else { return Ok(Vec::new()) };
    if let Some(other) = asked.iter().find(|other| *other != first) {
        return Err(Error::new(
            Code::Configuration,
            format!("the VNIs are requested twice: {} and {}", in_words(first), in_words(other)),
        ));
    }
    if let Some(vni) = first.iter().find(|vni| !allowed.contains(vni.get())) {
        return Err(Error::new(
            Code::Vni,
            format!("VNI {vni} is not allowed in this network: expected one of {allowed}"),
        ));
    }
    Ok(first.clone())
}

fn in_words(vnis: &[Vni]) -> String {
    let names: Vec<_> = vnis.iter().map(Vni::to_string).collect();
    names.join(",")
}

/// A path with `{containerID}`, `{ifname}` and the keys of `CNI_ARGS` filled in.
fn filled(path: &str, container: &Container) -> Result<String, Error> {
    let wrong = |text: String| Error::new(Code::Configuration, format!("cxi.vnis: path: {text}"));
    let mut parts = path.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (key, rest) =
            part.split_once('}').ok_or_else(|| wrong("'{' without '}'".to_owned()))?;
        let value = match key {
            "containerID" => Some(&*container.attachment.container),
            "ifname" => Some(&*container.attachment.interface),
            _ => container.argument(key),
        };
        let value = value.ok_or_else(|| wrong(format!("CNI_ARGS has no {key}")))?;
        if matches!(value, "" | "." | "..") || value.contains('/') {
            return Err(wrong(format!("invalid {key} {value:?}: expected the name of a file")));
        }
        filled += value;
        filled += rest;
    }
    Ok(filled)
}

fn from_file(path: &Path) -> Result<VniList, Error> {
    let name = path.display().to_string();
    match durable::answers(path).and_then(|()| kernel_file::read(path)) {
        Ok(text) => parse(&name, &text),
        // The pod may need none, or the agent may be late.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::new(
            Code::TryAgain,
            format!("{name}: the VNIs of the pod are not available yet"),
        )),
        Err(error) => Err(Error::new(Code::Io, format!("{name}: {error}"))),
    }
}

fn parse(name: &str, text: &str) -> Result<VniList, Error> {
    let answer: Answer = serde_json::from_str(text)
        .map_err(|error| Error::new(Code::Decoding, format!("{name}: {error}")))?;
    Ok(answer.vnis)
}

/// Runs a program and returns what it printed.
fn call(
    program: &Path,
    seconds: u32,
    command: &str,
    attachment: &Attachment,
    arguments: &[(String, String)],
) -> Result<String, Error> {
    let name = program.display();
    let failed = |what: String| Error::new(Code::TryAgain, format!("{name}: {what}"));
    let arguments: Vec<_> = arguments.iter().map(|(key, value)| format!("{key}={value}")).collect();
    durable::answers(program).map_err(|error| failed(error.to_string()))?;
    let mut child = Command::new(program)
        .env("CNI_COMMAND", command)
        .env("CNI_CONTAINERID", &attachment.container)
        .env("CNI_IFNAME", &attachment.interface)
        .env("CNI_ARGS", arguments.join(";"))
        .env("CXI_NETWORK", &attachment.network)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let output = collected(child.stdout.take());
    let complaint = collected(child.stderr.take());
    let status = end_within(&mut child, Duration::from_secs(seconds.into()));
    let status = status.map_err(|error| failed(error.to_string()))?;
    let Some(status) = status else {
        return Err(failed(format!("did not end within {seconds} s")));
    };
    // The pipes are closed, unless a process that it started still has them open.
    let text = |pipe: mpsc::Receiver<String>| pipe.recv_timeout(Duration::from_secs(1));
    if !status.success() {
        let complaint = text(complaint).unwrap_or_default();
        return Err(failed(format!("{status}")).details(complaint.trim()));
    }
    text(output).map_err(|_| failed("its output is still open".to_owned()))
}

/// Reads a pipe in a separate thread.
fn collected(pipe: Option<impl io::Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // Bytes that were read before an error are used.
            let _ = pipe.by_ref().take(LONGEST).read_to_end(&mut bytes);
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        // After a timeout, there is no receiver.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}
