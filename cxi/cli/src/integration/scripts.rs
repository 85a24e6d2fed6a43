//! The files for each scheduler, with the paths of a machine.

use std::env;
use std::path::{Path, PathBuf};

use super::cli::{Machine, PREFIX, Role, Scheduler};
use crate::exit::Failure;
use crate::files::this_program;

/// A file below the directory, and what is in it.
type Template = (&'static str, &'static str);

macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../integration/", $name)))),*]
    };
}

const SLURM: &[Template] = templates![
    "slurm/functions.sh",
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
    "flux/functions.sh",
    "flux/prolog.sh",
    "flux/epilog.sh",
    "flux/housekeeping.sh",
    "flux/clean.sh",
    "flux/sweep.sh",
    "flux/jobtap.c",
    "flux/slingshot.lua",
    "flux/cxi.toml",
    "flux/systemd/flux.service.d/cxi.conf",
    "flux/systemd/cxi-flux-clean.service",
    "flux/systemd/cxi-flux-clean.timer",
    "flux/systemd/cxi-flux-sweep.service",
    "flux/systemd/cxi-flux-sweep.timer",
];

fn templates(scheduler: Scheduler) -> &'static [Template] {
    match scheduler {
        Scheduler::Slurm => SLURM,
        Scheduler::Flux => FLUX,
    }
}

/// The settings, which both schedulers use.
pub(super) const SETTINGS: &str = "cxi.toml";
/// The paths in the templates, which are replaced.
const THIS: &str = "/usr/bin/cxi";
const PROGRAMS: [&str; 5] = ["scontrol", "scancel", "squeue", "sinfo", "flux"];

/// The files for a scheduler.
pub(super) fn scripts(
    scheduler: Scheduler,
    machine: &Machine,
) -> Result<Vec<(PathBuf, String)>, Failure> {
    let this = machine.there(this_program()?);
    let mut paths =
        vec![(PREFIX.to_owned(), plain(&machine.prefix)?), (THIS.to_owned(), plain(&this)?)];
    for program in PROGRAMS {
        if let Some(found) = in_path(program, machine) {
            paths.push((format!("/usr/bin/{program}"), plain(&found)?));
        }
    }
    let file = |(name, template): &Template| {
        let name = if name.ends_with(SETTINGS) { SETTINGS } else { name };
        (machine.prefix.join(name), lines_with(template, &paths))
    };
    Ok(templates(scheduler).iter().map(file).collect())
}

/// The scripts' units and drop-ins, for a directory of systemd's.
pub(super) fn units(
    scheduler: Scheduler,
    machine: &Machine,
    scripts: &[(PathBuf, String)],
    systemd: &Path,
    role: Option<Role>,
) -> Vec<(PathBuf, String)> {
    let below = machine.prefix.join(scheduler.name()).join("systemd");
    let unit = |(path, text): &(PathBuf, String)| {
        let unit = path.strip_prefix(&below).ok()?;
        let is_without = |role: Role| role.is_without(&unit.to_string_lossy());
        (!role.is_some_and(is_without)).then(|| (systemd.join(unit), text.clone()))
    };
    scripts.iter().filter_map(unit).collect()
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

/// Path of a program on the machine.
fn in_path(program: &str, machine: &Machine) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let mut places = env::split_paths(&path).map(|directory| directory.join(program));
    places.find(|place| place.is_absolute() && machine.here(place).is_file())
}
