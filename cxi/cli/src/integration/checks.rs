//! Refusals, so that no job is harmed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::cli::{Machine, Scheduler};
use crate::exit::{Exit, Failure};
use crate::files::{self, LONGEST};
use crate::job::node::foreign;
use crate::options::Common;

/// Files in which distributions and Slurm itself have its settings, and in which a `slurmd` has those that it got
/// from the controller.
const SLURM_CONF: [&str; 4] = [
    "/etc/slurm/slurm.conf",
    "/etc/slurm-llnl/slurm.conf",
    "/usr/local/etc/slurm.conf",
    "/run/slurm/conf/slurm.conf",
];
/// Directories of files with Flux's settings, and of links to its scripts and plugins.
const FLUX: [&str; 7] = [
    "/etc/flux/system/conf.d",
    "/etc/flux/system/prolog.d",
    "/etc/flux/system/epilog.d",
    "/etc/flux/system/housekeeping.d",
    "/etc/flux/imp/conf.d",
    "/etc/flux/shell/lua.d",
    "/etc/flux/shell/initrc.d",
];
/// Depth to which files may include others.
const DEPTH: u32 = 8;

/// The scripts and health checks destroy nothing foreign, but a node whose jobs another scheduler
/// still runs must not get prologs of this one.
pub(super) fn refuse_foreign(common: &Common) -> Result<(), Failure> {
    let foreign = foreign(common)
        .map_err(|failure| failure.hint("With --despite-services, services are not looked at"))?;
    if foreign.is_empty() {
        return Ok(());
    }
    let list = foreign.iter().map(|(device, service)| format!("{device} service {}", service.id()));
    let list: Vec<_> = list.collect();
    let message = format!("no record says who made {}: is this node in use?", list.join(", "));
    Err(Failure::new(Exit::Busy, message)
        .hint("Drain the node first, or enable with --despite-services"))
}

/// Slurm's commands fail while slurm.conf includes a file that is gone, and jobs while it, or Flux, runs
/// a script that is gone.
pub(super) fn refuse_used(scheduler: Scheduler, machine: &Machine) -> Result<(), Failure> {
    let directory = machine.prefix.join(scheduler.name());
    let (found, remedy) = match scheduler {
        Scheduler::Slurm => {
            let named = env::var_os("SLURM_CONF").map(PathBuf::from);
            let named = named.filter(|_| !machine.is_image());
            let mut all = named.into_iter().chain(SLURM_CONF.map(PathBuf::from));
            let remedy = "Remove that line everywhere, restart Slurm's daemons, and try again";
            (all.find_map(|path| used_by(&path, &directory, machine, DEPTH).transpose()), remedy)
        }
        Scheduler::Flux => {
            let remedy = "Remove that, restart Flux, and try again";
            (FLUX.iter().find_map(|path| linked_in(path, &directory, machine).transpose()), remedy)
        }
    };
    let Some(found) = found.transpose()? else { return Ok(()) };
    let (by, scheduler) = (found.display(), scheduler.name());
    let message = format!("{by} uses {}, and {scheduler} fails without it", directory.display());
    Err(Failure::new(Exit::Busy, message).hint(remedy))
}

/// The file of Slurm's settings that names a file of the directory: `path`, or one that it includes.
fn used_by(
    path: &Path,
    directory: &Path,
    machine: &Machine,
    depth: u32,
) -> Result<Option<PathBuf>, Failure> {
    let here = machine.here(path);
    if depth == 0 || !here.is_file() {
        return Ok(None);
    }
    let text = files::read(&here, LONGEST)?.text;
    for line in text.lines().filter_map(|line| line.split('#').next()) {
        if names(line, directory) {
            return Ok(Some(path.to_owned()));
        }
        let mut words = line.split_whitespace();
        if !words.next().is_some_and(|word| word.eq_ignore_ascii_case("include")) {
            continue;
        }
        // Slurm takes a relative path from the directory of slurm.conf.
        let Some(other) = words.next().zip(path.parent()).map(|(word, base)| base.join(word))
        else {
            continue;
        };
        let real = |path: &Path| fs::canonicalize(machine.here(path)).ok();
        if real(&other).zip(real(directory)).is_some_and(|(file, ours)| file.starts_with(ours)) {
            return Ok(Some(path.to_owned()));
        }
        if let Some(found) = used_by(&other, directory, machine, depth - 1)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns whether a line of settings has the path of a file in the directory.
fn names(line: &str, directory: &Path) -> bool {
    directory.to_str().is_some_and(|directory| line.contains(&format!("{directory}/")))
}

/// The entry of a directory of Flux's that leads to a file in ours, or names one.
fn linked_in(flux: &str, ours: &Path, machine: &Machine) -> Result<Option<PathBuf>, Failure> {
    let Ok(entries) = fs::read_dir(machine.here(Path::new(flux))) else { return Ok(None) };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        let leads = fs::read_link(&path).is_ok_and(|target| target.starts_with(ours));
        let has = || -> Result<bool, Failure> {
            if !path.is_file() {
                return Ok(false);
            }
            let text = files::read_lossy(&path, LONGEST)?.text;
            Ok(text.lines().any(|line| !line.trim_start().starts_with('#') && names(line, ours)))
        };
        if leads || has()? {
            return Ok(Some(machine.there(path)));
        }
    }
    Ok(None)
}
