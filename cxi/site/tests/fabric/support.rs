//! A client of a mock fabric manager.

use std::sync::Arc;
use std::time::Duration;

use cxi_fabric_manager as mock;
use cxi_fabric_manager::model::TreeRequest;
use cxi_site::collectives::{Certificate, Reservation};
use cxi_site::fabric::{Credentials, FabricManager, Http, HttpRequest, HttpTransport, Patience};
use cxi_site::{JobId, StepId};

/// Short enough for tests, long enough for a busy machine.
pub(crate) const PATIENCE: Patience = Patience {
    attempt: Duration::from_millis(300),
    deadline: Duration::from_millis(900),
    pause: Duration::from_millis(20),
};

pub(crate) struct Site {
    pub(crate) mock: cxi_test_kit::FabricManager,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::with(mock::Config::default())
    }

    pub(crate) fn with(config: mock::Config) -> Self {
        Self { mock: cxi_test_kit::FabricManager::with(config) }
    }

    /// This fails, until the mock is told to forget it.
    pub(crate) fn fails(&self, endpoint: mock::Endpoint, how: impl Into<mock::Fault>) {
        self.mock.inject(how.into().on(endpoint));
    }

    pub(crate) fn fails_once(&self, endpoint: mock::Endpoint, how: impl Into<mock::Fault>) {
        self.mock.inject(how.into().on(endpoint).times(1));
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        self.mock.files.write_secret(name, text);
    }

    pub(crate) fn oauth(&self) -> Credentials {
        Credentials::oauth(Some(self.mock.files.path()))
    }

    pub(crate) fn client_with(&self, credentials: Credentials) -> FabricManager {
        client(&self.mock.url(), credentials, http())
    }

    /// A client of another server, with the password of this one.
    pub(crate) fn client_at(&self, url: &str) -> FabricManager {
        client(url, Credentials::basic(Some(self.mock.files.path())), http())
    }

    pub(crate) fn client(&self) -> FabricManager {
        self.client_with(self.oauth())
    }
}

pub(crate) fn client(
    url: &str,
    credentials: Credentials,
    transport: Arc<dyn HttpTransport>,
) -> FabricManager {
    client_of("alpha", url, credentials, transport)
}

pub(crate) fn client_of(
    cluster: &str,
    url: &str,
    credentials: Credentials,
    transport: Arc<dyn HttpTransport>,
) -> FabricManager {
    let cluster = cluster.parse().unwrap();
    let client = FabricManager::new(url, cluster, credentials, transport, Certificate::System);
    client.unwrap().patience(PATIENCE)
}

pub(crate) fn http() -> Arc<dyn HttpTransport> {
    Arc::new(Http::new(&Certificate::Unverified).unwrap())
}

/// Makes a tree as libfabric does, of two NICs; returns its root.
pub(crate) fn tree(reservation: &Reservation, step: &str) -> String {
    let job = reservation.id().as_str();
    let body = TreeRequest::of_libfabric(job, step, &[0x14433, 0x14434], 1024);
    let body = serde_json::to_string(&body).unwrap();
    let bearer = format!("Bearer {}", reservation.token());
    let request = HttpRequest::post(reservation.url(), Some(&bearer), &body);
    let answer = http().send(&request, PATIENCE.attempt).unwrap();
    let made: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    made["hwRoot"].as_str().unwrap().to_owned()
}

pub(crate) fn job(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

pub(crate) fn step(name: &str) -> StepId {
    StepId::new(name).unwrap()
}
