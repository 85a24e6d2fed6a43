//! A controller with a pool, and mock nodes that share its decisions.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Arguments, MockNode, Said, clean, command};

pub(crate) struct Cluster {
    directory: TempDir,
}

impl Cluster {
    pub(crate) fn new(vnis: &str) -> Self {
        let cluster = Self { directory: TempDir::new().unwrap() };
        cluster.settings("controller.toml", "");
        cluster.cxi(&["vni", "configure", vnis]).done();
        cluster
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes settings with additional keys in `[job]`, and additional tables.
    fn settings(&self, name: &str, more: &str) -> PathBuf {
        let path = self.path().display();
        let text = format!(
            "wait = \"5s\"\n[node]\nrecords = \"{path}/{name}.jobs\"\n[pool]\nfile = \
             \"{path}/pool.json\"\n[controller]\nrecords = \"{path}/decisions\"\nwait = \
             \"300ms\"\n[job]\npolicy = \"slurm\"\ntles = false\n{more}"
        );
        let file = self.path().join(name);
        fs::write(&file, text).unwrap();
        file
    }

    /// Settings of the controller in addition to those that every machine has.
    pub(crate) fn configure(&self, more: &str) {
        self.settings("controller.toml", more);
    }

    /// Runs a command on the controller.
    pub(crate) fn cxi(&self, arguments: &(impl Arguments + ?Sized)) -> Said {
        self.waiting("CXI_WAIT=5s", arguments)
    }

    /// Runs a command on the controller, with a variable that says how long it waits.
    pub(crate) fn waiting(&self, wait: &str, arguments: &(impl Arguments + ?Sized)) -> Said {
        let mut command = command(&[]);
        clean(&mut command).env("CXI_CONFIG", self.path().join("controller.toml"));
        command.envs(wait.split_once('='));
        command.args(arguments.words()).output().unwrap().into()
    }

    pub(crate) fn reserve(&self, job: &str, nodes: &str) -> Said {
        self.cxi(&["job", "reserve", job, "--uid=1000", "--nodes", nodes])
    }

    pub(crate) fn free(&self) -> u64 {
        self.cxi("--json vni show").json()["free"].as_u64().unwrap()
    }

    pub(crate) fn node(&self, name: &str) -> Node {
        self.node_with(name, "")
    }

    pub(crate) fn node_with(&self, name: &str, job: &str) -> Node {
        Node {
            mock: MockNode::new(),
            name: name.to_owned(),
            settings: self.settings(&format!("{name}.toml"), job),
        }
    }
}

pub(crate) struct Node {
    pub(crate) mock: MockNode,
    name: String,
    settings: PathBuf,
}

impl Node {
    pub(crate) fn cxi(&self, arguments: &(impl Arguments + ?Sized)) -> Said {
        self.faulty("", arguments)
    }

    pub(crate) fn faulty(&self, fault: &str, arguments: &(impl Arguments + ?Sized)) -> Said {
        self.with(("CXI_MOCK_FAULT", fault), arguments)
    }

    /// Runs a command with a variable.
    pub(crate) fn with(
        &self,
        variable: (&str, &str),
        arguments: &(impl Arguments + ?Sized),
    ) -> Said {
        let mut command = command(&[]);
        clean(&mut command)
            .env("CXI_CONFIG", &self.settings)
            .env("CXI_MOCK", self.mock.file())
            .envs([variable]);
        command.args(arguments.words()).output().unwrap().into()
    }

    pub(crate) fn prolog(&self, job: &str) -> Said {
        self.cxi(&["job", "prolog", "--job", job, "--cores=2"])
    }

    pub(crate) fn epilog(&self, job: &str) -> Said {
        self.cxi(&["job", "epilog", "--job", job, "--node", &self.name])
    }

    pub(crate) fn clean(&self) -> Said {
        self.cxi(&["job", "clean", "--node", &self.name])
    }

    /// Services other than the default ones.
    pub(crate) fn services(&self) -> usize {
        self.mock.services()
    }

    /// Simulates a reboot: the node loses its services and the records of its jobs.
    pub(crate) fn reset(&self) {
        fs::remove_file(self.mock.file()).unwrap();
        fs::remove_dir_all(self.settings.with_extension("toml.jobs")).unwrap();
    }
}
