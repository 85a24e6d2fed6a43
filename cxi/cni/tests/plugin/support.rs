//! A node with mock NICs, pods with network namespaces of their own, and calls of the plugin.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cxi::{Device, DeviceId, Member, Service};
use cxi_cni::{Call, Code, Error, Plugin};
use cxi_job::Node;
use cxi_mock::{Credentials, FaultSpec, MockNode, NicConfig};
use cxi_site::FileLock;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A process in its own network namespace.
pub(crate) struct Pod(Child);

impl Pod {
    /// `None` where this user cannot make a namespace; says so.
    pub(crate) fn start() -> Option<Self> {
        let unshare = |arguments: &[&str]| {
            let mut command = Command::new("unshare");
            command.args(arguments).stderr(Stdio::null());
            command
        };
        let possible = |arguments: &[&str]| {
            let status = unshare(&[arguments, &["true"]].concat()).status();
            status.is_ok_and(|status| status.success())
        };
        let ways = [&["--net"][..], &["--user", "--net"]];
        let Some(way) = ways.into_iter().find(|way| possible(way)) else {
            skip("no network namespace can be made here");
            return None;
        };
        let child = unshare(&[way, &["sleep", "600"]].concat()).spawn();
        let pod = Self(child.unwrap());
        let start = Instant::now();
        let own = Member::own_netns().unwrap();
        while Member::netns_at(pod.netns()).unwrap() == own {
            assert!(start.elapsed() < Duration::from_secs(20));
            sleep(Duration::from_millis(2));
        }
        Some(pod)
    }

    pub(crate) fn netns(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.0.id()).into()
    }

    pub(crate) fn member(&self) -> Member {
        Member::netns_at(self.netns()).unwrap()
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Says past the test harness that a test cannot be done here.
pub(crate) fn skip(why: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {why}");
}

/// Leaves a test if no network namespace can be made.
#[macro_export]
macro_rules! pod {
    () => {
        match $crate::support::Pod::start() {
            Some(pod) => pod,
            None => return,
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
        let files = self.mock.devices(&Credentials::root()).unwrap().into_iter();
        files.map(|(number, file)| Device::with_transport(DeviceId::new(number), file)).collect()
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
