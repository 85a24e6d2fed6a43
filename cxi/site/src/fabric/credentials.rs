//! Authentication of a workload manager to the fabric manager.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cxi::kernel_file::read_bounded;

use super::{FabricError, Problem};
use crate::collectives::has_host;
use crate::durable::open_regular;
use crate::secret;

/// Slurm uses the same directory.
const OAUTH_DIRECTORY: &str = "/etc/wlm-client-auth";
const BASIC_DIRECTORY: &str = "/etc/fmsim";
/// The only user name that the fabric manager accepts with BASIC.
const USER: &str = "cxi";
/// Longer than any address or name.
const LONGEST: u64 = 1 << 16;

/// Credentials of a workload manager. Their `Debug` form shows no secret.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Credentials {
    /// A token from a token endpoint, by the files `endpoint`, `client-id` and `client-secret` of a
    /// directory. They are read for each token, so that secrets may change. Nobody else may be able to
    /// read the secret.
    OAuth(PathBuf),
    /// User `cxi` with the password in the file `passwd` of a directory, which nobody else may be able
    /// to read.
    Basic(PathBuf),
}

impl Credentials {
    /// OAuth with the files in a directory; `/etc/wlm-client-auth` by default.
    #[must_use]
    pub fn oauth(directory: Option<&Path>) -> Self {
        Self::OAuth(directory.unwrap_or(Path::new(OAUTH_DIRECTORY)).to_owned())
    }

    /// A password with the file in a directory; `/etc/fmsim` by default.
    #[must_use]
    pub fn basic(directory: Option<&Path>) -> Self {
        Self::Basic(directory.unwrap_or(Path::new(BASIC_DIRECTORY)).to_owned())
    }
}

/// The request to a token endpoint.
pub(super) struct TokenRequest {
    pub(super) endpoint: String,
    pub(super) form: String,
}

impl TokenRequest {
    pub(super) fn read(directory: &Path) -> Result<Self, Problem> {
        let endpoint = read(&directory.join("endpoint"))?;
        let id = read(&directory.join("client-id"))?;
        let secret = read_secret(&directory.join("client-secret"))?;
        let form = format!(
            "grant_type=client_credentials&client_id={}&client_secret={}&scope=openid",
            super::escaped(&id),
            super::escaped(&secret)
        );
        Ok(Self { endpoint, form })
    }
}

pub(super) fn basic(directory: &Path) -> Result<String, Problem> {
    let password = read_secret(&directory.join("passwd"))?;
    Ok(format!("Basic {}", STANDARD.encode(format!("{USER}:{password}"))))
}

/// The text of a small file without trailing line ends.
fn read(path: &Path) -> Result<String, Problem> {
    text(path, open_regular(path).and_then(|file| read_bounded(file, LONGEST)))
}

/// The same for a file that nobody else can read.
fn read_secret(path: &Path) -> Result<String, Problem> {
    text(path, secret::read(path))
}

fn text(path: &Path, bytes: io::Result<Vec<u8>>) -> Result<String, Problem> {
    let of = |error: io::Error| Problem::Credentials(format!("{}: {error}", path.display()));
    let text =
        String::from_utf8(bytes.map_err(of)?).map_err(|error| of(io::Error::other(error)))?;
    let text = text.trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        return Err(Problem::Credentials(format!("{} is empty", path.display())));
    }
    Ok(text.to_owned())
}

/// Checks that an address is an HTTP or HTTPS URL.
pub(super) fn check_url(action: &str, url: &str) -> Result<(), FabricError> {
    if has_host(url) && url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    let message =
        format!("fabric manager address {url:?}: expected http:// or https:// and a host");
    Err(FabricError::new(action, Problem::Name(message)))
}

/// Returns whether a secret that is sent to this address can be read on the network: it goes over HTTP, and to
/// another machine.
#[must_use]
pub fn is_clear(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let is_loopback = if let Some(rest) = host.strip_prefix('[') {
        let address = rest.split_once(']').map(|(address, _)| address.parse::<Ipv6Addr>());
        matches!(address, Some(Ok(address)) if address.is_loopback())
    } else {
        let host = host.split_once(':').map_or(host, |(host, _)| host);
        let address = host.parse::<Ipv4Addr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    };
    !is_loopback
}

#[cfg(test)]
mod tests {
    use super::is_clear;

    #[test]
    fn only_this_machine_gets_a_password_in_clear() {
        for url in [
            "http://127.0.0.1:2379",
            "http://127.9.8.7",
            "http://localhost:2379/",
            "http://[::1]:2379",
            "https://etcd1:2379",
        ] {
            assert!(!is_clear(url), "{url}");
        }
        for url in [
            "http://etcd1:2379",
            "http://10.0.0.1",
            "http://127.0.0.1.example:2379",
            "http://127.0.0.1@etcd1:2379",
            "http://localhost:x@10.0.0.1/",
            "http://[2001:db8::1]:2379",
            "http://",
        ] {
            assert!(is_clear(url), "{url}");
        }
    }
}
