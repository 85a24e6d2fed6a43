//! Certificates that `certificates/make` has made.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// Returns the path of a file.
pub(crate) fn path(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    tests.join("fabric_manager/certificates").join(name)
}

/// A copy of a key that nobody else can read: git keeps no such mode.
pub(crate) fn key(name: &str, directory: &Path) -> PathBuf {
    let copy = directory.join(name);
    fs::copy(path(name), &copy).expect("a key");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o600)).expect("it is ours");
    copy
}

pub(crate) fn text(name: &str) -> String {
    fs::read_to_string(path(name)).expect("a certificate")
}

fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(path(name)).expect("a certificate")
}

/// A server that presents a certificate, and may request one signed by the authority.
pub(crate) fn server(name: &str, mutual: bool) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls_graviola::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions of TLS");
    let config = if mutual {
        let mut roots = RootCertStore::empty();
        roots.add(certificate("authority.pem")).expect("an authority");
        let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
        config.with_client_cert_verifier(clients.build().expect("a verifier"))
    } else {
        config.with_no_client_auth()
    };
    let key = PrivateKeyDer::from_pem_file(path(&format!("{name}.key"))).expect("a key");
    let config = config.with_single_cert(vec![certificate(&format!("{name}.pem"))], key);
    Arc::new(config.expect("a key that fits"))
}
