//! The record of the files that were written, so that nothing that an administrator has edited is
//! replaced or removed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use cxi_site::durable::{self, Owner};
use serde::{Deserialize, Serialize};

use super::cli::{Machine, Scheduler};
use super::diff::unified;
use super::scripts::SETTINGS;
use super::systemd;
use crate::exit::Failure;
use crate::files::{self, LONGEST};
use crate::options::Common;
use crate::output::Report;

/// The files that were written for a scheduler, as they were then, by their paths on the machine.
#[derive(Default, Deserialize, Serialize)]
pub(super) struct Placed(BTreeMap<PathBuf, String>);

impl Placed {
    fn file(machine: &Machine, scheduler: Scheduler) -> PathBuf {
        machine.prefix.join(scheduler.name()).join(".placed.json")
    }

    fn exists(machine: &Machine, scheduler: Scheduler) -> bool {
        machine.here(&Self::file(machine, scheduler)).exists()
    }

    pub(super) fn load(machine: &Machine, scheduler: Scheduler) -> Result<Self, Failure> {
        if !Self::exists(machine, scheduler) {
            return Ok(Self::default());
        }
        let path = machine.here(&Self::file(machine, scheduler));
        let text = files::read(&path, LONGEST)?.text;
        let invalid = |error| Failure::failed(format!("{}: invalid: {error}", path.display()));
        serde_json::from_str(&text).map_err(invalid)
    }

    fn save(&self, machine: &Machine, scheduler: Scheduler) -> Result<(), Failure> {
        let path = machine.here(&Self::file(machine, scheduler));
        let text = serde_json::to_string(self)
            .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        write(&path, &text).map_err(|error| Failure::unwritten(&path, &error))
    }

    /// Returns whether a file is as it was written.
    fn is(&self, path: &Path, found: &[u8]) -> bool {
        self.0.get(path).is_some_and(|text| text.as_bytes() == found)
    }

    /// Decides for each file: what an administrator has edited stays, and settings always do.
    pub(super) fn plan(
        self,
        wanted: Vec<(PathBuf, String)>,
        force: bool,
        machine: &Machine,
    ) -> Result<Plan, Failure> {
        let mut plan = Plan { placed: self, write: Vec::new(), kept: Vec::new() };
        for (path, text) in wanted {
            let found = contents(&machine.here(&path))?;
            let keep = match &found {
                None => false,
                Some(_) if path.ends_with(SETTINGS) => true,
                Some(found) => !force && found != text.as_bytes() && !plan.placed.is(&path, found),
            };
            if keep {
                plan.kept.push(path);
            } else {
                plan.write.push(Write { path, text, before: found });
            }
        }
        Ok(plan)
    }
}

struct Write {
    path: PathBuf,
    text: String,
    /// Contents of the file now.
    before: Option<Vec<u8>>,
}

/// Files to be written, and the record of those that were.
pub(super) struct Plan {
    placed: Placed,
    write: Vec<Write>,
    kept: Vec<PathBuf>,
}

#[derive(Serialize)]
struct InstalledJson {
    written: Vec<PathBuf>,
    kept: Vec<PathBuf>,
    /// Differences, if nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

impl Plan {
    /// Report of what it would do: the differences, and then, where a terminal still shows it, the files.
    pub(super) fn preview(self) -> Report {
        let mut diff = String::new();
        for Write { path, text, before } in &self.write {
            let before = before.as_ref().map(|bytes| String::from_utf8_lossy(bytes));
            if before.as_deref() != Some(text) {
                diff += &unified(path, before.as_deref(), text);
            }
        }
        let written = self.write.into_iter().map(|write| write.path).collect();
        let json = InstalledJson { written, kept: self.kept, diff: Some(diff) };
        let mut text = json.diff.clone().unwrap_or_default();
        text += &lines("Would write", &json.written);
        text += &lines("Would keep", &json.kept);
        Report::new(text + "Nothing was changed: --yes does it\n", &json)
    }

    pub(super) fn carry_out(
        mut self,
        scheduler: Scheduler,
        machine: &Machine,
        common: &Common,
    ) -> Result<Report, Failure> {
        let mut json = InstalledJson { written: Vec::new(), kept: self.kept, diff: None };
        let mut changed = Vec::new();
        for Write { path, text, before } in self.write {
            let here = machine.here(&path);
            write(&here, &text).map_err(|error| Failure::unwritten(&here, &error))?;
            if before.is_none_or(|before| before != text.as_bytes()) {
                changed.push(path.clone());
            }
            self.placed.0.insert(path.clone(), text);
            // A later failure must not make this file look like an edited one.
            self.placed.save(machine, scheduler)?;
            json.written.push(path);
        }
        let warning = systemd::reload(&changed, machine, common);
        let text = lines("Wrote", &json.written) + &lines("Kept", &json.kept);
        Ok(Report::new(text, &json).with_warnings(warning))
    }
}

#[derive(Serialize)]
struct DisabledJson {
    removed: Vec<PathBuf>,
    edited: Vec<PathBuf>,
    /// Files in the scheduler's directory that no command has written.
    others: Vec<PathBuf>,
}

/// Settings that both schedulers use stay with the other one.
pub(super) fn disable(
    scheduler: Scheduler,
    machine: &Machine,
    yes: bool,
    common: &Common,
) -> Result<Report, Failure> {
    let mut placed = Placed::load(machine, scheduler)?;
    let settings = machine.prefix.join(SETTINGS);
    let other = Scheduler::ALL.into_iter().find(|other| *other != scheduler);
    let heir = other.filter(|other| Placed::exists(machine, *other));
    let shared = heir.and_then(|heir| Some((heir, placed.0.remove(&settings)?)));
    let (removed, edited) = placed.compare(machine)?;
    let others = others(scheduler, &placed, machine);
    let json = DisabledJson { removed, edited, others };
    if !yes {
        let text = lines("Would remove", &json.removed)
            + &lines("Would keep", &json.edited)
            + &lines("Would keep", &json.others);
        return Ok(Report::new(text + "Nothing was changed: --yes does it\n", &json));
    }
    if let Some((heir, text)) = shared {
        let mut others = Placed::load(machine, heir)?;
        others.0.insert(settings, text);
        others.save(machine, heir)?;
    }
    let mut warnings = Vec::from_iter(systemd::stop(&json.removed, machine, common));
    for path in &json.removed {
        let here = machine.here(path);
        fs::remove_file(&here).map_err(|error| Failure::unwritten(&here, &error))?;
    }
    let record = machine.here(&Placed::file(machine, scheduler));
    if record.exists() {
        fs::remove_file(&record).map_err(|error| Failure::unwritten(&record, &error))?;
    }
    for path in placed.0.keys().map(|path| machine.here(path)).chain([record]) {
        // A directory that is not empty stays, and so does one of systemd's own.
        for directory in path.ancestors().skip(1) {
            let ours = directory.starts_with(machine.here(&machine.prefix))
                || directory.extension().is_some_and(|extension| extension == "d");
            if !ours || fs::remove_dir(directory).is_err() {
                break;
            }
        }
    }
    warnings.extend(systemd::reload(&json.removed, machine, common));
    let text = lines("Removed", &json.removed)
        + &lines("Kept, because it was edited:", &json.edited)
        + &lines("Kept, because it was not written by cxi:", &json.others);
    let nothing = placed.0.is_empty();
    Ok(Report::new(text, &json).nothing_to_do_if(nothing).with_warnings(warnings))
}

/// Files in the scheduler's directory that no command has written, such as the plugin that was built there.
fn others(scheduler: Scheduler, placed: &Placed, machine: &Machine) -> Vec<PathBuf> {
    let directory = machine.prefix.join(scheduler.name());
    let record = Placed::file(machine, scheduler);
    let Ok(entries) = fs::read_dir(machine.here(&directory)) else { return Vec::new() };
    let files = entries.filter_map(Result::ok).filter(|entry| !entry.path().is_dir());
    let paths = files.map(|entry| directory.join(entry.file_name()));
    let mut others: Vec<_> =
        paths.filter(|path| !placed.0.contains_key(path) && *path != record).collect();
    others.sort();
    others
}

#[derive(Serialize)]
struct StatusJson {
    unchanged: Vec<PathBuf>,
    edited: Vec<PathBuf>,
    /// As they were written, which this version would not do.
    outdated: Vec<PathBuf>,
}

/// `wanted` is what this version would write.
pub(super) fn status(
    scheduler: Scheduler,
    machine: &Machine,
    wanted: &[(PathBuf, String)],
) -> Result<Report, Failure> {
    let placed = Placed::load(machine, scheduler)?;
    let (found, edited) = placed.compare(machine)?;
    let is_outdated = |path: &PathBuf| {
        // A unit has the text of the script's directory.
        let below = machine.prefix.join(scheduler.name()).join("systemd");
        let same = |(other, _): &&(PathBuf, String)| {
            other == path || other.strip_prefix(&below).is_ok_and(|unit| path.ends_with(unit))
        };
        let text = wanted.iter().find(same).map(|(_, text)| text);
        // Settings are not replaced.
        !path.ends_with(SETTINGS) && text != placed.0.get(path)
    };
    let (outdated, unchanged): (Vec<_>, Vec<_>) = found.into_iter().partition(is_outdated);
    let mut text = lines("Unchanged", &unchanged)
        + &lines("Edited", &edited)
        + &lines("Of another version:", &outdated);
    if !outdated.is_empty() {
        text += &format!("cxi integration enable {} replaces them\n", scheduler.name());
    }
    if text.is_empty() {
        let (scheduler, prefix) = (scheduler.name(), machine.prefix.display());
        text = format!("Nothing was installed for {scheduler} in {prefix}\n");
    }
    Ok(Report::new(text, &StatusJson { unchanged, edited, outdated }))
}

impl Placed {
    /// The files that are as they were written, and those that somebody has edited.
    fn compare(&self, machine: &Machine) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Failure> {
        let (mut unchanged, mut edited) = (Vec::new(), Vec::new());
        for path in self.0.keys() {
            match contents(&machine.here(path))? {
                Some(found) if self.is(path, &found) => unchanged.push(path.clone()),
                Some(_) => edited.push(path.clone()),
                None => {}
            }
        }
        Ok((unchanged, edited))
    }
}

fn lines(done: &str, paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("{done} {}\n", path.display())).collect()
}

/// Contents of a file, if it is there. It need not be text.
fn contents(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match fs::read(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::failed(format!("{}: cannot be read: {error}", path.display()))),
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
    // A shell that runs the script reads on in the old file.
    durable::replace(path, text.as_bytes(), Owner::Set { uid: None, mode })
}
