//! The fabric manager of a site.

use std::sync::Arc;

use super::keys::{self, Auth};
use super::{Controller, SiteError};
use cxi_site::StepId;
use cxi_site::collectives::Reservation;
use cxi_site::fabric::{
    self, Credentials, FabricError, FabricManager, Http, Identity, Patience, Problem,
};
use cxi_site::settings::{Settings, SettingsError};

/// The fabric manager of the settings `fabric-manager`.
///
/// # Errors
///
/// [`SiteError::Setting`]; [`SiteError::Fabric`]: the address or the cluster is missing, the address
/// is invalid, or the certificates cannot be used.
pub fn fabric_manager(settings: &Settings) -> Result<FabricManager, SiteError> {
    let url = settings.get(&keys::FABRIC_URL)?;
    let url = url.ok_or_else(|| missing("address: expected the setting fabric-manager.url"))?;
    let cluster = settings.get(&keys::FABRIC_CLUSTER)?.ok_or_else(|| {
        missing("name of this cluster: expected the setting fabric-manager.cluster")
    })?;
    let directory = settings.get(&keys::FABRIC_AUTH_DIR)?;
    let credentials = match settings.get(&keys::FABRIC_AUTH)? {
        Auth::Oauth => Credentials::oauth(directory.as_deref()),
        Auth::Basic => Credentials::basic(directory.as_deref()),
    };
    let certificate = settings.get(&keys::FABRIC_CERTIFICATE)?;
    let transport = Arc::new(transport(settings)?);
    let manager = FabricManager::new(&url, cluster, credentials, transport, certificate)?;
    let manager = if settings.get(&keys::FABRIC_ALLOW_CLEAR)? {
        manager.allow_clear_secrets()
    } else {
        manager
    };
    Ok(manager.patience(patience(settings)?))
}

/// As [`fabric::end_inherited_step`], with the transport and the deadline of the settings.
///
/// # Errors
///
/// [`SiteError::Setting`] and [`SiteError::Fabric`].
pub fn end_inherited_step(
    reservation: &Reservation,
    step: &StepId,
    settings: &Settings,
) -> Result<bool, SiteError> {
    let transport = transport(settings)?;
    let patience = patience(settings)?;
    let there = fabric::end_inherited_step(reservation, step, &transport, &patience)?;
    Ok(there)
}

fn transport(settings: &Settings) -> Result<Http, SiteError> {
    let identity = settings.both(&keys::FABRIC_IDENTITY, &keys::FABRIC_KEY)?;
    let identity = identity.map(|(certificate, key)| Identity { certificate, key });
    let certificate = settings.get(&keys::FABRIC_CERTIFICATE)?;
    Http::with_identity(&certificate, identity.as_ref())
        .map_err(|error| FabricError::new(ACTION, Problem::Credentials(error.to_string())).into())
}

fn patience(settings: &Settings) -> Result<Patience, SettingsError> {
    let deadline = settings.get(&keys::FABRIC_DEADLINE)?;
    let usual = Patience::default();
    Ok(Patience { deadline, ..usual }.within(deadline))
}

impl Controller<'_> {
    /// With the fabric manager of the settings, if `collectives.trees` is not 0. One that cannot be
    /// used is an error of each call that needs it.
    ///
    /// # Errors
    ///
    /// A setting is invalid.
    pub fn fabric_manager_of(self, settings: &Settings) -> Result<Self, SiteError> {
        if settings.get(&keys::COLLECTIVES_TREES)? == 0 {
            return Ok(self);
        }
        match fabric_manager(settings) {
            Ok(manager) => Ok(self.fabric_manager(Ok(manager))),
            Err(SiteError::Fabric(error)) => Ok(self.fabric_manager(Err(error))),
            Err(error) => Err(error),
        }
    }
}

const ACTION: &str = "use the fabric manager";

fn missing(what: &str) -> FabricError {
    FabricError::new(ACTION, Problem::Name(format!("it has no {what}")))
}
