//! The client's end of the control socket.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::unistd::geteuid;
use serde_json::Value;

use super::control::{directory, peer, socket};
use super::error::{Doing, ServeError};
use super::message;
use super::namespaces::Namespaces;
use super::order::{Order, Request};

/// A connection to the node of a directory.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
}

impl Connection {
    /// Connects to the node, which must be of this user.
    pub(crate) fn open(dir: &Path) -> Result<Self, ServeError> {
        let nobody = |error: &dyn std::fmt::Display| {
            let dir = dir.display();
            ServeError::Input(format!(
                "there is no node in {dir} ({error}): start one with cxi-mock serve --dir {dir}"
            ))
        };
        if !dir.is_dir() {
            return Err(nobody(&io::Error::from(io::ErrorKind::NotFound)));
        }
        let stream =
            UnixStream::connect(socket(&directory(dir)?)).map_err(|error| nobody(&error))?;
        let (server, user) = (
            peer(&stream).doing(|| "find out who serves the node".to_owned())?,
            geteuid(),
        );
        if server != user.as_raw() {
            return Err(ServeError::Input(format!(
                "the node in {} is served by user {server}, and you are user {user}: enter it as \
                 that user",
                dir.display()
            )));
        }
        Ok(Self { stream })
    }

    /// Sends an order for a node, or for all, and returns the answer.
    pub(crate) fn send(&self, node: Option<&str>, order: Order) -> Result<Value, ServeError> {
        self.exchange(node, order).map(|(answer, _)| answer)
    }

    /// The namespaces of a node.
    pub(crate) fn namespaces(&self, node: Option<&str>) -> Result<Namespaces, ServeError> {
        let (handover, fds) = self.exchange(node, Order::Namespaces)?;
        let namespaces = serde_json::from_value(handover)
            .ok()
            .and_then(|handover| Namespaces::of_node(handover, fds));
        namespaces.ok_or_else(|| {
            ServeError::Input("the node did not hand over its namespaces".to_owned())
        })
    }

    fn exchange(
        &self,
        node: Option<&str>,
        order: Order,
    ) -> Result<(Value, Vec<OwnedFd>), ServeError> {
        let what = || "talk to the node".to_owned();
        let node = node.map(str::to_owned);
        let mut line = serde_json::to_vec(&Request { node, order }).doing(what)?;
        line.push(b'\n');
        (&self.stream).write_all(&line).doing(what)?;
        let (answer, fds) = message::receive(&self.stream).doing(what)?;
        Ok((answer.map_err(ServeError::Input)?, fds))
    }

    /// Readable when the node is gone.
    pub(crate) fn lifeline(&self) -> &UnixStream {
        &self.stream
    }
}
