//! The fabric manager of hardware collectives, for workload managers (feature `fabric`; with an
//! HTTP client, feature `fabric-manager`).
//!
//! A job that may use hardware collectives has a *reservation*: a number of multicast trees at a
//! time, and a session token by which libfabric makes and deletes them. This module does the rest:
//! [reserving](FabricManager::reserve), [ending steps](FabricManager::end_step),
//! [releasing](FabricManager::release), and [sweeping](FabricManager::sweep) what was left behind.
//! No request takes longer than [`Patience`] says, and a job can run even if all of them fail.
//!
//! ```no_run
//! # #[cfg(feature = "fabric-manager")] {
//! use std::sync::Arc;
//!
//! use cxi_site::collectives::Certificate;
//! use cxi_site::fabric::{ClusterName, Credentials, FabricManager, Http};
//!
//! let certificate = Certificate::System;
//! let manager = FabricManager::new(
//!     "https://fm.example/apis/fabric-manager",
//!     "alpha".parse::<ClusterName>()?,
//!     Credentials::oauth(None),
//!     Arc::new(Http::new(&certificate)?),
//!     certificate,
//! )?;
//! match manager.offload(&"17".parse()?, "0".parse()?, 23) {
//!     Ok(env) => println!("{:?}", env.vars()),
//!     Err(why) => eprintln!("no hardware collectives: {why}"),
//! }
//! # }
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod call;
mod cluster;
mod credentials;
mod error;
#[cfg(feature = "fabric-manager")]
mod http;
mod manager;
mod transport;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

pub use call::Patience;
pub use cluster::{ClusterName, ClusterNameError};
pub use credentials::{Credentials, is_clear};
pub use error::{FabricError, Problem};
#[cfg(feature = "fabric-manager")]
#[cfg_attr(docsrs, doc(cfg(feature = "fabric-manager")))]
pub use http::{Http, Identity};
pub use manager::{FabricManager, ReservationInfo, Swept, end_inherited_step};
pub use transport::{HttpAnswer, HttpError, HttpRequest, HttpTransport, LONGEST_ANSWER, Method};

/// Characters with a meaning in paths and forms.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text as part of a path or a form.
fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}
