//! An etcd of a test's own, and what tests put there.

#![allow(dead_code, reason = "each test uses some of it")]

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cxi_site::collectives::Certificate;
use cxi_site::fabric::{Http, HttpRequest, HttpTransport as _};
use cxi_site::pool::{PoolConfig, Timestamp};
use cxi_test_kit::skip;

/// Longest time that an answer may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// A transport that verifies no server.
pub(crate) fn http() -> Http {
    Http::new(&Certificate::Unverified).unwrap()
}

pub(crate) fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

pub(crate) fn config() -> PoolConfig {
    PoolConfig::new("1024-65535".parse().unwrap())
}

#[derive(Debug)]
pub(crate) struct Etcd {
    command: Command,
    process: Child,
    address: SocketAddr,
    scheme: &'static str,
    _data: tempfile::TempDir,
}

impl Etcd {
    /// Starts one; `None`, with a message, where etcd is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::with("http", &[])
    }

    pub(crate) fn with(scheme: &'static str, options: &[&str]) -> Option<Self> {
        Self::members(1, scheme, options)?.pop()
    }

    /// Starts several, of one cluster.
    pub(crate) fn members(
        count: usize,
        scheme: &'static str,
        options: &[&str],
    ) -> Option<Vec<Self>> {
        // Another program may take a port between its choice and the start.
        for _ in 0..4 {
            let mut started = Self::started(count, scheme, options)?;
            if Self::become_ready(&mut started) {
                return Some(started);
            }
        }
        panic!("etcd has ended four times as soon as it was started")
    }

    fn started(count: usize, scheme: &'static str, options: &[&str]) -> Option<Vec<Self>> {
        let free = || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap()
        };
        let peers: Vec<String> = (0..count).map(|_| format!("http://{}", free())).collect();
        let names = (0..count).map(|member| format!("m{member}={}", peers[member]));
        let cluster = names.collect::<Vec<_>>().join(",");
        let started = peers.iter().enumerate().map(|(member, peer)| {
            let (address, data) = (free(), tempfile::tempdir().unwrap());
            let url = format!("{scheme}://{address}");
            let mut command = Command::new("etcd");
            command
                .args(["--name", &format!("m{member}"), "--data-dir"])
                .arg(data.path())
                .args(["--listen-client-urls", &url])
                .args(["--advertise-client-urls", &url])
                .args(options)
                .args(["--listen-peer-urls", peer])
                .args(["--initial-advertise-peer-urls", peer])
                .args(["--initial-cluster", &cluster])
                .env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let process = command.spawn().ok()?;
            Some(Self { command, process, address, scheme, _data: data })
        });
        let started: Option<Vec<Self>> = started.collect();
        if started.is_none() {
            skip("there is no etcd (apt-get install etcd-server)");
        }
        started
    }

    /// Waits for all members; `false` if one has ended. They listen before they have a leader, and refuse
    /// everything until then.
    fn become_ready(members: &mut [Self]) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !members.iter().all(Self::is_ready) {
            if members.iter_mut().any(|member| member.process.try_wait().unwrap().is_some()) {
                return false;
            }
            assert!(Instant::now() < deadline, "etcd is not ready");
            sleep(Duration::from_millis(20));
        }
        true
    }

    fn is_ready(&self) -> bool {
        if self.scheme == "https" {
            // It may want a certificate, and is alone.
            return TcpStream::connect(self.address).is_ok();
        }
        let (url, key) = (format!("{}/v3/kv/range", self.url()), r#"{"key": "YQ=="}"#);
        let answer = http().send(&HttpRequest::post(&url, None, key), PATIENCE);
        answer.is_ok_and(|answer| answer.status == 200)
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts it again after it was killed.
    pub(crate) fn restart(&mut self) {
        self.process = self.command.spawn().unwrap();
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}
