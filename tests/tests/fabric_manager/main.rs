//! The mock fabric manager behind TLS, and as a command.

mod certificates;
mod command;
mod front;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cxi_fabric_manager::MockFabricManager;
use cxi_site::JobId;
use cxi_site::collectives::Certificate;
use cxi_site::fabric::{
    Credentials, FabricError, FabricManager, Http, HttpError, Identity, Patience, Problem,
};
use front::Front;
use tempfile::TempDir;

/// A mock behind a TLS front with a certificate, and a client that verifies it.
struct Site {
    mock: MockFabricManager,
    front: Front,
    files: TempDir,
}

impl Site {
    /// Behind a server that presents this certificate, and may request one.
    fn new(server: &str, mutual: bool) -> Self {
        let mock = MockFabricManager::start().unwrap();
        let front = Front::start(mock.address(), certificates::server(server, mutual));
        let files = TempDir::new().unwrap();
        let password = files.path().join("passwd");
        fs::write(&password, "mock-password").unwrap();
        fs::set_permissions(&password, Permissions::from_mode(0o600)).unwrap();
        let authority = certificates::text("authority.pem");
        fs::write(files.path().join("ca.pem"), authority).unwrap();
        Self { mock, front, files }
    }

    fn path(&self, name: &str) -> Certificate {
        Certificate::Path(self.files.path().join(name).display().to_string())
    }

    fn reserve(&self, certificate: Certificate) -> Result<bool, FabricError> {
        let transport = Http::new(&certificate).expect("there are authorities");
        self.reserve_over(transport, certificate)
    }

    fn reserve_over(&self, http: Http, certificate: Certificate) -> Result<bool, FabricError> {
        let client = FabricManager::new(
            &format!("https://localhost:{}", self.front.port()),
            "alpha".parse().unwrap(),
            Credentials::basic(Some(self.files.path())),
            Arc::new(http),
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

    /// Refused because of the certificate, immediately, and before anything is sent.
    #[track_caller]
    fn distrusted(&self, certificate: Certificate, what: &str) {
        let start = Instant::now();
        let error = self.reserve(certificate).unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(8), "it is tried again: {error}");
        let Problem::Transport(HttpError::Untrusted(why)) = error.problem() else {
            panic!("{error}")
        };
        assert!(why.contains(what), "{why}");
        assert_eq!(self.mock.journal(), []);
    }
}

#[test]
fn w11_a_server_that_the_authority_vouches_for_is_trusted() {
    let site = Site::new("localhost", false);
    assert!(site.reserve(site.path("ca.pem")).unwrap());
    // A directory in the format of OpenSSL: by hash.
    let directory = site.files.path().join("ca");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("0a1b2c3d.0"), certificates::text("authority.pem")).unwrap();
    assert!(site.reserve(site.path("ca")).unwrap());
    assert!(site.reserve(Certificate::Unverified).unwrap());
    site.mock.assert_quiet();
}

#[test]
fn w11_another_authority_host_or_time_is_not() {
    let site = Site::new("localhost", false);
    let another = certificates::text("another.pem");
    fs::write(site.files.path().join("ca.pem"), another).unwrap();
    site.distrusted(site.path("ca.pem"), "UnknownIssuer");
    let site = Site::new("elsewhere", false);
    site.distrusted(site.path("ca.pem"), "other.example");
    let site = Site::new("expired", false);
    site.distrusted(site.path("ca.pem"), "expired");
    assert!(site.reserve(Certificate::Unverified).unwrap());
}

/// mTLS: a server that authenticates its clients.
#[test]
fn w11_a_client_shows_who_it_is() {
    let site = Site::new("localhost", true);
    let certificate = site.path("ca.pem");
    let keys = tempfile::tempdir().expect("a directory");
    let identity = |name: &str| Identity {
        certificate: certificates::path(&format!("{name}.pem")),
        key: certificates::key(&format!("{name}.key"), keys.path()),
    };
    let own = identity("client");
    let over = |identity: &Identity| Http::with_identity(&certificate, Some(identity));
    assert!(site.reserve_over(over(&own).unwrap(), certificate.clone()).unwrap());
    let before = site.mock.journal().len();
    let stranger = over(&identity("stranger")).unwrap();
    assert!(site.reserve_over(stranger, certificate.clone()).is_err());
    assert!(site.reserve(certificate.clone()).is_err());
    assert_eq!(site.mock.journal().len(), before);

    let swapped = Identity { certificate: own.key.clone(), key: own.certificate.clone() };
    let error = over(&swapped).unwrap_err().to_string();
    assert!(error.ends_with("client.key: no certificate in PEM form"), "{error}");
    let no_key = Identity { key: certificates::key("client.pem", keys.path()), ..own };
    let error = over(&no_key).unwrap_err().to_string();
    assert!(error.ends_with("client.pem: no private key in PEM form"), "{error}");
}
