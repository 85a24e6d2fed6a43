#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod gateway;
mod log;
#[cfg(feature = "site")]
mod site_pool;

pub use log::EtcdLog;
#[cfg(feature = "site")]
#[cfg_attr(docsrs, doc(cfg(feature = "site")))]
pub use site_pool::{Configured, OpenPool, PoolPlace, SitePool, SitePoolError};
