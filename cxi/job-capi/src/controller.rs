//! A site, and its controller.

use std::path::Path;

use cxi_job::cluster::{Controller, Site};
use cxi_site::settings::Settings;
use cxi_vni_etcd::SitePool;

use crate::failure::{Failure, Result};

/// The site that a settings file describes; by default that of the usual file.
pub(crate) fn site(settings: Option<&Path>) -> Result<Site> {
    let settings =
        Settings::load(settings).map_err(|error| Failure::invalid("settings", &error))?;
    Ok(Site::open(settings)?)
}

pub(crate) fn open(site: &Site) -> Result<Controller<'_>> {
    Ok(site.controller(SitePool::of(site.settings())?)?.fabric_manager_of(site.settings())?)
}
