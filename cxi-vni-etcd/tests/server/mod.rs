//! An etcd server for one test.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Etcd {
    process: Child,
    address: SocketAddr,
    _data: tempfile::TempDir,
}

impl Etcd {
    /// Starts one; `None`, with a message, where etcd is not installed.
    pub(crate) fn start() -> Option<Self> {
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
            .args(["--listen-client-urls", &format!("http://{address}")])
            .args(["--advertise-client-urls", &format!("http://{address}")])
            .args(["--listen-peer-urls", &format!("http://{peers}")])
            .args(["--initial-advertise-peer-urls", &format!("http://{peers}")])
            .args(["--initial-cluster", &format!("test=http://{peers}")])
            .env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(process) = process else {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("a test");
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED {name}: there is no etcd (apt-get install etcd-server)"
            );
            return None;
        };
        let etcd = Self {
            process,
            address,
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
        format!("http://{}", self.address)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
