//! Becoming a user and executing a program, for `cxi job run`.

use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::unistd::{Gid, Uid, User, getegid, geteuid, initgroups, setgid, setgroups, setuid};

use crate::exit::{Exit, Failure};

/// Returns only on failure.
pub(super) fn run(uid: u32, gid: Option<u32>, program: &[OsString]) -> Failure {
    if let Err(failure) = become_user(Uid::from_raw(uid), gid.map(Gid::from_raw)) {
        return failure;
    }
    let Some((name, arguments)) = program.split_first() else {
        return Failure::bad_input("no program: expected one behind --");
    };
    let error = Command::new(name).args(arguments).exec();
    let exit = match error.kind() {
        io::ErrorKind::NotFound => Exit::ProgramNotFound,
        _ => Exit::ProgramNotStarted,
    };
    Failure::new(exit, format!("{}: {error}", name.display()))
}

fn become_user(uid: Uid, gid: Option<Gid>) -> Result<(), Failure> {
    if uid == geteuid() && gid.is_none_or(|gid| gid == getegid()) {
        return Ok(());
    }
    let user = User::from_uid(uid).ok().flatten();
    let group = match (gid, &user) {
        (Some(gid), _) => gid,
        (None, Some(user)) => user.gid,
        (None, None) => {
            return Err(Failure::bad_input(format!(
                "user {uid} is unknown on this node: name its group with --gid"
            )));
        }
    };
    let groups = match user.and_then(|user| CString::new(user.name).ok()) {
        Some(name) => initgroups(&name, group),
        None => setgroups(&[group]),
    };
    groups
        .and_then(|()| setgid(group))
        .and_then(|()| setuid(uid))
        .map_err(|errno| {
            Failure::new(
                Exit::NotPermitted,
                format!("cannot become user {uid}, group {group}: {}", errno.desc()),
            )
            .hint("Only root can run a program as another user.")
        })
}
