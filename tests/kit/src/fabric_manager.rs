//! A mock fabric manager.

use std::ops::Deref;

use cxi_fabric_manager::{Config, MockFabricManager};

use crate::Directory;

/// A mock fabric manager, and the credentials of a workload manager.
#[derive(Debug)]
pub struct FabricManager {
    mock: MockFabricManager,
    /// With the credentials.
    pub files: Directory,
}

impl FabricManager {
    /// Starts one.
    pub fn start() -> Self {
        Self::with(Config::default())
    }

    /// Starts one with a configuration.
    pub fn with(config: Config) -> Self {
        let access = config.access.clone();
        let mock = MockFabricManager::bind(config, "127.0.0.1:0").expect("a port is free");
        let files = Directory::new();
        files.write_secret("endpoint", &format!("{}\n", mock.token_url()));
        files.write_secret("client-id", &format!("{}\n", access.client_id));
        files.write_secret("client-secret", &format!("{}\n", access.client_secret));
        files.write_secret("passwd", &access.password);
        Self { mock, files }
    }

    /// Settings with which commands find it, and wait for it as long as this.
    pub fn settings(&self, deadline: &str) -> String {
        format!(
            "[fabric-manager]\nurl = \"{}\"\ncluster = \"alpha\"\nauth-dir = \"{}\"\ncertificate = \
             \"no\"\ndeadline = \"{deadline}\"\n",
            self.url(),
            self.files.path().display()
        )
    }
}

impl Deref for FabricManager {
    type Target = MockFabricManager;

    fn deref(&self) -> &MockFabricManager {
        &self.mock
    }
}
