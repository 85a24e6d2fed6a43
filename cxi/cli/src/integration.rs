//! `cxi integration`: the scripts for a scheduler, with absolute paths, because the programs that they
//! call need not be in a prolog's `PATH`. What was written is recorded, so that nothing that an
//! administrator has edited is replaced or removed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use clap::{Args, Subcommand, ValueEnum};
use cxi_job::durable::{self, Owner};
use serde::{Deserialize, Serialize};

use crate::exit::{Exit, Failure};
use crate::files::{self, LONGEST, this_program};
use crate::job::node::foreign;
use crate::options::Common;
use crate::output::Report;

#[derive(Debug, Subcommand)]
pub(crate) enum IntegrationCommand {
    /// Write the scripts and settings for a scheduler, which nothing runs yet
    ///
    /// Existing settings are not changed, and neither is a script that somebody has edited.
    Install {
        /// The scheduler
        scheduler: Scheduler,
        #[command(flatten)]
        place: Place,
        /// Replace scripts that somebody has edited, too
        #[arg(long)]
        force: bool,
    },
    /// Let systemd run the scripts for a scheduler on this machine
    ///
    /// Writes the scripts like install, and units and drop-ins for systemd. Without --yes, prints
    /// what it would do. Refuses on a node that has services of which no record says who made them.
    Enable {
        /// The scheduler
        scheduler: Scheduler,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        units: Units,
        /// Only what a machine of this role runs
        #[arg(long)]
        role: Option<Role>,
        /// Enable although there are services of which no record says who made them
        #[arg(long)]
        despite_services: bool,
        /// Do it
        #[arg(long)]
        yes: bool,
    },
    /// Remove what install and enable have written
    ///
    /// Files that somebody has edited are kept and named. Refuses while slurm.conf includes the
    /// settings for Slurm.
    Disable {
        /// The scheduler
        scheduler: Scheduler,
        #[command(flatten)]
        place: Place,
        /// Do it
        #[arg(long)]
        yes: bool,
    },
    /// Show what install and enable have written, and what somebody has edited since
    Status {
        /// The scheduler
        scheduler: Scheduler,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Directory for scripts and settings [default: /etc/cxi]
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Units {
    /// Directory of systemd's units [default: /etc/systemd/system]
    #[arg(long, value_name = "DIR")]
    systemd: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Scheduler {
    Slurm,
    Flux,
}

impl Scheduler {
    const ALL: [Self; 2] = [Self::Slurm, Self::Flux];

    fn name(self) -> &'static str {
        match self {
            Self::Slurm => "slurm",
            Self::Flux => "flux",
        }
    }

    fn templates(self) -> &'static [Template] {
        match self {
            Self::Slurm => SLURM,
            Self::Flux => FLUX,
        }
    }
}

/// Role of a machine in the cluster.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Role {
    Controller,
    Node,
}

impl Role {
    /// Returns whether only a machine of the other role runs this unit.
    fn is_without(self, unit: &str) -> bool {
        let others: &[&str] = match self {
            Self::Controller => &["slurmd.service.d/", "cxi-flux-clean."],
            Self::Node => &["slurmctld.service.d/", "cxi-slurm-sweep.", "cxi-flux-sweep."],
        };
        others.iter().any(|other| unit.starts_with(other))
    }
}

/// A file below the directory, and what is in it.
type Template = (&'static str, &'static str);

macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../integration/", $name)))),*]
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
    "flux/prolog.sh",
    "flux/epilog.sh",
    "flux/housekeeping.sh",
    "flux/clean.sh",
    "flux/sweep.sh",
    "flux/functions.sh",
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
const SETTINGS: &str = "cxi.toml";
const PREFIX: &str = "/etc/cxi";
const THIS: &str = "/usr/bin/cxi";
const PROGRAMS: [&str; 5] = ["scontrol", "scancel", "squeue", "sinfo", "flux"];

const SYSTEMD: &str = "/etc/systemd/system";
/// Files in which distributions and Slurm itself have its settings.
const SLURM_CONF: [&str; 3] =
    ["/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/usr/local/etc/slurm.conf"];

pub(crate) fn run(command: &IntegrationCommand, common: &Common) -> Result<Report, Failure> {
    match command {
        IntegrationCommand::Install { scheduler, place, force } => {
            let prefix = place.directory(common)?;
            let wanted = scripts(*scheduler, &prefix)?;
            let plan = Placed::load(&prefix, *scheduler)?.plan(wanted, *force)?;
            plan.carry_out(*scheduler, &prefix)
        }
        IntegrationCommand::Enable { scheduler, place, units, role, despite_services, yes } => {
            let prefix = place.directory(common)?;
            let systemd = common.machine_path("--systemd", units.systemd.as_ref(), SYSTEMD)?;
            if *role != Some(Role::Controller) && !despite_services {
                refuse_foreign(common)?;
            }
            let mut wanted = scripts(*scheduler, &prefix)?;
            let below = prefix.join(scheduler.name()).join("systemd");
            let all: Vec<_> = wanted
                .iter()
                .filter_map(|(path, text)| {
                    let unit = path.strip_prefix(&below).ok()?;
                    let is_without = |role: Role| role.is_without(&unit.to_string_lossy());
                    (!role.is_some_and(is_without)).then(|| (systemd.join(unit), text.clone()))
                })
                .collect();
            wanted.extend(all);
            let plan = Placed::load(&prefix, *scheduler)?.plan(wanted, false)?;
            if *yes { plan.carry_out(*scheduler, &prefix) } else { Ok(plan.preview()) }
        }
        IntegrationCommand::Disable { scheduler, place, yes } => {
            let prefix = place.directory(common)?;
            if *scheduler == Scheduler::Slurm {
                refuse_included(&prefix.join("slurm/slurm.conf"))?;
            }
            disable(*scheduler, &prefix, *yes)
        }
        IntegrationCommand::Status { scheduler, place } => {
            status(*scheduler, &place.directory(common)?)
        }
    }
}

impl Place {
    fn directory(&self, common: &Common) -> Result<PathBuf, Failure> {
        let prefix = common.machine_path("--prefix", self.prefix.as_ref(), PREFIX)?;
        std::path::absolute(&prefix).map_err(|error| Failure::unwritten(&prefix, &error))
    }
}

/// The files for a scheduler, with the paths of this machine.
fn scripts(scheduler: Scheduler, prefix: &Path) -> Result<Vec<(PathBuf, String)>, Failure> {
    let mut paths =
        vec![(PREFIX.to_owned(), plain(prefix)?), (THIS.to_owned(), plain(&this_program()?)?)];
    for program in PROGRAMS {
        if let Some(found) = in_path(program) {
            paths.push((format!("/usr/bin/{program}"), plain(&found)?));
        }
    }
    let file = |(name, template): &Template| {
        let name = if name.ends_with(SETTINGS) { SETTINGS } else { name };
        (prefix.join(name), lines_with(template, &paths))
    };
    Ok(scheduler.templates().iter().map(file).collect())
}

/// The scripts and health checks destroy nothing foreign, but a node whose jobs another scheduler
/// still runs must not get prologs of this one.
fn refuse_foreign(common: &Common) -> Result<(), Failure> {
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

/// Slurm's commands fail while slurm.conf includes a file that is gone.
fn refuse_included(settings: &Path) -> Result<(), Failure> {
    let named = env::var_os("SLURM_CONF").map(PathBuf::from);
    for path in named.into_iter().chain(SLURM_CONF.map(PathBuf::from)) {
        if !path.exists() {
            continue;
        }
        let text = files::read(&path, LONGEST)?.text;
        let includes = |line: &str| {
            let mut words = line.split_whitespace();
            words.next().is_some_and(|word| word.eq_ignore_ascii_case("include"))
                && words.next().is_some_and(|word| Path::new(word) == settings)
        };
        if text.lines().any(includes) {
            let (path, settings) = (path.display(), settings.display());
            return Err(Failure::new(
                Exit::Busy,
                format!("{path} includes {settings}, without which Slurm's commands fail"),
            )
            .hint("Remove that line everywhere, run scontrol reconfigure, and try again"));
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct Installed {
    written: Vec<PathBuf>,
    kept: Vec<PathBuf>,
}

/// Files that are to be written, and the record of those that were.
struct Plan {
    placed: Placed,
    write: Vec<(PathBuf, String)>,
    kept: Vec<PathBuf>,
}

impl Plan {
    fn preview(self) -> Report {
        let json = Installed {
            written: self.write.into_iter().map(|(path, _)| path).collect(),
            kept: self.kept,
        };
        let mut text = lines("Would write", &json.written) + &lines("Would keep", &json.kept);
        text += "Nothing was changed: --yes does it\n";
        Report::new(text, &json)
    }

    fn carry_out(mut self, scheduler: Scheduler, prefix: &Path) -> Result<Report, Failure> {
        let mut json = Installed { written: Vec::new(), kept: self.kept };
        for (path, text) in self.write {
            write(&path, &text).map_err(|error| Failure::unwritten(&path, &error))?;
            self.placed.0.insert(path.clone(), text);
            // A later failure must not make this file look like an edited one.
            self.placed.save(prefix, scheduler)?;
            json.written.push(path);
        }
        Ok(Report::new(lines("Wrote", &json.written) + &lines("Kept", &json.kept), &json))
    }
}

/// The files that were written for a scheduler, as they were then.
#[derive(Default, Deserialize, Serialize)]
struct Placed(BTreeMap<PathBuf, String>);

impl Placed {
    fn file(prefix: &Path, scheduler: Scheduler) -> PathBuf {
        prefix.join(scheduler.name()).join(".placed.json")
    }

    fn load(prefix: &Path, scheduler: Scheduler) -> Result<Self, Failure> {
        let path = Self::file(prefix, scheduler);
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = files::read(&path, LONGEST)?.text;
        let invalid = |error| Failure::failed(format!("{}: invalid: {error}", path.display()));
        serde_json::from_str(&text).map_err(invalid)
    }

    fn save(&self, prefix: &Path, scheduler: Scheduler) -> Result<(), Failure> {
        let path = Self::file(prefix, scheduler);
        let text = serde_json::to_string(self)
            .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        write(&path, &text).map_err(|error| Failure::unwritten(&path, &error))
    }

    /// Decides for each file: what an administrator has edited stays, and settings always do.
    fn plan(self, wanted: Vec<(PathBuf, String)>, force: bool) -> Result<Plan, Failure> {
        let mut plan = Plan { placed: self, write: Vec::new(), kept: Vec::new() };
        for (path, text) in wanted {
            let keep = match contents(&path)? {
                None => false,
                Some(_) if path.ends_with(SETTINGS) => true,
                Some(found) => !force && found != text.as_bytes() && !plan.placed.is(&path, &found),
            };
            if keep { plan.kept.push(path) } else { plan.write.push((path, text)) }
        }
        Ok(plan)
    }

    /// Returns whether a file is as it was written.
    fn is(&self, path: &Path, found: &[u8]) -> bool {
        self.0.get(path).is_some_and(|text| text.as_bytes() == found)
    }
}

#[derive(Serialize)]
struct Removed {
    removed: Vec<PathBuf>,
    edited: Vec<PathBuf>,
}

/// Settings that both schedulers use stay with the other one.
fn disable(scheduler: Scheduler, prefix: &Path, yes: bool) -> Result<Report, Failure> {
    let mut placed = Placed::load(prefix, scheduler)?;
    let settings = prefix.join(SETTINGS);
    let other = Scheduler::ALL.into_iter().find(|other| *other != scheduler);
    let heir = other.filter(|other| Placed::file(prefix, *other).exists());
    let shared = heir.and_then(|heir| Some((heir, placed.0.remove(&settings)?)));
    let json = compare(&placed)?;
    if !yes {
        let text = lines("Would remove", &json.removed) + &lines("Would keep", &json.edited);
        return Ok(Report::new(text + "Nothing was changed: --yes does it\n", &json));
    }
    if let Some((heir, text)) = shared {
        let mut others = Placed::load(prefix, heir)?;
        others.0.insert(settings, text);
        others.save(prefix, heir)?;
    }
    for path in &json.removed {
        fs::remove_file(path).map_err(|error| Failure::unwritten(path, &error))?;
    }
    let record = Placed::file(prefix, scheduler);
    if record.exists() {
        fs::remove_file(&record).map_err(|error| Failure::unwritten(&record, &error))?;
    }
    for path in placed.0.keys().chain([&record]) {
        // A directory that is not empty stays, and so does one of systemd's own.
        for directory in path.ancestors().skip(1) {
            let ours = directory.starts_with(prefix)
                || directory.extension().is_some_and(|extension| extension == "d");
            if !ours || fs::remove_dir(directory).is_err() {
                break;
            }
        }
    }
    let text =
        lines("Removed", &json.removed) + &lines("Kept, because it was edited:", &json.edited);
    Ok(Report::new(text, &json).nothing_to_do_if(placed.0.is_empty()))
}

#[derive(Serialize)]
struct StatusJson {
    unchanged: Vec<PathBuf>,
    edited: Vec<PathBuf>,
}

fn status(scheduler: Scheduler, prefix: &Path) -> Result<Report, Failure> {
    let Removed { removed: unchanged, edited } = compare(&Placed::load(prefix, scheduler)?)?;
    let mut text = lines("Unchanged", &unchanged) + &lines("Edited", &edited);
    if text.is_empty() {
        text = format!("Nothing was installed for {} in {}\n", scheduler.name(), prefix.display());
    }
    Ok(Report::new(text, &StatusJson { unchanged, edited }))
}

/// Files that are as they were written, which a removal takes, and others.
fn compare(placed: &Placed) -> Result<Removed, Failure> {
    let mut json = Removed { removed: Vec::new(), edited: Vec::new() };
    for path in placed.0.keys() {
        match contents(path)? {
            Some(found) if placed.is(path, &found) => json.removed.push(path.clone()),
            Some(_) => json.edited.push(path.clone()),
            None => {}
        }
    }
    Ok(json)
}

fn lines(done: &str, paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("{done} {}\n", path.display())).collect()
}

/// Returns the content of a file, if it is there. It need not be text.
fn contents(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match fs::read(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::failed(format!("{}: cannot be read: {error}", path.display()))),
    }
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
    let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
    // A shell that runs the script reads on in the old file.
    durable::replace(path, text.as_bytes(), Owner::Set { uid: None, mode })
}
