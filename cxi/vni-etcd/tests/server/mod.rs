//! An etcd of a test's own, and what tests put there.

#![allow(dead_code, reason = "each test uses some of it")]

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cxi_job::collectives::Certificate;
use cxi_job::fabric::Http;
use cxi_job::pool::{PoolConfig, Timestamp};

/// How long an answer may take.
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

/// Reports, past the test harness, that a test cannot run here.
pub(crate) fn skip<T>(why: &str) -> Option<T> {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {why}");
    None
}

#[derive(Debug)]
pub(crate) struct Etcd {
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
        let free = || {
            TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
        };
        let (address, peers) = (free(), free());
        let data = tempfile::tempdir().unwrap();
        let process = Command::new("etcd")
            .args(["--name", "test", "--data-dir"])
            .arg(data.path())
            .args(["--listen-client-urls", &format!("{scheme}://{address}")])
            .args(["--advertise-client-urls", &format!("{scheme}://{address}")])
            .args(options)
            .args(["--listen-peer-urls", &format!("http://{peers}")])
            .args(["--initial-advertise-peer-urls", &format!("http://{peers}")])
            .args(["--initial-cluster", &format!("test=http://{peers}")])
            .env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(process) = process else {
            return skip("there is no etcd (apt-get install etcd-server)");
        };
        let etcd = Self {
            process,
            address,
            scheme,
            _data: data,
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "etcd does not listen");
            sleep(Duration::from_millis(20));
        }
        Some(etcd)
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
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
