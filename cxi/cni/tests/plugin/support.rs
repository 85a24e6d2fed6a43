//! A node with mock NICs, pods with network namespaces of their own, and calls of the plugin.

use std::fs;
use std::path::{Path, PathBuf};

use cxi::{Device, Service};
use cxi_cni::{Call, Code, Error, Plugin};
use cxi_job::Node;
use cxi_mock::{FaultSpec, MockNode, NicConfig};
use cxi_site::FileLock;
use cxi_test_kit::{Pod, devices};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Leaves a test if no network namespace can be made.
#[macro_export]
macro_rules! pod {
    () => {
        match cxi_test_kit::Pod::start() {
            Some(pod) => pod,
            None => return cxi_test_kit::skip("no network namespace can be made here"),
        }
    };
}

/// A node, and what its runtime configures.
pub(crate) struct Site {
    pub(crate) mock: MockNode,
    pub(crate) directory: TempDir,
    /// The network configuration, without what belongs to the site.
    pub(crate) config: Value,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::with(&NicConfig::new())
    }

    pub(crate) fn with(nic: &NicConfig) -> Self {
        Self {
            mock: MockNode::with_nics(2, nic).unwrap(),
            directory: TempDir::new().unwrap(),
            config: json!({
                "cniVersion": "1.1.0",
                "name": "blue",
                "type": "cxi-cni",
                "cxi": {"vnis": {"source": "static", "vnis": [1024]}, "retryBusySeconds": 0},
            }),
        }
    }

    /// The same node and directory with another setting.
    pub(crate) fn set(mut self, key: &str, value: Value) -> Self {
        self.config[key] = value;
        self
    }

    pub(crate) fn set_cxi(mut self, key: &str, value: Value) -> Self {
        self.config["cxi"][key] = value;
        self
    }

    pub(crate) fn devices(&self) -> Vec<Device> {
        devices(&self.mock)
    }

    /// The services other than the default ones.
    pub(crate) fn services(&self) -> Vec<Service> {
        let devices = self.devices();
        let services = devices.iter().flat_map(|device| device.services().list().unwrap());
        services.filter(|service| !service.id().is_default()).collect()
    }

    pub(crate) fn fault(&self, fault: &str) {
        let fault: FaultSpec = fault.parse().unwrap();
        for (number, nic) in (0..).zip(self.mock.nics()) {
            if fault.concerns(number) {
                fault.inject(nic);
            }
        }
    }

    /// Its directory is missing, as after a boot.
    pub(crate) fn state(&self) -> PathBuf {
        self.directory.path().join("run/cni")
    }

    pub(crate) fn records(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.state()) else { return Vec::new() };
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect()
    }

    pub(crate) fn text(&self) -> String {
        let mut config = self.config.clone();
        if config["cxi"].is_object() {
            config["cxi"]["stateDir"] = json!(self.state());
        }
        config.to_string()
    }

    /// Calls the plugin with these variables.
    pub(crate) fn call(&self, variables: &[(&str, &str)]) -> Result<String, Error> {
        let node = Node::from_devices(self.devices());
        self.call_on(node, variables)
    }

    pub(crate) fn call_on(&self, node: Node, variables: &[(&str, &str)]) -> Result<String, Error> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        match Call::parse(&variable, &self.text())? {
            Call::Version(version) => Ok(version.supported()),
            Call::Network(command, config) => {
                let lock = FileLock::new(self.directory.path().join("node.lock"));
                Plugin::new(node.with_lock(lock), &config)?.answer(&command)
            }
        }
    }

    pub(crate) fn add(&self, container: &str, pod: &Pod) -> Result<String, Error> {
        self.pod("ADD", container, "eth0", &pod.netns())
    }

    pub(crate) fn check(&self, container: &str, pod: &Pod) -> Result<String, Error> {
        self.pod("CHECK", container, "eth0", &pod.netns())
    }

    /// As for a pod whose namespace is gone.
    pub(crate) fn del(&self, container: &str) -> Result<String, Error> {
        self.pod("DEL", container, "eth0", Path::new(""))
    }

    pub(crate) fn pod(
        &self,
        command: &str,
        container: &str,
        interface: &str,
        netns: &Path,
    ) -> Result<String, Error> {
        self.call(&[
            ("CNI_COMMAND", command),
            ("CNI_CONTAINERID", container),
            ("CNI_IFNAME", interface),
            ("CNI_NETNS", &netns.display().to_string()),
        ])
    }
}

/// Refused with this code.
#[track_caller]
pub(crate) fn refused(answer: Result<String, Error>, code: Code) -> String {
    let error = answer.expect_err("it is refused");
    assert_eq!(error.code(), code, "{error}");
    error.to_string()
}
