//! Views that programs have of nodes: the options `--door` and `--as-user`.

use clap::{Args, ValueEnum};
use nix::unistd::geteuid;

use super::credentials::Authority;
use super::error::{ServeError, say};
use super::namespaces::{self, Inside};
use super::privileges::{self, Route};
use super::setup::NicArguments;

/// A way to reach a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoorKind {
    /// As files, which any program sees
    Fuse,
    /// Through a socket, which this project's libraries know: without FUSE, and windows without root
    Socket,
}

#[derive(Debug, Default, Args)]
pub(crate) struct ViewArguments {
    /// Run programs under your own user ID, without privileges (ordinary users only)
    #[arg(long)]
    pub(crate) as_user: bool,
    /// Way in which programs reach a node [default: fuse, and socket where FUSE cannot be had]
    #[arg(long, value_enum)]
    pub(crate) door: Option<DoorKind>,
}

/// View that programs have of a node.
#[derive(Debug)]
pub(crate) enum View {
    /// Devices and sysfs, as files of FUSE.
    Files,
    /// Copies of sysfs; the node itself is behind a socket.
    Copies(Route),
    /// Nothing: the node is behind a socket, and the reason why there are not even copies.
    Nothing(ServeError),
}

impl View {
    /// Returns whether there is a socket.
    pub(crate) fn is_behind_socket(&self) -> bool {
        !matches!(self, Self::Files)
    }
}

impl ViewArguments {
    /// Moves this process to where programs see nodes. Call it while there is one thread.
    pub(crate) fn separate(&self) -> Result<View, ServeError> {
        let inside = Inside::new(self.as_user);
        let files =
            self.door != Some(DoorKind::Socket) && self.or_socket(privileges::check_files())?;
        let route = match privileges::check_namespaces(inside) {
            Ok(route) => route,
            Err(missing @ ServeError::Missing { .. }) if self.door != Some(DoorKind::Fuse) => {
                if files {
                    say_no_files(&missing);
                }
                return Ok(View::Nothing(missing));
            }
            Err(error) => return Err(error),
        };
        namespaces::separate(route, inside)?;
        Ok(if files { View::Files } else { View::Copies(route) })
    }

    /// Returns whether nothing is missing for files; without an order for them, the socket takes their place.
    fn or_socket(&self, checked: Result<(), ServeError>) -> Result<bool, ServeError> {
        match checked {
            Ok(()) => Ok(true),
            Err(missing @ ServeError::Missing { .. }) if self.door.is_none() => {
                say_no_files(&missing);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// User with the rights of a node's root: also the user who serves it, where the kernel gives none.
    pub(crate) fn authority(&self, view: &View, nics: &NicArguments) -> Authority {
        let is_ordinary = match view {
            View::Files => false,
            View::Copies(route) => *route == Route::UserNamespace,
            View::Nothing(_) => !privileges::is_privileged(),
        };
        let authority = nics.authority();
        if is_ordinary && !self.as_user && !nics.is_strict() {
            return authority.owned_by(geteuid().as_raw());
        }
        authority
    }
}

fn say_no_files(missing: &ServeError) {
    let ServeError::Missing { what, .. } = missing else { return };
    say(format_args!(
        "programs reach the node through this project's libraries only, and see no /dev/cxiN: {what}"
    ));
}
