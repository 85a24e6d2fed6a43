//! Transport of requests: answers that end somewhere, and no secret in what is printed.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fmt, thread};

use cxi_fabric_manager::{Endpoint, Fault};
use cxi_site::fabric::{
    Credentials, HttpAnswer, HttpError, HttpRequest, HttpTransport, Patience, end_inherited_step,
};

use crate::support::{PATIENCE, Site, client, http, job, step};

/// Notes what goes through, and how it is printed. What fails does so forever.
struct Spy {
    inner: Arc<dyn HttpTransport>,
    secrets: Mutex<Vec<String>>,
    printed: Mutex<Vec<String>>,
}

impl fmt::Debug for Spy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Spy {
    fn new() -> Arc<Self> {
        Arc::new(Self { inner: http(), secrets: Mutex::default(), printed: Mutex::default() })
    }

    fn note(&self, secret: &str) {
        self.secrets.lock().unwrap().push(secret.to_owned());
    }

    fn print(&self, what: impl fmt::Debug) {
        self.printed.lock().unwrap().push(format!("{what:#?}"));
        self.printed.lock().unwrap().push(format!("{what:?}"));
    }
}

impl HttpTransport for Spy {
    fn send(&self, request: &HttpRequest<'_>, timeout: Duration) -> Result<HttpAnswer, HttpError> {
        self.print(request);
        if let Some(authorization) = request.authorization {
            self.note(authorization.split_once(' ').unwrap().1);
        }
        let answer = self.inner.send(request, timeout);
        self.print(&answer);
        let answer = answer.map_err(|error| HttpError::Untrusted(format!("at once: {error}")))?;
        let document: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        for member in ["access_token", "sessionToken"] {
            document[member].as_str().inspect(|secret| self.note(secret));
        }
        Ok(answer)
    }
}

#[test]
fn an_answer_without_end_is_not_read_to_its_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let endless = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let spaces = vec![b' '; 1 << 16];
        // Four times what is read, and what the kernel holds.
        (0..1 << 10).take_while(|_| stream.write_all(&spaces).is_ok()).count()
    });
    let site = Site::new();
    let credentials = Credentials::basic(Some(site.mock.files.path()));
    let minute = Duration::from_secs(60);
    let client = client(&url, credentials, Spy::new()).patience(Patience {
        attempt: minute,
        deadline: minute,
        ..PATIENCE
    });
    let error = client.find(&job("1")).unwrap_err().to_string();
    assert!(error.contains("at once: the answer is broken"), "{error}");
    drop(client);
    let sent = endless.join().unwrap();
    // 16 MiB are read, and what comes then is not.
    assert!((256..1 << 10).contains(&sent), "{sent} times 64 KiB");
}

#[test]
fn nothing_that_is_printed_has_a_secret() {
    let site = Site::new();
    let spy = Spy::new();
    for credentials in [site.oauth(), Credentials::basic(Some(site.mock.files.path()))] {
        spy.print(&credentials);
        let transport: Arc<dyn HttpTransport> = Arc::<Spy>::clone(&spy);
        let client = client(&site.mock.url(), credentials, Arc::clone(&transport));
        let reserved = client.reserve(&job("1"), 1).unwrap();
        spy.print(&reserved);
        spy.print(&client);
        let reservation = &reserved.reservation;
        let ended = end_inherited_step(reservation, &step("0"), &*transport, &PATIENCE);
        spy.print(&ended);
        site.fails(Endpoint::GetJob, Fault::status(401));
        let error = client.find(&job("1")).unwrap_err();
        spy.print(error.to_string());
        spy.print(error);
        site.mock.clear_faults();
        client.release(&job("1")).unwrap();
    }
    for file in ["client-secret", "passwd"] {
        let text = std::fs::read_to_string(site.mock.files.path().join(file)).unwrap();
        spy.note(text.trim());
    }
    let mut secrets = spy.secrets.lock().unwrap().clone();
    secrets.sort();
    secrets.dedup();
    assert!(secrets.len() >= 5, "{secrets:?}");
    for printed in &*spy.printed.lock().unwrap() {
        for secret in &secrets {
            let numbers = format!("{:?}", secret.as_bytes());
            let numbers = numbers.trim_matches(['[', ']']);
            let printed = printed.replace(char::is_whitespace, "");
            let numbers = numbers.replace(' ', "");
            assert!(!printed.contains(&**secret), "{printed}: {secret}");
            assert!(!printed.contains(&numbers), "{printed}: {secret}");
        }
    }
}
