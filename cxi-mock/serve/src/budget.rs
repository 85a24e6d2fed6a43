//! Limits of what one user can take of the server, so that something is left for others.

use std::collections::HashMap;
use std::sync::{Arc, Once};

use nix::unistd::geteuid;
use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};

use super::error::say;

/// Files that a user can have open: devices, and connections to a socket. Each of the latter takes a
/// thread.
const FILES: usize = 2000;
/// Descriptors of the server for each of them, at most.
const DESCRIPTORS: u64 = 3;
/// Share of the server's descriptors that another user than the one who serves the node can take.
const SHARE: u64 = 2;
/// Commands at a time: each has a thread until it is answered.
const COMMANDS: usize = 1000;

/// Things that users of a server's nodes have taken.
#[derive(Debug)]
pub(crate) struct Budgets {
    /// Open files.
    pub(crate) files: Arc<Budget>,
    /// Commands that are not answered yet.
    pub(crate) commands: Arc<Budget>,
}

impl Budgets {
    /// Creates budgets of which nobody has taken anything yet.
    pub(crate) fn new() -> Arc<Self> {
        let files = Budget::new("open files of NICs", "EMFILE");
        Arc::new(Self { files, commands: Budget::new("commands at a time", "EAGAIN") })
    }

    /// Takes a file for a user; `None` if there are too many.
    pub(crate) fn file(&self, user: u32) -> Option<Share> {
        let most = if is_owner(user) {
            FILES
        } else {
            // The limit may have been raised since the start.
            let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
            usize::try_from(descriptors / DESCRIPTORS / SHARE).unwrap_or(FILES).min(FILES)
        };
        self.files.take(user, most)
    }

    /// Takes a command for a user; `None` if there are too many.
    pub(crate) fn command(&self, user: u32) -> Option<Share> {
        self.commands.take(user, if is_owner(user) { usize::MAX } else { COMMANDS })
    }
}

/// Returns whether a user serves the node, and could end it anyway.
fn is_owner(user: u32) -> bool {
    user == geteuid().as_raw()
}

/// Things that users have taken.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Their name in the plural.
    what: &'static str,
    /// The error that more of them get.
    errno: &'static str,
    taken: Mutex<HashMap<u32, usize>>,
    said: Once,
}

impl Budget {
    fn new(what: &'static str, errno: &'static str) -> Arc<Self> {
        Arc::new(Self { what, errno, taken: Mutex::default(), said: Once::new() })
    }

    fn take(self: &Arc<Self>, user: u32, most: usize) -> Option<Share> {
        let mut taken = self.taken.lock();
        let of_user = taken.entry(user).or_default();
        if *of_user < most {
            *of_user += 1;
            return Some(Share { budget: Arc::clone(self), user });
        }
        drop(taken);
        let Self { what, errno, .. } = **self;
        self.said.call_once(|| {
            say(format_args!(
                "user {user} has {most} {what}, and gets {errno} for more, so that other users get some. \
                 This is said once"
            ));
        });
        None
    }
}

/// One of the things that a user has taken, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    user: u32,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.budget.taken.lock();
        if let Some(of_user) = taken.get_mut(&self.user) {
            *of_user -= 1;
            if *of_user == 0 {
                taken.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_user_gives_back_is_that_users_again() {
        let budget = Budget::new("things", "EMFILE");
        let first = budget.take(1, 2).expect("one");
        let _second = budget.take(1, 2).expect("two");
        assert!(budget.take(1, 2).is_none());
        let other = budget.take(2, 2).expect("another user's");
        drop(first);
        assert!(budget.take(1, 2).is_some());
        drop(other);
        assert_eq!(budget.taken.lock().len(), 1);
    }
}
