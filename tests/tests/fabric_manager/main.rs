//! The mock fabric manager behind TLS, and as a command.

mod certificates;
mod command;
mod front;

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cxi_site::JobId;
use cxi_site::collectives::Certificate;
use cxi_site::fabric::{
    Credentials, FabricError, FabricManager as Client, Http, HttpError, Identity, Patience, Problem,
};
use cxi_test_kit::FabricManager;
use front::Front;

/// A mock behind a TLS front with a certificate, and a client that verifies it.
struct Site {
    mock: FabricManager,
    front: Front,
}

impl Site {
    /// Behind a server that presents this certificate, and may request one.
    fn new(server: &str, mutual: bool) -> Self {
        let mock = FabricManager::start();
        let front = Front::start(mock.address(), certificates::server(server, mutual));
        mock.files.write("ca.pem", &certificates::text("authority.pem"));
        Self { mock, front }
    }

    fn path(&self, name: &str) -> Certificate {
        Certificate::Path(self.mock.files.join(name))
    }

    fn reserve(&self, certificate: Certificate) -> Result<bool, FabricError> {
        let transport = Http::new(&certificate).expect("there are authorities");
        self.reserve_over(transport, certificate)
    }

    fn reserve_over(&self, http: Http, certificate: Certificate) -> Result<bool, FabricError> {
        let client = Client::new(
            &format!("https://localhost:{}", self.front.port()),
            "alpha".parse().unwrap(),
            Credentials::basic(Some(self.mock.files.path())),
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
    let directory = site.mock.files.path().join("ca");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("0a1b2c3d.0"), certificates::text("authority.pem")).unwrap();
    assert!(site.reserve(site.path("ca")).unwrap());
    assert!(site.reserve(Certificate::Unverified).unwrap());
    site.mock.assert_quiet();
}

#[test]
fn w11_another_authority_host_or_time_is_not() {
    let site = Site::new("localhost", false);
    site.mock.files.write("ca.pem", &certificates::text("another.pem"));
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
