//! Variables that change what a library does.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::sync::OnceLock;

use nix::unistd::{getegid, geteuid, getgid, getuid};

/// The entry of the auxiliary vector that says whether the program has rights that its caller lacks.
const AT_SECURE: u64 = 23;

/// The variable that names the socket of a node, for programs that reach their NICs through one.
pub const NODE_VARIABLE: &str = "CXI_NODE";

/// The variable that names a socket for what files in `/dev` cannot do: a node of FUSE files passes
/// windows there where the kernel maps none of a file. Everything else goes through the files.
pub const WINDOWS_VARIABLE: &str = "CXI_NODE_WINDOWS";

/// A variable of this program's environment; `None` if the program has rights that its caller lacks, as
/// a setuid program has: the caller must not choose what it does with them (`secure_getenv`).
#[must_use]
pub fn var_os(name: &str) -> Option<OsString> {
    static SECURE: OnceLock<bool> = OnceLock::new();
    // Asking the kernel costs a program nothing whose environment has no such variable.
    let value = env::var_os(name)?;
    (!*SECURE.get_or_init(is_secure)).then_some(value)
}

fn is_secure() -> bool {
    if getuid() != geteuid() || getgid() != getegid() {
        return true;
    }
    // A program with capabilities of its file has no other IDs.
    match fs::read("/proc/self/auxv") {
        Ok(bytes) => says_secure(&bytes),
        // The kernel hides it from such a program's user.
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    }
}

/// Returns whether an auxiliary vector, pairs of native words, has the entry with another value
/// than 0.
fn says_secure(bytes: &[u8]) -> bool {
    const WORD: usize = size_of::<usize>();
    let word = |bytes: &[u8]| {
        let mut value = [0; WORD];
        value.copy_from_slice(bytes);
        usize::from_ne_bytes(value) as u64
    };
    let mut pairs = bytes.chunks_exact(2 * WORD).map(|pair| pair.split_at(WORD));
    pairs.any(|(kind, value)| word(kind) == AT_SECURE && word(value) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_who_may_choose() {
        let vector = |pairs: &[usize]| -> Vec<u8> {
            pairs.iter().flat_map(|word| word.to_ne_bytes()).collect()
        };
        assert!(says_secure(&vector(&[6, 4096, 23, 1, 0, 0])));
        assert!(!says_secure(&vector(&[23, 0, 9, 23, 6, 1, 0, 0])));
        assert!(!says_secure(&vector(&[23])[..3]));
        assert!(!is_secure());
        assert!(var_os("PATH").is_some());
    }
}
