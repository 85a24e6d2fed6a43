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
/// Those of the user who serves the node, and may be a whole job.
const COMMANDS_OF_OWNER: usize = 4 * COMMANDS;
/// Commands at a time to one open file, so that a program leaves some for others of its user.
const COMMANDS_OF_FILE: usize = 250;

/// Things that users of a server's nodes have taken.
#[derive(Debug)]
pub(crate) struct Budgets {
    /// Open files.
    pub(crate) files: Arc<Budget>,
    /// Commands of users that are not answered yet.
    commands: Arc<Budget>,
    /// Commands to open files that are not answered yet.
    commands_of_files: Arc<Budget>,
}

impl Budgets {
    /// Creates budgets of which nobody has taken anything yet.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            files: Budget::new("user", "open files of NICs", "EMFILE"),
            commands: Budget::new("user", "commands at a time", "EAGAIN"),
            commands_of_files: Budget::new("open file", "commands at a time", "EAGAIN"),
        })
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
        self.files.take(user.into(), most)
    }

    /// Takes a command for a user and, unless it is a write to an attribute, for an open file; `None` if
    /// there are too many.
    pub(crate) fn command(&self, user: u32, file: Option<u64>) -> Option<Vec<Share>> {
        let most = if is_owner(user) { COMMANDS_OF_OWNER } else { COMMANDS };
        let of_file = file.map(|file| self.commands_of_files.take(file, COMMANDS_OF_FILE));
        of_file.into_iter().chain([self.commands.take(user.into(), most)]).collect()
    }
}

/// Returns whether a user serves the node, and could end it anyway.
fn is_owner(user: u32) -> bool {
    user == geteuid().as_raw()
}

/// Things that users, or open files, have taken.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Kind of owner, which a number follows in messages.
    whose: &'static str,
    /// Their name in the plural.
    what: &'static str,
    /// The error that more of them get.
    errno: &'static str,
    taken: Mutex<HashMap<u64, usize>>,
    said: Once,
}

impl Budget {
    fn new(whose: &'static str, what: &'static str, errno: &'static str) -> Arc<Self> {
        Arc::new(Self { whose, what, errno, taken: Mutex::default(), said: Once::new() })
    }

    fn take(self: &Arc<Self>, number: u64, most: usize) -> Option<Share> {
        let mut taken = self.taken.lock();
        let of_this = taken.entry(number).or_default();
        if *of_this < most {
            *of_this += 1;
            return Some(Share { budget: Arc::clone(self), number });
        }
        drop(taken);
        let Self { whose, what, errno, .. } = **self;
        self.said.call_once(|| {
            say(format_args!(
                "{whose} {number} has {most} {what}, and gets {errno} for more, so that others get some. \
                 This is said once"
            ));
        });
        None
    }
}

/// One of the things that were taken, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    number: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.budget.taken.lock();
        if let Some(of_this) = taken.get_mut(&self.number) {
            *of_this -= 1;
            if *of_this == 0 {
                taken.remove(&self.number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs of one user, who serves the node.
    #[test]
    fn one_program_leaves_commands_to_another_and_all_have_an_end() {
        let budgets = Budgets::new();
        let owner = geteuid().as_raw();
        let commands = |file, most| -> Vec<_> {
            (0..most).map_while(|_| budgets.command(owner, Some(file))).collect()
        };
        let first = commands(1, 100_000);
        assert_eq!(first.len(), COMMANDS_OF_FILE);
        let others: Vec<_> = (2..1000).flat_map(|file| commands(file, COMMANDS_OF_FILE)).collect();
        assert_eq!(first.len() + others.len(), COMMANDS_OF_OWNER);
        let other_user = budgets.command(owner + 1, Some(1000));
        assert!(other_user.is_some(), "another user's");
        drop(others);
        assert_eq!(commands(1, 1).len(), 0, "the first file's are still there");
        drop(first);
        assert_eq!(commands(1, 1).len(), 1);
    }

    #[test]
    fn what_one_user_gives_back_is_that_users_again() {
        let budget = Budget::new("user", "things", "EMFILE");
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
