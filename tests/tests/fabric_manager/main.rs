//! The mock fabric manager behind TLS, and as a command.

mod certificates;
mod command;
mod front;

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use certificates::Authority;
use cxi_fabric_manager::FabricManager as Mock;
use cxi_job::JobId;
use cxi_job::collectives::Certificate;
use cxi_job::fabric::{
    Credentials, FabricError, FabricManager, Http, Patience, Problem, TransportError,
};
use front::Front;
use tempfile::TempDir;

/// A mock behind a front that shows a certificate, and a client that verifies.
struct Site {
    mock: Mock,
    front: Front,
    files: TempDir,
}

impl Site {
    fn new(authority: &Authority, names: &[&str], years: (i32, i32)) -> Self {
        let mock = Mock::start().unwrap();
        let front = Front::start(mock.address(), authority.server(names, years));
        let files = TempDir::new().unwrap();
        fs::write(files.path().join("passwd"), "mock-password").unwrap();
        fs::write(files.path().join("ca.pem"), authority.pem()).unwrap();
        Self { mock, front, files }
    }

    fn path(&self, name: &str) -> Certificate {
        Certificate::Path(self.files.path().join(name).display().to_string())
    }

    fn reserve(&self, certificate: Certificate) -> Result<bool, FabricError> {
        let transport = Arc::new(Http::new(&certificate).expect("there are authorities"));
        let client = FabricManager::new(
            &format!("https://localhost:{}", self.front.port()),
            "alpha".parse().unwrap(),
            Credentials::basic(Some(self.files.path())),
            transport,
            certificate,
        );
        let client = client.unwrap().patience(Patience {
            attempt: Duration::from_secs(5),
            deadline: Duration::from_secs(10),
            pause: Duration::from_millis(50),
        });
        let job = JobId::new("17").unwrap();
        client.reserve(&job, 1)?;
        client.release(&job)
    }

    /// Refused for what is wrong with the certificate, at once and before anything is said.
    #[track_caller]
    fn distrusted(&self, certificate: Certificate, what: &str) {
        let start = Instant::now();
        let error = self.reserve(certificate).unwrap_err();
        assert!(
            start.elapsed() < Duration::from_secs(8),
            "it is tried again: {error}"
        );
        let Problem::Transport(TransportError::Untrusted(why)) = error.problem() else {
            panic!("{error}")
        };
        assert!(why.contains(what), "{why}");
        assert_eq!(self.mock.journal(), []);
    }
}

const NOW: (i32, i32) = (2020, 2120);

#[test]
fn a_server_that_the_authority_vouches_for_is_trusted() {
    let authority = Authority::new("authority");
    let site = Site::new(&authority, &["localhost"], NOW);
    assert!(site.reserve(site.path("ca.pem")).unwrap());
    // A directory as OpenSSL has it: by hash.
    let directory = site.files.path().join("ca");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("0a1b2c3d.0"), authority.pem()).unwrap();
    assert!(site.reserve(site.path("ca")).unwrap());
    assert!(site.reserve(Certificate::Unverified).unwrap());
    site.mock.assert_quiet();
}

#[test]
fn another_authority_host_or_time_is_not() {
    let authority = Authority::new("authority");
    let site = Site::new(&authority, &["localhost"], NOW);
    fs::write(
        site.files.path().join("ca.pem"),
        Authority::new("another").pem(),
    )
    .unwrap();
    site.distrusted(site.path("ca.pem"), "UnknownIssuer");
    let site = Site::new(&authority, &["other.example"], NOW);
    site.distrusted(site.path("ca.pem"), "other.example");
    let site = Site::new(&authority, &["localhost"], (2020, 2021));
    site.distrusted(site.path("ca.pem"), "expired");
    assert!(site.reserve(Certificate::Unverified).unwrap());
}
