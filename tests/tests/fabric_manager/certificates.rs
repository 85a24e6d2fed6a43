//! An authority, and certificates that it signs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use graviola::signing::eddsa::Ed25519SigningKey;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, Error, IsCa,
    Issuer, KeyIdMethod, PublicKeyData, SignatureAlgorithm, SigningKey, date_time_ymd,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::sync::Arc;

struct Key {
    key: Ed25519SigningKey,
    public: [u8; 32],
}

impl Key {
    fn new() -> Self {
        let key = Ed25519SigningKey::generate().expect("random bytes");
        let public = key.public_key().as_bytes();
        Self { key, public }
    }

    fn der(&self) -> PrivateKeyDer<'static> {
        let mut buffer = [0; 256];
        let der = self.key.to_pkcs8_der(&mut buffer).expect("room");
        PrivatePkcs8KeyDer::from(der.to_vec()).into()
    }
}

impl PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ED25519
    }
}

impl SigningKey for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.key.sign(message).to_vec())
    }
}

/// A certificate authority.
pub(crate) struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, Key>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = params(&[], (2020, 2120), name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = Key::new();
        let certificate = params.self_signed(&key).expect("a certificate");
        let issuer = Issuer::new(params, key);
        Self {
            certificate,
            issuer,
        }
    }

    pub(crate) fn pem(&self) -> String {
        self.certificate.pem()
    }

    fn sign(&self, names: &[&str], years: (i32, i32), name: &str) -> (Certificate, Key) {
        let key = Key::new();
        let params = params(names, years, name);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate, key)
    }

    /// What a client shows: certificate and key.
    pub(crate) fn client(&self) -> [String; 2] {
        let (certificate, key) = self.sign(&[], (2020, 2120), "client");
        let key = STANDARD.encode(key.der().secret_der());
        let key = format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n");
        [certificate.pem(), key]
    }

    /// What a server of these names shows, valid from and to the first day of two years. It may want
    /// to see a certificate of this authority.
    pub(crate) fn server(
        &self,
        names: &[&str],
        years: (i32, i32),
        mutual: bool,
    ) -> Arc<ServerConfig> {
        let (certificate, key) = self.sign(names, years, "server");
        let provider = Arc::new(rustls_graviola::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions of TLS");
        let config = if mutual {
            let mut roots = RootCertStore::empty();
            roots
                .add(self.certificate.der().clone())
                .expect("an authority");
            let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            config.with_client_cert_verifier(clients.build().expect("a verifier"))
        } else {
            config.with_no_client_auth()
        };
        let config = config.with_single_cert(vec![certificate.der().clone()], key.der());
        Arc::new(config.expect("a key that fits"))
    }
}

fn params(names: &[&str], (from, to): (i32, i32), name: &str) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names of hosts");
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(to, 1, 1);
    params.serial_number = Some(vec![1].into());
    params.key_identifier_method = KeyIdMethod::PreSpecified(name.as_bytes().to_vec());
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
