//! Network namespaces as members of a service.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::Member;
use crate::error::{Error, ErrorKind, Result};

/// The namespace of this process, on the kernel's single file system for namespaces.
const OWN: &str = "/proc/self/ns/net";

/// The prefix of a link in `/proc` to a namespace of another kind.
const OTHER_KINDS: [&str; 7] = ["cgroup:[", "ipc:[", "mnt:[", "pid:[", "time:[", "user:[", "uts:["];

impl Member {
    /// The network namespace of this process.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`]: `/proc` is not mounted.
    pub fn own_netns() -> Result<Self> {
        Self::netns_at(OWN)
    }

    /// The network namespace that a file refers to, such as `/proc/1/ns/net` or one of
    /// `/run/netns`.
    ///
    /// ```
    /// use cxi::Member;
    ///
    /// assert_eq!(Member::netns_at("/proc/self/ns/net")?, Member::own_netns()?);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`]: there is no such file, or it is not a network namespace.
    pub fn netns_at(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let invalid = |text: String| Error::invalid(ErrorKind::InvalidInput(text.into()));
        let found = |path: &Path| {
            fs::metadata(path).map_err(|error| invalid(format!("{}: {error}", path.display())))
        };
        let kind = fs::read_link(path).unwrap_or_default();
        let kind = kind.to_string_lossy();
        let other = OTHER_KINDS.iter().any(|other| kind.starts_with(other));
        let (file, own) = (found(path)?, found(OWN.as_ref())?);
        // All namespaces are on one file system of the kernel's, so a mounted one is recognized by
        // its device.
        u32::try_from(file.ino())
            .ok()
            .filter(|_| !other && file.dev() == own.dev())
            .map(Self::NetNs)
            .ok_or_else(|| {
                invalid(format!(
                    "invalid network namespace {}: expected a file such as /proc/1/ns/net",
                    path.display()
                ))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_kind_is_refused() {
        for other in ["/proc/self/ns/mnt", "/proc/self/stat", "/"] {
            assert_eq!(
                Member::netns_at(other).unwrap_err().to_string(),
                format!(
                    "invalid network namespace {other}: expected a file such as /proc/1/ns/net"
                )
            );
        }
        let missing = Member::netns_at("/nowhere").unwrap_err().to_string();
        assert!(missing.starts_with("/nowhere: No such file"), "{missing}");
    }
}
