//! The scripts of a scheduler, installed and run with only its variables.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::{Arguments, Said, clean, command};

/// The files that are installed once for all nodes.
pub(crate) struct Site {
    pub(crate) directory: TempDir,
    scheduler: &'static str,
}

impl Site {
    pub(crate) fn new(scheduler: &'static str, settings: &str) -> Self {
        let site = Self { directory: TempDir::new().unwrap(), scheduler };
        fs::write(site.path("cxi.toml"), settings).unwrap();
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A command of the scheduler that its scripts call.
    pub(crate) fn program(&self, name: &str, text: &str) {
        let bin = self.path("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join(name), text).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn install(&self) -> String {
        let prefix = self.directory.path();
        let mut install = command(&["integration", "install", self.scheduler, "--prefix"]);
        install.arg(prefix).env("PATH", self.path("bin"));
        Said::from(install.output().unwrap()).done()
    }

    pub(crate) fn run(&self, script: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Said {
        let mut command = Command::new(self.path(self.scheduler).join(script));
        command.args(arguments.words());
        clean(&mut command).envs(variables.iter().copied());
        command.output().unwrap().into()
    }

    pub(crate) fn cxi(&self, arguments: &(impl Arguments + ?Sized)) -> Said {
        let mut command = command(arguments);
        command.env("CXI_CONFIG", self.path("cxi.toml"));
        command.output().unwrap().into()
    }
}
