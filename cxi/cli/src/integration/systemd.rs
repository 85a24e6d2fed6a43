//! Orders to systemd, on a machine where it runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cxi_site::end_within;

use super::cli::Machine;
use crate::options::Common;

pub(super) const UNITS: &str = "/etc/systemd/system";
/// systemd has this directory where it runs, as `sd_booted` says.
const BOOTED: &str = "/run/systemd/system";
/// Time to wait for systemd, which may be busy with a unit that is slow to stop.
const DEADLINE: Duration = Duration::from_secs(30);

/// The name of the unit of ours in a file of systemd's; `None` for a drop-in, and for what is not in
/// such a directory.
fn unit_in<'a>(path: &'a Path, prefix: &Path) -> Option<&'a str> {
    let name = path.file_name()?.to_str()?;
    let is_unit =
        name.starts_with("cxi-") && [".service", ".timer"].iter().any(|it| name.ends_with(it));
    (is_unit && !path.starts_with(prefix)).then_some(name)
}

/// Returns whether a file is a unit of ours, or a drop-in for another.
fn is_of_systemd(path: &Path, prefix: &Path) -> bool {
    let is_drop_in =
        path.parent().is_some_and(|directory| directory.extension().is_some_and(|it| it == "d"));
    unit_in(path, prefix).is_some() || is_drop_in && !path.starts_with(prefix)
}

/// Stops the units that are about to be removed. Returns warnings.
pub(super) fn stop(paths: &[PathBuf], machine: &Machine, common: &Common) -> Option<String> {
    let units: Vec<&str> = paths.iter().filter_map(|path| unit_in(path, &machine.prefix)).collect();
    if units.is_empty() {
        return None;
    }
    tell(&[&["stop"], &units[..]].concat(), machine, common)
}

/// Lets systemd read its units again if some have changed. Returns a warning.
pub(super) fn reload(changed: &[PathBuf], machine: &Machine, common: &Common) -> Option<String> {
    if !changed.iter().any(|path| is_of_systemd(path, &machine.prefix)) {
        return None;
    }
    tell(&["daemon-reload"], machine, common)
}

/// Runs `systemctl` where systemd runs. Returns a warning if that fails.
fn tell(words: &[&str], machine: &Machine, common: &Common) -> Option<String> {
    if machine.is_image() || common.mock.is_some() || !Path::new(BOOTED).is_dir() {
        return None;
    }
    let line = format!("systemctl {}", words.join(" "));
    let started =
        Command::new("systemctl").args(words).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => return Some(format!("{line}: {error}: run it by hand")),
    };
    match end_within(&mut child, DEADLINE) {
        Ok(Some(status)) if status.success() => None,
        Ok(Some(status)) => Some(format!("{line}: {status}: run it by hand")),
        Ok(None) => Some(format!("{line}: not done within {DEADLINE:?}: run it by hand")),
        Err(error) => Some(format!("{line}: {error}: run it by hand")),
    }
}
