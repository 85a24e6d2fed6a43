//! A mock fabric manager, and the credentials of a workload manager.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use cxi_fabric_manager::MockFabricManager;
use tempfile::TempDir;

pub(crate) struct MockManager {
    pub(crate) manager: MockFabricManager,
    /// With the credentials.
    pub(crate) files: TempDir,
}

impl MockManager {
    pub(crate) fn new() -> Self {
        let mock =
            Self { manager: MockFabricManager::start().unwrap(), files: TempDir::new().unwrap() };
        let write = |name, text: &str| {
            let path = mock.files.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        };
        write("endpoint", &mock.manager.token_url());
        write("client-id", "wlm\n");
        write("client-secret", "mock-secret\n");
        write("passwd", "mock-password\n");
        mock
    }

    /// Settings with which commands find it.
    pub(crate) fn settings(&self) -> String {
        format!(
            "[fabric-manager]\nurl = \"{}\"\ncluster = \"alpha\"\nauth-dir = \"{}\"\ncertificate = \
             \"no\"\ndeadline = \"1s\"\n",
            self.manager.url(),
            self.files.path().display()
        )
    }
}
