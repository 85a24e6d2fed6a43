//! `cxi integration install`: the scripts for a scheduler, with absolute paths, because the programs
//! that they call need not be in a prolog's `PATH`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use clap::{Subcommand, ValueEnum};
use serde::Serialize;

use crate::exit::Failure;
use crate::files::this_program;
use crate::options::Common;
use crate::output::Report;

#[derive(Debug, Subcommand)]
pub(crate) enum IntegrationCommand {
    /// Write the scripts and settings for a scheduler
    ///
    /// Existing settings are not changed.
    Install {
        /// The scheduler
        scheduler: Scheduler,
        /// Directory for them [default: /etc/cxi]
        #[arg(long, value_name = "DIR")]
        prefix: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Scheduler {
    Slurm,
    Flux,
}

/// A file below the directory, and what is in it.
type Template = (&'static str, &'static str);

macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../integration/", $name)))),*]
    };
}

const SLURM: &[Template] = templates![
    "slurm/prolog.sh",
    "slurm/epilog.sh",
    "slurm/task-prolog.sh",
    "slurm/task-epilog.sh",
    "slurm/prolog-slurmctld.sh",
    "slurm/epilog-slurmctld.sh",
    "slurm/sweep.sh",
    "slurm/primary.sh",
    "slurm/health-check.sh",
    "slurm/slurm.conf",
    "slurm/cxi.toml",
    "slurm/systemd/slurmd.service.d/cxi.conf",
    "slurm/systemd/slurmctld.service.d/cxi.conf",
    "slurm/systemd/cxi-slurm-sweep.service",
    "slurm/systemd/cxi-slurm-sweep.timer",
];

const FLUX: &[Template] = templates![
    "flux/prolog.sh",
    "flux/epilog.sh",
    "flux/housekeeping.sh",
    "flux/clean.sh",
    "flux/sweep.sh",
    "flux/flux-job.sh",
    "flux/jobtap.c",
    "flux/slingshot.lua",
    "flux/cxi.toml",
    "flux/systemd/flux.service.d/cxi.conf",
    "flux/systemd/cxi-flux-clean.service",
    "flux/systemd/cxi-flux-clean.timer",
    "flux/systemd/cxi-flux-sweep.service",
    "flux/systemd/cxi-flux-sweep.timer",
];

/// The paths in the templates, which are replaced.
const PREFIX: &str = "/etc/cxi";
const THIS: &str = "/usr/bin/cxi";
const PROGRAMS: [&str; 4] = ["scontrol", "scancel", "squeue", "flux"];

pub(crate) fn run(command: &IntegrationCommand, common: &Common) -> Result<Report, Failure> {
    #[derive(Serialize)]
    struct Installed {
        written: Vec<PathBuf>,
        kept: Vec<PathBuf>,
    }
    let IntegrationCommand::Install { scheduler, prefix } = command;
    let prefix = common.machine_path("--prefix", prefix.as_ref(), PREFIX)?;
    let prefix =
        std::path::absolute(&prefix).map_err(|error| Failure::unwritten(&prefix, &error))?;
    let mut paths =
        vec![(PREFIX.to_owned(), plain(&prefix)?), (THIS.to_owned(), plain(&this_program()?)?)];
    for program in PROGRAMS {
        if let Some(found) = in_path(program) {
            paths.push((format!("/usr/bin/{program}"), plain(&found)?));
        }
    }
    let templates = match scheduler {
        Scheduler::Slurm => SLURM,
        Scheduler::Flux => FLUX,
    };
    let mut json = Installed { written: Vec::new(), kept: Vec::new() };
    for (name, template) in templates {
        let settings = name.ends_with("cxi.toml");
        let path = prefix.join(if settings { "cxi.toml" } else { name });
        if settings && path.exists() {
            json.kept.push(path);
            continue;
        }
        let text = lines_with(template, &paths);
        write(&path, &text).map_err(|error| Failure::unwritten(&path, &error))?;
        json.written.push(path);
    }
    let lines = json.written.iter().map(|path| format!("Wrote {}\n", path.display()));
    let kept = json.kept.iter().map(|path| format!("Kept {}\n", path.display()));
    let text: String = lines.chain(kept).collect();
    Ok(Report::new(text, &json))
}

/// Replaces paths, except in comments, which show the usual ones.
fn lines_with(template: &str, paths: &[(String, String)]) -> String {
    let replaced = |line: &str| {
        if line.starts_with('#') {
            return line.to_owned();
        }
        paths.iter().fold(line.to_owned(), |line, (usual, path)| line.replace(usual, path))
    };
    template.lines().map(|line| replaced(line) + "\n").collect()
}

/// A path that needs no quotes in a shell script, in slurm.conf or in a systemd unit.
fn plain(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().unwrap_or_default();
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-".contains(&byte);
    if text.is_empty() || !text.bytes().all(usual) {
        return Err(Failure::bad_input(format!(
            "invalid path '{}': expected letters, digits and / . _ + -, because scripts contain it unquoted",
            path.display()
        )));
    }
    Ok(text.to_owned())
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let mut places = env::split_paths(&path).map(|directory| directory.join(program));
    places.find(|place| place.is_absolute() && place.is_file())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, text)?;
    let program = text.starts_with("#!");
    fs::set_permissions(path, fs::Permissions::from_mode(if program { 0o755 } else { 0o644 }))
}
