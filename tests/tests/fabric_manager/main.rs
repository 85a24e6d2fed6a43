//! The mock fabric manager behind TLS, and as a command.

mod certificates;
mod command;
mod front;

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use certificates::Authority;
use cxi_fabric_manager::MockFabricManager;
use cxi_job::JobId;
use cxi_job::collectives::Certificate;
use cxi_job::fabric::{
    Credentials, FabricError, FabricManager, Http, HttpError, Identity, Patience, Problem,
};
use front::Front;
use rustls::ServerConfig;
use tempfile::TempDir;

/// A mock behind a front that shows a certificate, and a client that verifies.
struct Site {
    mock: MockFabricManager,
    front: Front,
    files: TempDir,
}

impl Site {
    fn new(authority: &Authority, names: &[&str], years: (i32, i32)) -> Self {
        Self::behind(authority, authority.server(names, years, false))
    }

    fn behind(authority: &Authority, server: Arc<ServerConfig>) -> Self {
        let mock = MockFabricManager::start().unwrap();
        let front = Front::start(mock.address(), server);
        let files = TempDir::new().unwrap();
        fs::write(files.path().join("passwd"), "mock-password").unwrap();
        fs::write(files.path().join("ca.pem"), authority.pem()).unwrap();
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

    /// Refused for what is wrong with the certificate, at once and before anything is said.
    #[track_caller]
    fn distrusted(&self, certificate: Certificate, what: &str) {
        let start = Instant::now();
        let error = self.reserve(certificate).unwrap_err();
        assert!(
            start.elapsed() < Duration::from_secs(8),
            "it is tried again: {error}"
        );
        let Problem::Transport(HttpError::Untrusted(why)) = error.problem() else {
            panic!("{error}")
        };
        assert!(why.contains(what), "{why}");
        assert_eq!(self.mock.journal(), []);
    }
}

const NOW: (i32, i32) = (2020, 2120);

#[test]
fn w11_a_server_that_the_authority_vouches_for_is_trusted() {
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
fn w11_another_authority_host_or_time_is_not() {
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

/// mTLS: a server that wants to know who asks.
#[test]
fn w11_a_client_shows_who_it_is() {
    let authority = Authority::new("authority");
    let server = authority.server(&["localhost"], NOW, true);
    let site = Site::behind(&authority, server);
    let certificate = site.path("ca.pem");
    let identity = |of: &Authority, name: &str| {
        let [shown, key] = of.client();
        let path = |kind: &str| site.files.path().join(format!("{name}.{kind}"));
        fs::write(path("pem"), shown).unwrap();
        fs::write(path("key"), key).unwrap();
        Identity {
            certificate: path("pem"),
            key: path("key"),
        }
    };
    let own = identity(&authority, "own");
    let over = |identity: &Identity| Http::with_identity(&certificate, identity);
    assert!(
        site.reserve_over(over(&own).unwrap(), certificate.clone())
            .unwrap()
    );
    let before = site.mock.journal().len();
    let stranger = identity(&Authority::new("another"), "stranger");
    let stranger = over(&stranger).unwrap();
    assert!(site.reserve_over(stranger, certificate.clone()).is_err());
    assert!(site.reserve(certificate.clone()).is_err());
    assert_eq!(site.mock.journal().len(), before);

    let swapped = Identity {
        certificate: own.key.clone(),
        key: own.certificate.clone(),
    };
    let error = over(&swapped).unwrap_err().to_string();
    assert!(
        error.ends_with("own.key: no certificate in PEM form"),
        "{error}"
    );
    let no_key = Identity {
        key: own.certificate.clone(),
        ..own
    };
    let error = over(&no_key).unwrap_err().to_string();
    assert!(
        error.ends_with("own.pem: no private key in PEM form"),
        "{error}"
    );
}
