//! A site's settings for everything that works on its nodes: a file, `/etc/cxi/cxi.toml`, which
//! environment variables override.
//!
//! A program names its settings as [`Key`]s. Programs share the file, so each looks up its own
//! keys; the command `cxi` knows those of all of them, and checks the file as a whole.
//!
//! ```
//! use cxi_site::settings::{NODE_LOCK, Settings};
//!
//! let directory = tempfile::tempdir()?;
//! let file = directory.path().join("cxi.toml");
//! std::fs::write(&file, "[node]\nlock = \"/run/site.lock\"\n")?;
//! let settings = Settings::load(Some(&file))?;
//! assert_eq!(settings.get(&NODE_LOCK)?.to_str(), Some("/run/site.lock"));
//! settings.check(&[&NODE_LOCK])?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

use serde::Serialize;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

use cxi::environment;
use cxi::{DeviceId, Host, TrafficClasses};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::collectives::Certificate;
use crate::durable::WaitReport;
use crate::fabric::ClusterName;
use crate::{FileLock, IdSet, ProcFs, excerpt, input};

/// The file, unless the variable `CXI_CONFIG` names another.
pub const FILE: &str = "/etc/cxi/cxi.toml";
const VARIABLE: &str = "CXI_CONFIG";
/// The beginning of the variables of all settings.
const PREFIX: &str = "CXI_";

/// A type of setting.
///
/// A value is text, whether the file, a variable or an option contains it: a list is its values with
/// commas between.
pub trait Value: Sized {
    /// Parses a value.
    ///
    /// # Errors
    ///
    /// Parses a value, or says which was expected.
    fn parse(text: &str) -> Result<Self, String>;
}

impl Value for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("empty: expected a path".to_owned());
        }
        Ok(text.into())
    }
}

impl Value for String {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Value for Vec<String> {
    fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split(',').map(str::trim);
        Ok(parts.filter(|part| !part.is_empty()).map(str::to_owned).collect())
    }
}

impl Value for bool {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("invalid value '{text}': expected true or false"))
    }
}

impl Value for u32 {
    // The standard library's error would not name the range.
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("invalid number '{text}': expected 0 to {}", Self::MAX))
    }
}

impl Value for Duration {
    /// A number without a unit is one of seconds.
    fn parse(text: &str) -> Result<Self, String> {
        if let Ok(seconds) = text.parse() {
            return Ok(Self::from_secs(seconds));
        }
        humantime::parse_duration(text)
            .map_err(|error| format!("{error}: expected a time such as 500ms, 30s or 5m"))
    }
}

impl Value for IdSet {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error| format!("'{text}': {error}"))
    }
}

impl Value for TrafficClasses {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error| format!("{error}"))
    }
}

impl Value for NonZeroU32 {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("invalid value '{text}': expected 1 or more, or nothing"))
    }
}

impl Value for ClusterName {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error| format!("{error}"))
    }
}

impl Value for Certificate {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "system" => Ok(Self::System),
            "no" => Ok(Self::Unverified),
            path if path.starts_with('/') => Ok(Self::Path(path.to_owned())),
            _ => Err(format!(
                "invalid certificate '{text}': expected system, no or an absolute path"
            )),
        }
    }
}

/// `None` is an empty text.
impl<T: Value> Value for Option<T> {
    fn parse(text: &str) -> Result<Self, String> {
        (!text.is_empty()).then(|| T::parse(text)).transpose()
    }
}

/// One setting: its key in the file, the variable that overrides it, and the permitted values.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "programs name their settings")]
pub struct Key<T> {
    /// The key in the file, after the names of its tables: `node.lock`.
    pub name: &'static str,
    /// The environment variable that overrides the file, unless it is empty.
    pub variable: &'static str,
    /// An earlier name of that variable, which is read if the new one is not set.
    pub former_variable: Option<&'static str>,
    /// Purpose, in a sentence or two.
    pub about: &'static str,
    /// The value where neither says anything.
    pub default: fn(&Directories) -> String,
    /// Parses a value, usually [`Value::parse`]. The error says what was expected.
    pub parse: fn(&str) -> Result<T, String>,
}

/// A [`Key`], whatever its type.
pub trait AnyKey: Sync {
    /// The key in the file.
    fn name(&self) -> &'static str;
    /// The variable that overrides the file.
    fn variable(&self) -> &'static str;
    /// An earlier name of that variable.
    fn former_variable(&self) -> Option<&'static str>;
    /// Purpose.
    fn about(&self) -> &'static str;
    /// The value where neither says anything.
    fn default(&self, directories: &Directories) -> String;
    /// Returns whether a value is permitted.
    ///
    /// # Errors
    ///
    /// Checks a value, or says which was expected.
    fn check(&self, text: &str) -> Result<(), String>;
}

impl<T> AnyKey for Key<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn variable(&self) -> &'static str {
        self.variable
    }

    fn former_variable(&self) -> Option<&'static str> {
        self.former_variable
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn default(&self, directories: &Directories) -> String {
        (self.default)(directories)
    }

    fn check(&self, text: &str) -> Result<(), String> {
        (self.parse)(text).map(|_| ())
    }
}

/// Directories of locks, records and the pool unless a setting names another place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a node is real or a mock")]
pub enum Directories {
    /// On this machine: `/run/cxi`, and `/var/lib/cxi` for what survives a reboot.
    #[default]
    Machine,
    /// All in one directory, for a mock node in a file: its jobs must not be mixed up with those of
    /// this machine, whose services a cleanup would destroy.
    Mock(PathBuf),
}

impl Directories {
    /// Those of the mock node in a state file, such as `node.json.d` for `node.json`, or behind a
    /// socket.
    #[must_use]
    pub fn of_mock(state: &Path) -> Self {
        let mut name = state.file_name().unwrap_or_default().to_owned();
        name.push(".d");
        Self::Mock(state.with_file_name(name))
    }

    /// Replaces `{run}` by the directory that is empty after a reboot, `{node}` by one like it that only
    /// this project uses, `{lib}` by the one that is not empty, and `{secrets}` by the one with credentials, which on a machine depends on their kind.
    #[must_use]
    pub fn expand(&self, text: &str) -> String {
        let (run, node, lib, secrets) = match self {
            Self::Machine => (
                "/run/cxi".into(),
                node_directory().display().to_string(),
                "/var/lib/cxi".into(),
                String::new(),
            ),
            Self::Mock(directory) => {
                let directory = directory.display().to_string();
                let secrets = format!("{directory}/secrets");
                (directory.clone(), directory.clone(), directory, secrets)
            }
        };
        let text = text.replace("{run}", &run).replace("{node}", &node);
        text.replace("{lib}", &lib).replace("{secrets}", &secrets)
    }
}

/// The directory of what a node records until it reboots. HPE's retry handler uses `/run/cxi` too, and
/// sites let containers see that.
///
/// A node whose jobs or containers were started by a version that kept its records there goes on with
/// them until it reboots: otherwise nothing would say whose their services are.
#[must_use]
pub fn node_directory() -> PathBuf {
    let earlier = Path::new("/run/cxi");
    let goes_on = ["jobs", "cni"].iter().any(|records| earlier.join(records).exists());
    if goes_on { earlier } else { Path::new("/run/cxi-node") }.to_owned()
}

/// The lock of every operation that changes services on a node: `node.lock`, `CXI_LOCK`. By default
/// it is `/run/cxi/node.lock`.
///
/// For a user other than root, it is a file in the temporary directory: such a user can at most
/// change services of their own served mock. The same holds for root of a user namespace,
/// except in the node of a served mock, which has a `/run/cxi` of its own.
pub static NODE_LOCK: Key<PathBuf> = Key {
    name: "node.lock",
    variable: "CXI_LOCK",
    former_variable: None,
    about: "The lock file shared by the node's prologs, epilogs and cleanups.",
    default: default_lock,
    parse: Value::parse,
};

fn default_lock(directories: &Directories) -> String {
    let lock = directories.expand("{run}/node.lock");
    if *directories != Directories::Machine {
        return lock;
    }
    let user = nix::unistd::geteuid();
    // The machine's directory does not belong to root of a user namespace, where that of a served
    // node does.
    let is_own = || fs::metadata("/run/cxi").is_ok_and(|place| place.uid() == user.as_raw());
    if user.is_root() && (ProcFs::system().in_user_namespace() != Some(true) || is_own()) {
        return lock;
    }
    env::temp_dir().join(format!("cxi-node-{user}.lock")).display().to_string()
}

/// The lock that programs take in turn which test or measure a NIC: a file next to [`NODE_LOCK`],
/// so that only users who can change services can hold it.
///
/// # Errors
///
/// The value of [`NODE_LOCK`] in force is not permitted.
pub fn test_lock(settings: &Settings, nic: DeviceId) -> Result<FileLock, SettingsError> {
    let lock = settings.get(&NODE_LOCK)?;
    Ok(settings.file_lock(lock.with_extension(format!("{nic}.lock"))))
}

/// Source of the value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::exhaustive_enums, reason = "there is no other source")]
pub enum Source {
    /// It is the default.
    Default,
    /// This line of the file, counted from 1.
    Line(usize),
    /// This environment variable.
    Variable(&'static str),
}

/// Settings of the file and of the environment, both as they were when it was loaded. The default has
/// neither.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    directories: Directories,
    /// The variables of this program that may be of settings.
    variables: BTreeMap<String, String>,
    file: Option<PathBuf>,
    in_file: BTreeMap<String, InFile>,
    on_wait: Option<WaitReport>,
}

#[derive(Debug, Clone)]
struct InFile {
    text: String,
    line: usize,
    excerpt: String,
}

/// Reason for which a setting cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file cannot be [read](input::read), or is not text of at most 1 MiB.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not TOML of texts, numbers, booleans and lists of these.
    #[error("{}: line {line}: {what}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The fault there.
        what: String,
        /// The line, as [`excerpt`] shows it.
        excerpt: String,
    },
    /// The file has a setting that does not exist.
    #[error("{}: line {line}: there is no setting {name}", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The key.
        name: String,
        /// The line, as [`excerpt`] shows it.
        excerpt: String,
    },
    /// One of two settings that belong together is missing.
    #[error("expected both {0} and {1}, or neither")]
    Half(&'static str, &'static str),
    /// A value is not permitted.
    #[error("{place}: {what}")]
    Invalid {
        /// The file with line and key, or the variable.
        place: String,
        /// The fault of the value.
        what: String,
        /// The line, as [`excerpt`] shows it; empty for a variable.
        excerpt: String,
    },
}

impl SettingsError {
    /// The line of the file that is wrong, as [`excerpt`] shows it; empty if it is not in a line.
    #[must_use]
    pub fn excerpt(&self) -> &str {
        match self {
            Self::Unreadable { .. } | Self::Half(..) => "",
            Self::Syntax { excerpt, .. }
            | Self::Unknown { excerpt, .. }
            | Self::Invalid { excerpt, .. } => excerpt,
        }
    }
}

impl Settings {
    /// Reads the named file, or that of `CXI_CONFIG`, or else [`FILE`], which need not exist. A node
    /// behind a socket is not this machine: its files are beside the socket, as those of a
    /// [mock](Self::load_for_mock) beside its own.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not TOML.
    pub fn load(named: Option<&Path>) -> Result<Self, SettingsError> {
        if let Some(socket) = Host::system().socket() {
            return Self::load_for_mock(named, Directories::of_mock(socket));
        }
        if let Some(path) = Self::named(named) {
            return Ok(read(&path)?.with_environment());
        }
        let read = match read(Path::new(FILE)) {
            Err(SettingsError::Unreadable { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                Self::default()
            }
            read => read?,
        };
        Ok(read.with_environment())
    }

    /// Settings for a mock node. Like [`load`](Self::load), but [`FILE`] is not read, as it describes
    /// this machine, and by default all files are in the directories given.
    ///
    /// # Errors
    ///
    /// The named file cannot be read, or is not TOML.
    pub fn load_for_mock(
        named: Option<&Path>,
        directories: Directories,
    ) -> Result<Self, SettingsError> {
        let named = Self::named(named).map(|path| read(&path));
        Ok(Self { directories, ..named.transpose()?.unwrap_or_default() }.with_environment())
    }

    /// Sets the function that tells of long waits for the locks that are made with these settings. The
    /// default is none.
    #[must_use]
    pub fn on_wait(mut self, report: WaitReport) -> Self {
        self.on_wait = Some(report);
        self
    }

    /// The function that tells of long waits, for locks that are made elsewhere.
    #[must_use]
    pub const fn wait_report(&self) -> Option<WaitReport> {
        self.on_wait
    }

    /// A lock at a path, which tells of long waits as these settings say.
    #[must_use]
    pub fn file_lock(&self, path: PathBuf) -> FileLock {
        FileLock::new(path).on_wait(self.on_wait)
    }

    fn with_environment(mut self) -> Self {
        let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        self.variables = names
            .filter(|name| name.starts_with(PREFIX))
            .filter_map(|name| {
                let text = environment::var_os(&name)?.into_string().ok()?;
                (!text.is_empty()).then_some((name, text))
            })
            .collect();
        self
    }

    fn named(named: Option<&Path>) -> Option<PathBuf> {
        let variable = environment::var_os(VARIABLE).filter(|path| !path.is_empty());
        named.map(Path::to_owned).or(variable.map(PathBuf::from))
    }

    /// Returns whether the file has only these settings, with permitted values.
    ///
    /// # Errors
    ///
    /// The first setting that does not exist or has a value that is not permitted.
    pub fn check(&self, keys: &[&dyn AnyKey]) -> Result<(), SettingsError> {
        let mut settings: Vec<_> = self.in_file.iter().collect();
        settings.sort_by_key(|(_, value)| value.line);
        for (name, in_file) in settings {
            let InFile { text, line, excerpt } = in_file;
            let key = keys.iter().find(|key| key.name() == name);
            let key = key.ok_or_else(|| SettingsError::Unknown {
                path: self.file.clone().unwrap_or_default(),
                line: *line,
                name: name.clone(),
                excerpt: excerpt.clone(),
            })?;
            key.check(text).map_err(|what| self.invalid(*key, Source::Line(*line), what))?;
        }
        Ok(())
    }

    /// The file, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The value in force.
    ///
    /// # Errors
    ///
    /// It is not permitted.
    pub fn get<T>(&self, key: &Key<T>) -> Result<T, SettingsError> {
        let (text, source) = self.text(key);
        (key.parse)(&text).map_err(|what| self.invalid(key, source, what))
    }

    /// The values of two settings that are set together or not at all.
    ///
    /// # Errors
    ///
    /// One of them is missing or not permitted.
    pub fn both<A, B>(
        &self,
        one: &Key<Option<A>>,
        other: &Key<Option<B>>,
    ) -> Result<Option<(A, B)>, SettingsError> {
        match (self.get(one)?, self.get(other)?) {
            (Some(first), Some(second)) => Ok(Some((first, second))),
            (None, None) => Ok(None),
            _ => Err(SettingsError::Half(one.name, other.name)),
        }
    }

    /// The value of an option, or else the value in force.
    ///
    /// # Errors
    ///
    /// The value in force is not permitted.
    pub fn or<T>(&self, option: Option<T>, key: &Key<T>) -> Result<T, SettingsError> {
        option.map_or_else(|| self.get(key), Ok)
    }

    /// The value in force as it is written, permitted or not, and where it comes from.
    #[must_use]
    pub fn text(&self, key: &dyn AnyKey) -> (String, Source) {
        let variable = [Some(key.variable()), key.former_variable()]
            .into_iter()
            .flatten()
            .find_map(|name| Some((self.variables.get(name)?, name)));
        match (variable, self.in_file.get(key.name())) {
            (Some((text, name)), _) => (text.clone(), Source::Variable(name)),
            (_, Some(InFile { text, line, .. })) => (text.clone(), Source::Line(*line)),
            _ => (key.default(&self.directories), Source::Default),
        }
    }

    /// Returns whether the value in force is permitted.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn valid(&self, key: &dyn AnyKey) -> Result<(), SettingsError> {
        let (text, source) = self.text(key);
        key.check(&text).map_err(|what| self.invalid(key, source, what))
    }

    fn invalid(&self, key: &dyn AnyKey, source: Source, what: String) -> SettingsError {
        let place = match (source, &self.file) {
            (Source::Variable(name), _) => name.to_owned(),
            (Source::Line(line), Some(file)) => {
                format!("{}: line {line}: {}", file.display(), key.name())
            }
            _ => key.name().to_owned(),
        };
        let excerpt = self.in_file.get(key.name()).filter(|_| matches!(source, Source::Line(_)));
        SettingsError::Invalid {
            place,
            what,
            excerpt: excerpt.map_or_else(String::new, |it| it.excerpt.clone()),
        }
    }
}

/// Far larger than a file with every setting.
const LONGEST: u64 = 1 << 20;

fn read(path: &Path) -> Result<Settings, SettingsError> {
    let text = input::read(path, LONGEST).and_then(input::text);
    let text =
        text.map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Settings, SettingsError> {
    let wrong = |start: usize, what: String| {
        let (line, excerpt) = place(text, start);
        SettingsError::Syntax { path: path.to_owned(), line, what, excerpt }
    };
    let table = DeTable::parse(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        wrong(start, error.message().to_owned())
    })?;
    let mut found = Vec::new();
    flatten("", table.get_ref(), &mut found);
    let mut settings = Settings { file: Some(path.to_owned()), ..Settings::default() };
    for (name, start, value) in found {
        let expected = "expected a text, a number, true or false, or a list of these";
        let value = plain(value).ok_or_else(|| wrong(start, format!("{name}: {expected}")))?;
        let (line, excerpt) = place(text, start);
        let entry = InFile { text: value, line, excerpt };
        if let Some(before) = settings.in_file.insert(name.clone(), entry) {
            let what = format!("{name} is also set on line {}", before.line);
            return Err(wrong(start, what));
        }
    }
    Ok(settings)
}

/// The line of a byte, and what it looks like.
fn place(text: &str, start: usize) -> (usize, String) {
    let before = text.get(..start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|letter| *letter != '\n').count() + 1;
    (line, excerpt(text, line, column))
}

/// Every value with its key, prefixed by the names of its tables, in the order of the keys.
fn flatten<'t>(
    prefix: &str,
    table: &'t DeTable<'_>,
    found: &mut Vec<(String, usize, &'t DeValue<'t>)>,
) {
    for (key, value) in table {
        let name = format!("{prefix}{}", key.get_ref());
        match value.get_ref() {
            DeValue::Table(inner) => flatten(&format!("{name}."), inner, found),
            value => found.push((name, key.span().start, value)),
        }
    }
}

/// A value in the form of the command line.
fn plain(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(yes) => Some(yes.to_string()),
        DeValue::Array(values) => {
            let values = values.iter().map(Spanned::get_ref);
            let values: Option<Vec<_>> = values.map(plain).collect();
            values.map(|values| values.join(","))
        }
        _ => None,
    }
}
