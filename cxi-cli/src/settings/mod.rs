//! A site's settings for all commands and scripts: a file, which environment variables override.
//! Options of the command line override both.

mod file;
mod keys;
mod report;

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;

use crate::exit::Failure;

pub(crate) use keys::*;
pub(crate) use report::run;

const FILE: &str = "/etc/cxi/cxi.toml";
const VARIABLE: &str = "CXI_CONFIG";

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the settings in force, and where each of them comes from
    Check,
}

/// One setting: its key in the file, the variable that overrides it, and the permitted values.
pub(crate) struct Key<T> {
    name: &'static str,
    variable: &'static str,
    default: fn() -> String,
    parse: fn(&str) -> Result<T, String>,
}

/// A key, whatever its type.
trait AnyKey: Sync {
    fn name(&self) -> &'static str;
    fn variable(&self) -> &'static str;
    fn default(&self) -> String;
    fn check(&self, text: &str) -> Result<(), String>;
}

impl<T> AnyKey for Key<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn variable(&self) -> &'static str {
        self.variable
    }

    fn default(&self) -> String {
        (self.default)()
    }

    fn check(&self, text: &str) -> Result<(), String> {
        (self.parse)(text).map(|_| ())
    }
}

/// Where the value of a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Source {
    Default,
    /// Line of the file.
    Line(usize),
    Variable(&'static str),
}

/// The settings of a file, and the defaults of the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// The file, if there is one.
    file: Option<PathBuf>,
    in_file: BTreeMap<&'static str, InFile>,
}

#[derive(Clone, Debug)]
struct InFile {
    text: String,
    line: usize,
}

impl Settings {
    /// Reads the named file, or that of this machine, which need not exist.
    pub(crate) fn load(named: Option<&Path>) -> Result<Self, Failure> {
        let variable = env::var_os(VARIABLE).filter(|path| !path.is_empty());
        match named.map(Path::to_owned).or(variable.map(PathBuf::from)) {
            Some(path) => file::read(&path),
            None if Path::new(FILE).exists() => file::read(Path::new(FILE)),
            None => Ok(Self::default()),
        }
    }

    /// The value in force.
    pub(crate) fn get<T>(&self, key: &Key<T>) -> Result<T, Failure> {
        let (text, source) = self.text(key);
        (key.parse)(&text).map_err(|error| self.wrong(key, source, &error))
    }

    /// The value of an option, or else the value in force.
    pub(crate) fn or<T>(&self, option: Option<T>, key: &Key<T>) -> Result<T, Failure> {
        option.map_or_else(|| self.get(key), Ok)
    }

    fn text(&self, key: &dyn AnyKey) -> (String, Source) {
        let variable = env::var(key.variable()).ok();
        match (variable, self.in_file.get(key.name())) {
            (Some(text), _) if !text.is_empty() => (text, Source::Variable(key.variable())),
            (_, Some(InFile { text, line })) => (text.clone(), Source::Line(*line)),
            _ => (key.default(), Source::Default),
        }
    }

    fn wrong(&self, key: &dyn AnyKey, source: Source, error: &str) -> Failure {
        let place = match (source, &self.file) {
            (Source::Variable(name), _) => name.to_owned(),
            (Source::Line(line), Some(file)) => {
                format!("{}: line {line}: {}", file.display(), key.name())
            }
            _ => key.name().to_owned(),
        };
        Failure::bad_input(format!("{place}: {error}"))
    }
}
