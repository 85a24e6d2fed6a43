//! Runs the binary.

#![allow(dead_code, reason = "each test file uses some of it")]

pub(crate) mod cluster;
pub(crate) mod schema;
pub(crate) mod screen;
pub(crate) mod site;
pub(crate) mod slurm;
pub(crate) mod vni_pool;

use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// The arguments of a command: as typed in a shell, or one by one.
pub(crate) trait Arguments {
    fn words(&self) -> Vec<&str>;
}

impl Arguments for str {
    fn words(&self) -> Vec<&str> {
        self.split_whitespace().collect()
    }
}

impl Arguments for String {
    fn words(&self) -> Vec<&str> {
        self.as_str().words()
    }
}

/// Command lines, each followed by its exit code and its error.
pub(crate) fn refusals(text: &str) -> impl Iterator<Item = (&str, i32, String)> {
    let mut lines = text.lines();
    iter::from_fn(move || {
        let arguments = lines.next()?;
        let answer = lines.next().and_then(|line| line.split_once(": "));
        let (code, message) = answer.expect(arguments);
        let message = message.replace(r"\n", "\n");
        let code = code.trim().parse().expect(arguments);
        Some((arguments, code, format!("error: {message}")))
    })
}

macro_rules! lists_of_arguments {
    ($($list:ty $(, $length:ident)?;)*) => { $(
        impl$(<const $length: usize>)? Arguments for $list {
            fn words(&self) -> Vec<&str> {
                self.to_vec()
            }
        }
    )* };
}

lists_of_arguments! {
    [&str];
    [&str; N], N;
    Vec<&str>;
}

/// A command without the variables of the tests: all but where its lines are counted, which would be
/// the current directory, where a user may not write.
pub(crate) fn clean(command: &mut Command) -> &mut Command {
    command.env_clear();
    command.envs(std::env::vars_os().filter(|(name, _)| name == "LLVM_PROFILE_FILE"))
}

/// Characters that a terminal must not get from others: control sequences, and those that reorder text,
/// break lines or have no width.
pub(crate) const EVIL: &str =
    "\u{1b}]0;x\u{7}\u{1b}[8m\u{9b}2J\u{202e}\u{2066}\u{200b}\u{2028}\r\u{7f}\u{1b}[2K";

/// [`EVIL`] in a string of JSON or TOML.
pub(crate) fn escaped_evil() -> String {
    let letters = EVIL.chars().map(|letter| format!("\\u{:04x}", u32::from(letter)));
    letters.collect::<Vec<_>>().concat()
}

/// End of the warning of `cxi service create` about a VNI that a scheduler may assign.
pub(crate) const POOL_NOTE: &str = "out of it (setting pool.vnis)";

/// The outcome of a call of `cxi`.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    #[track_caller]
    pub(crate) fn done(self) -> String {
        // The note about the scheduler's pool has a test of its own.
        let notes = self.err.lines().filter(|line| !line.ends_with(POOL_NOTE));
        let notes: Vec<&str> = notes.collect();
        assert_eq!((self.code, notes.as_slice()), (0, [""; 0].as_slice()), "{}", self.out);
        self.out
    }

    /// Succeeded, with exactly this on standard output.
    #[track_caller]
    pub(crate) fn prints(self, expected: &str) {
        assert_eq!(self.done(), expected);
    }

    /// Ended with this code, and exactly this on standard output.
    #[track_caller]
    pub(crate) fn ended(&self, code: i32, out: &str) {
        assert_eq!((self.code, &*self.out), (code, out), "{}", self.err);
    }

    /// Refused with this code and this message, and nothing on standard output.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, message: &str) {
        assert_eq!((self.code, self.err.trim_end(), self.out.as_str()), (code, message, ""));
    }

    /// Ended with this code and a message that starts like this.
    #[track_caller]
    pub(crate) fn failed(&self, code: i32, start: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.err.starts_with(start), "{}", self.err);
    }

    /// Ended with this code and a message that contains this.
    #[track_caller]
    pub(crate) fn mentions(&self, code: i32, part: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert_contains(&self.err, part);
    }

    /// Succeeded with a warning.
    #[track_caller]
    pub(crate) fn warns(&self, warning: &str) {
        assert_eq!((self.code, &*self.err), (0, warning), "{}", self.out);
    }

    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.done()).unwrap()
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: without_hidden(&String::from_utf8(output.stdout).unwrap()),
            err: without_hidden(&String::from_utf8(output.stderr).unwrap()),
        }
    }
}

/// A text without how many processes could not be looked into: none for root, many for others.
pub(crate) fn without_hidden(text: &str) -> String {
    let mut parts = text.split("; ");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let rest = [" processes could not be looked into", " process could not be looked into"]
            .into_iter()
            .find_map(|words| digits.strip_prefix(words));
        match rest {
            Some(rest) if digits.len() < part.len() => kept += rest,
            _ => {
                kept += "; ";
                kept += part;
            }
        }
    }
    kept
}

#[track_caller]
pub(crate) fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} in {text}");
}

pub(crate) fn command(arguments: &(impl Arguments + ?Sized)) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cxi"));
    command.args(arguments.words()).env_remove("LC_ALL").env("LC_CTYPE", "C");
    command
}

/// A command started by a shell that first runs a script.
pub(crate) fn in_shell(inner: &Command, script: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(inner.get_program());
    shell.args(inner.get_args());
    if let Some(directory) = inner.get_current_dir() {
        shell.current_dir(directory);
    }
    for (name, value) in inner.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    shell
}

pub(crate) fn cxi(arguments: &(impl Arguments + ?Sized)) -> Said {
    let said = command(arguments).output().unwrap().into();
    schema::check(&arguments.words(), &said);
    said
}

/// A mock node in its own state file.
pub(crate) struct MockNode {
    directory: TempDir,
}

impl MockNode {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::new().unwrap() }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.directory.path().join("state.json")
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The option by which a command works on it.
    pub(crate) fn option(&self) -> String {
        format!("--mock={}", self.file().display())
    }

    pub(crate) fn cxi(&self, arguments: &(impl Arguments + ?Sized)) -> Said {
        cxi(&[vec![&*self.option()], arguments.words()].concat())
    }

    /// Services other than the default ones of the two NICs.
    pub(crate) fn services(&self) -> usize {
        let list = self.cxi("--json service list").json();
        list["services"].as_array().unwrap().len() - 2
    }

    /// Another user's service on each NIC, which leaves three TXQs.
    pub(crate) fn take_queues(&self) {
        let limit = "--limit=txqs=1021:1021";
        self.cxi(&format!("service create -d all --uid=9 --vni=9 {limit}")).done();
    }

    /// Writes a file next to the state file. Returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}
