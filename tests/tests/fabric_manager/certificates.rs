//! An authority and servers that it vouches for.

use graviola::signing::eddsa::Ed25519SigningKey;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, Error, IsCa,
    Issuer, KeyIdMethod, PublicKeyData, SignatureAlgorithm, SigningKey, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
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

/// Somebody who signs certificates.
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

    /// What a server of these names shows, valid from and to the first day of two years.
    pub(crate) fn server(&self, names: &[&str], years: (i32, i32)) -> Arc<ServerConfig> {
        let key = Key::new();
        let params = params(names, years, "server");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let provider = Arc::new(rustls_graviola::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.der());
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
