//! A fabric manager in process: requests and answers get lost, tokens and reservations, too.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cxi_fabric_manager::api::{Api, Request};
use cxi_fabric_manager::model::TreeRequest;
use cxi_fabric_manager::{Config, Forget};
use cxi_site::JobId;
use cxi_site::collectives::{Certificate, Reservation};
use cxi_site::fabric::{
    Credentials, FabricManager, HttpAnswer, HttpError, HttpRequest, HttpTransport, Method, Patience,
};
use cxi_test_kit::{Directory, Random};

const URL: &str = "https://fm";
const CLUSTER: &str = "alpha";

/// Every request is made once, so that what happens does not depend on time.
const ONCE: Patience =
    Patience { attempt: Duration::ZERO, deadline: Duration::ZERO, pause: Duration::ZERO };

#[derive(Debug)]
struct Lossy {
    api: Mutex<Api>,
    dice: Mutex<Random>,
}

impl HttpTransport for Lossy {
    fn send(&self, request: &HttpRequest<'_>, _: Duration) -> Result<HttpAnswer, HttpError> {
        let fate = self.dice.lock().unwrap().below(16);
        if fate == 0 {
            return Err(HttpError::Timeout);
        }
        let method = match request.method {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
            other => panic!("{other:?}"),
        };
        let authorization = request.authorization.unwrap_or_default().to_owned();
        let request = Request {
            method: method.to_owned(),
            path: request.url.strip_prefix(URL).unwrap().to_owned(),
            headers: vec![("Authorization".to_owned(), authorization)],
            body: request.body.unwrap_or_default().as_bytes().to_vec(),
        };
        let (answer, _) = self.api.lock().unwrap().handle(&request, Duration::ZERO);
        if fate == 1 {
            return Err(HttpError::Timeout);
        }
        Ok(HttpAnswer { status: answer.status, body: answer.body })
    }
}

/// The fabric manager and what a workload manager has of it.
pub(super) struct Site {
    server: Arc<Lossy>,
    files: Directory,
}

impl Site {
    pub(super) fn new(seed: u64) -> Self {
        let config = Config::default();
        let files = Directory::new();
        files.write_secret("passwd", &config.access.password);
        let server = Arc::new(Lossy {
            api: Mutex::new(Api::new(config).unwrap()),
            dice: Mutex::new(Random::new(seed)),
        });
        Self { server, files }
    }

    pub(super) fn api(&self) -> MutexGuard<'_, Api> {
        self.server.api.lock().unwrap()
    }

    /// The client of a controller that has just started.
    pub(super) fn client(&self) -> FabricManager {
        let credentials = Credentials::basic(Some(self.files.path()));
        let server = Arc::<Lossy>::clone(&self.server);
        let cluster = CLUSTER.parse().unwrap();
        let client = FabricManager::new(URL, cluster, credentials, server, Certificate::System);
        client.unwrap().patience(ONCE)
    }

    /// A process of a job makes a tree, as libfabric does; `None` if that fails.
    pub(super) fn make_tree(&self, of: &Reservation, nics: &[u32], vni: cxi::Vni) -> Option<u64> {
        let (job, step) = (of.id().as_str(), super::step());
        let body = TreeRequest::of_libfabric(job, step.as_str(), nics, vni.get());
        let body = serde_json::to_string(&body).unwrap();
        let made = self.ask(Method::Post, of, of.url(), Some(&body))?;
        let made: serde_json::Value = serde_json::from_slice(&made.body).unwrap();
        made["mcastID"].as_u64()
    }

    /// It deletes one.
    pub(super) fn delete_tree(&self, of: &Reservation, id: u64) {
        let _ = self.ask(Method::Delete, of, &format!("{}/{id}", of.url()), None);
    }

    fn ask(
        &self,
        method: Method,
        of: &Reservation,
        url: &str,
        body: Option<&str>,
    ) -> Option<HttpAnswer> {
        let bearer = format!("Bearer {}", of.token());
        let mut request = HttpRequest::post(url, Some(&bearer), body.unwrap_or_default());
        (request.method, request.body) = (method, body);
        let answer = self.server.send(&request, Duration::ZERO).ok()?;
        matches!(answer.status, 200..=299).then_some(answer)
    }

    pub(super) fn restart(&self, forget: Forget) {
        self.api().restart(forget);
    }

    /// The trees, each with its job and its VNI.
    pub(super) fn trees(&self) -> Vec<(JobId, u64)> {
        let api = self.api();
        api.model().check().unwrap();
        let trees = api.model().active_trees().map(|(_, tree)| {
            let request = &tree.request;
            let (cluster, job) = request.job.split_once('-').unwrap();
            assert_eq!(cluster, CLUSTER);
            (JobId::new(job).unwrap(), request.vni)
        });
        trees.collect()
    }
}
