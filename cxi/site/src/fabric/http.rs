//! HTTP by ureq, TLS by rustls.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, io};

use cxi::environment;
use cxi::kernel_file::read_bounded;
use rustls::crypto::CryptoProvider;
use ureq::http::{Request, Response};
use ureq::tls::{
    Certificate as Root, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem,
};
use ureq::{Agent, Body, Error};

use super::transport::{HttpAnswer, HttpError, HttpRequest, HttpTransport, LONGEST_ANSWER, Method};
use crate::collectives::Certificate;
use crate::{durable, secret};

/// A transport over HTTP and HTTPS. Neither redirections nor proxies are followed: a token goes
/// only to the server that it is for.
#[derive(Debug, Clone)]
pub struct Http {
    agent: Agent,
}

impl Http {
    /// A transport that verifies servers by the authorities in a file or directory, by the
    /// system's, or not at all.
    ///
    /// # Errors
    /// [`HttpError::Untrusted`]: no authority at the path, or a processor without the
    /// instructions that the cryptography needs.
    pub fn new(certificate: &Certificate) -> Result<Self, HttpError> {
        Self::with_identity(certificate, None)
    }

    /// A transport that can also present a client certificate, for servers that require one (mTLS).
    ///
    /// # Errors
    /// As [`Http::new`], and [`HttpError::Untrusted`] with the file that has no certificate, or no key.
    pub fn with_identity(
        certificate: &Certificate,
        identity: Option<&Identity>,
    ) -> Result<Self, HttpError> {
        let config = TlsConfig::builder()
            .client_cert(identity.map(Identity::read).transpose()?)
            .unversioned_rustls_crypto_provider(Arc::new(cryptography()?))
            .root_certs(roots(certificate)?)
            .disable_verification(*certificate == Certificate::Unverified)
            .build();
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("cxi-job/", env!("CARGO_PKG_VERSION")))
            .tls_config(config)
            .build();
        let agent = agent.into();
        Ok(Self { agent })
    }
}

/// A client certificate for servers that require one (mTLS): files in PEM form.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "there are two")]
pub struct Identity {
    /// The certificate, and those of the authorities between it and the server's.
    pub certificate: PathBuf,
    /// Its private key, which nobody else may be able to read.
    pub key: PathBuf,
}

impl Identity {
    fn read(&self) -> Result<ClientCert, HttpError> {
        let unusable = |path: &Path, why: &dyn std::fmt::Display| {
            HttpError::Untrusted(format!("{}: {why}", path.display()))
        };
        let chain = certificates(&self.certificate);
        let chain = chain.map_err(|error| unusable(&self.certificate, &error))?;
        if chain.is_empty() {
            return Err(unusable(&self.certificate, &"no certificate in PEM form"));
        }
        let key = secret::read(&self.key).map_err(|error| unusable(&self.key, &error))?;
        let key = PrivateKey::from_pem(&key)
            .map_err(|_| unusable(&self.key, &"no private key in PEM form"))?;
        Ok(ClientCert::new_with_certs(&chain, key))
    }
}

#[cfg(feature = "aws-lc-rs")]
#[allow(clippy::unnecessary_wraps, reason = "the other one can fail")]
fn cryptography() -> Result<CryptoProvider, HttpError> {
    Ok(rustls::crypto::aws_lc_rs::default_provider())
}

#[cfg(not(feature = "aws-lc-rs"))]
fn cryptography() -> Result<CryptoProvider, HttpError> {
    // Graviola panics on a processor that lacks instructions which it needs.
    if graviola::util::is_cpu_supported() {
        return Ok(rustls_graviola::default_provider());
    }
    let message = "this processor lacks instructions (for AES and the like) that the cryptography \
                   needs: HTTPS takes a build with the feature aws-lc-rs";
    Err(HttpError::Untrusted(message.to_owned()))
}

/// Far longer than the certificates of all authorities.
const LONGEST: u64 = 16 << 20;

/// The certificates in a file in PEM form.
fn certificates(path: &Path) -> io::Result<Vec<Root<'static>>> {
    let bytes = durable::open_regular(path).and_then(|file| read_bounded(file, LONGEST))?;
    let mut found = Vec::new();
    for item in parse_pem(&bytes) {
        if let PemItem::Certificate(certificate) = item.map_err(io::Error::other)? {
            found.push(certificate);
        }
    }
    Ok(found)
}

/// Files in which distributions keep the certificates of all authorities.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The file of this distribution, if the caller has named others and must not choose.
fn not_of_the_caller() -> Option<&'static str> {
    let named = ["SSL_CERT_FILE", "SSL_CERT_DIR"];
    let ignored = |name| env::var_os(name).is_some() && environment::var_os(name).is_none();
    named
        .into_iter()
        .any(ignored)
        .then(|| SYSTEM.into_iter().find(|path| Path::new(path).exists()).unwrap_or(SYSTEM[0]))
}

fn roots(certificate: &Certificate) -> Result<RootCerts, HttpError> {
    let untrusted = |of: &str, why: &str| {
        HttpError::Untrusted(format!("no certificate authority of {of}{why}"))
    };
    let path = match certificate {
        Certificate::Unverified => return Ok(RootCerts::Specific(Arc::default())),
        Certificate::System => not_of_the_caller(),
        Certificate::Path(path) => Some(path.as_str()),
    };
    if let Some(path) = path {
        let place = Path::new(path);
        let failed = |error: io::Error| untrusted(path, &format!(": {error}"));
        durable::answers(place).map_err(failed)?;
        if !place.is_dir() {
            let roots = certificates(place).map_err(failed)?;
            if roots.is_empty() {
                return Err(untrusted(path, ""));
            }
            return Ok(RootCerts::Specific(Arc::new(roots)));
        }
    }
    let (found, of) = match path {
        Some(path) => {
            (rustls_native_certs::load_certs_from_paths(None, Some(Path::new(path))), path)
        }
        None => (rustls_native_certs::load_native_certs(), "the system"),
    };
    if found.certs.is_empty() {
        let why = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        return Err(untrusted(of, &why));
    }
    let roots = found.certs.iter().map(|root| Root::from_der(root).to_owned());
    Ok(RootCerts::Specific(Arc::new(roots.collect())))
}

impl HttpTransport for Http {
    fn send(&self, request: &HttpRequest<'_>, timeout: Duration) -> Result<HttpAnswer, HttpError> {
        let method = match request.method {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        };
        let mut head = Request::builder()
            .method(method)
            .uri(request.url)
            .header("content-type", request.content_type)
            .header("accept", "application/json");
        if let Some(authorization) = request.authorization {
            head = head.header("authorization", authorization);
        }
        let broken = |error: &dyn std::fmt::Display| HttpError::Broken(error.to_string());
        let answer = match request.body {
            None => self.run(head.body(()).map_err(|error| broken(&error))?, timeout),
            Some(body) => self.run(head.body(body).map_err(|error| broken(&error))?, timeout),
        };
        let mut answer = answer.map_err(of)?;
        let body = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec();
        Ok(HttpAnswer { status: answer.status().as_u16(), body: body.map_err(of)? })
    }
}

impl Http {
    fn run(
        &self,
        request: Request<impl ureq::AsSendBody>,
        timeout: Duration,
    ) -> Result<Response<Body>, Error> {
        let request = self.agent.configure_request(request).timeout_global(Some(timeout)).build();
        self.agent.run(request)
    }
}

fn of(error: Error) -> HttpError {
    match error {
        Error::Timeout(_) => HttpError::Timeout,
        Error::HostNotFound => HttpError::Unreachable("unknown host".to_owned()),
        Error::ConnectionFailed => HttpError::Unreachable("the connection failed".to_owned()),
        Error::Rustls(error) => HttpError::Untrusted(error.to_string()),
        Error::Io(error) => of_io(&error),
        error => HttpError::Broken(error.to_string()),
    }
}

fn of_io(error: &io::Error) -> HttpError {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    if let Some(tls) = tls {
        return HttpError::Untrusted(tls.to_string());
    }
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => HttpError::Timeout,
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
            HttpError::Broken(error.to_string())
        }
        _ => HttpError::Unreachable(error.to_string()),
    }
}
