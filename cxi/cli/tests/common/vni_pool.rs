//! A pool of VNIs in its own directory.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::{Arguments, Said, command};

const FILE: &str = "pool.json";

pub(crate) struct Pool {
    directory: TempDir,
}

impl Pool {
    /// A directory without a pool.
    pub(crate) fn empty() -> Self {
        Self { directory: TempDir::new().unwrap() }
    }

    pub(crate) fn new() -> Self {
        Self::of("1024-65535")
    }

    pub(crate) fn of(vnis: &str) -> Self {
        let pool = Self::empty();
        pool.vni(&["configure", vnis]).done();
        pool
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &(impl Arguments + ?Sized)) -> Command {
        let mut command = command("vni");
        command
            .args(arguments.words())
            .current_dir(self.directory.path())
            .env("CXI_POOL_FILE", self.path(FILE));
        command
    }

    /// The command started by a shell that first runs a script.
    pub(crate) fn in_shell(&self, script: &str, arguments: &[&str]) -> Command {
        super::in_shell(&self.command(arguments), script)
    }

    pub(crate) fn vni(&self, arguments: &(impl Arguments + ?Sized)) -> Said {
        self.command(arguments).output().unwrap().into()
    }

    pub(crate) fn reserve(&self, job: &str) -> String {
        self.vni(&["reserve", job]).done()
    }

    /// The file; `None` if there is none.
    pub(crate) fn keep(&self) -> Option<Vec<u8>> {
        fs::read(self.path(FILE)).ok()
    }

    pub(crate) fn put(&self, kept: Option<&Vec<u8>>) {
        match kept {
            Some(bytes) => fs::write(self.path(FILE), bytes).unwrap(),
            None => {
                let _ = fs::remove_file(self.path(FILE));
            }
        }
    }

    pub(crate) fn show(&self) -> Value {
        self.vni("show --json").json()
    }

    /// The state of the pool, without times.
    pub(crate) fn state(&self) -> Value {
        if !self.path(FILE).exists() {
            return Value::Null;
        }
        timeless(self.show())
    }

    /// The jobs and their VNIs.
    pub(crate) fn jobs(&self) -> Vec<(String, u64)> {
        let shown = self.show();
        let job = |job: &Value| {
            let vnis = &job["vnis"];
            (job["job"].as_str().unwrap().to_owned(), vnis[0].as_u64().unwrap())
        };
        let jobs: Vec<(String, u64)> = shown["jobs"].as_array().unwrap().iter().map(job).collect();
        let different: BTreeSet<u64> = jobs.iter().map(|(_, vni)| *vni).collect();
        assert_eq!(different.len(), jobs.len(), "a VNI in two jobs: {jobs:?}");
        jobs
    }

    /// The other files in the directory.
    pub(crate) fn others(&self) -> Vec<String> {
        let names = fs::read_dir(self.directory.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let ours = |name: &str| [FILE, "pool.json.lock"].contains(&name);
        names.filter(|name| !ours(name)).collect()
    }
}

/// Removes times, which differ when a command runs again.
fn timeless(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            members.retain(|name, _| !["reserved_at", "since"].contains(&name.as_str()));
            members.values_mut().for_each(|member| *member = timeless(member.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = timeless(item.take())),
        _ => {}
    }
    value
}
