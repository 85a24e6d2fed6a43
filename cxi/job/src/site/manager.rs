//! The fabric manager of a site.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Controller;
use super::keys::{self, Auth};
use crate::collectives::Certificate;
use crate::fabric::{
    ClusterName, Credentials, FabricError, FabricManager, Http, Identity, Patience, Problem,
};
use crate::settings::{Settings, SettingsError};

/// Which fabric manager, how to authenticate, and how long to wait.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "options override settings")]
pub struct ManagerOptions {
    /// Its address, in front of `/fabric/…`.
    pub url: Option<String>,
    /// The prefix of this cluster's reservations.
    pub cluster: Option<ClusterName>,
    /// How this workload manager authenticates itself.
    pub auth: Auth,
    /// The directory with the secrets for that; `None` for the usual one.
    pub auth_dir: Option<PathBuf>,
    /// How its certificate is verified.
    pub certificate: Certificate,
    /// The certificate that is presented to it.
    pub client_certificate: Option<PathBuf>,
    /// The key of that certificate.
    pub client_key: Option<PathBuf>,
    /// How long a request is tried.
    pub deadline: Duration,
}

impl ManagerOptions {
    /// As the settings say.
    ///
    /// # Errors
    ///
    /// A setting is invalid.
    pub fn of(settings: &Settings) -> Result<Self, SettingsError> {
        Ok(Self {
            url: settings.get(&keys::FABRIC_URL)?,
            cluster: settings.get(&keys::FABRIC_CLUSTER)?,
            auth: settings.get(&keys::FABRIC_AUTH)?,
            auth_dir: settings.get(&keys::FABRIC_AUTH_DIR)?,
            certificate: settings.get(&keys::FABRIC_CERTIFICATE)?,
            client_certificate: settings.get(&keys::FABRIC_IDENTITY)?,
            client_key: settings.get(&keys::FABRIC_KEY)?,
            deadline: settings.get(&keys::FABRIC_DEADLINE)?,
        })
    }

    /// The fabric manager. It is not asked anything yet.
    ///
    /// # Errors
    ///
    /// [`FabricError`]: the options are incomplete, or credentials cannot be read.
    pub fn open(&self) -> Result<FabricManager, FabricError> {
        let url = self
            .url
            .as_deref()
            .ok_or_else(|| missing("address: expected the setting fabric-manager.url"))?;
        let cluster = self.cluster.clone().ok_or_else(|| {
            missing("name of this cluster: expected the setting fabric-manager.cluster")
        })?;
        let directory = self.auth_dir.as_deref();
        let credentials = match self.auth {
            Auth::Oauth => Credentials::oauth(directory),
            Auth::Basic => Credentials::basic(directory),
        };
        let transport = Arc::new(self.transport()?);
        let certificate = self.certificate.clone();
        let manager = FabricManager::new(url, cluster, credentials, transport, certificate)?;
        Ok(manager.patience(self.patience()))
    }

    /// How to reach it, and how its certificate is verified.
    ///
    /// # Errors
    ///
    /// [`FabricError`]: a file cannot be read, or the certificate or the key is missing.
    pub fn transport(&self) -> Result<Http, FabricError> {
        let identity = match (self.client_certificate.clone(), self.client_key.clone()) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
            _ => {
                return Err(missing(
                    "key or certificate: expected both a client certificate and its key",
                ));
            }
        };
        Http::with_identity(&self.certificate, identity.as_ref())
            .map_err(|error| FabricError::new(ACTION, Problem::Credentials(error.to_string())))
    }

    /// How long a request is tried.
    #[must_use]
    pub fn patience(&self) -> Patience {
        let usual = Patience::default();
        let deadline = self.deadline;
        Patience { deadline, ..usual }.within(deadline)
    }
}

impl Controller<'_> {
    /// Takes the fabric manager of the settings, if they want hardware collectives: if
    /// `collectives.trees` is not 0.
    ///
    /// # Errors
    ///
    /// A setting is invalid. A fabric manager that cannot be used is a warning of the operation that
    /// needs it.
    pub fn fabric_manager_of(self, settings: &Settings) -> Result<Self, SettingsError> {
        if settings.get(&keys::COLLECTIVES_TREES)? == 0 {
            return Ok(self);
        }
        let options = ManagerOptions::of(settings)?;
        Ok(self.fabric_manager(options.open()))
    }
}

const ACTION: &str = "use the fabric manager";

fn missing(what: &str) -> FabricError {
    FabricError::new(ACTION, Problem::Name(format!("it has no {what}")))
}
