//! Answers on the control socket: a line of JSON, and descriptors beside it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde_json::Value;

/// What was asked for, or why not.
pub(crate) type Answer = Result<Value, String>;

/// Sends an answer.
pub(crate) fn send(to: &UnixStream, answer: &Answer, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(6))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut rest = line.as_slice();
    while !rest.is_empty() {
        let sent = sendmsg(to, &[IoSlice::new(rest)], &mut control, SendFlags::NOSIGNAL)?;
        control.clear();
        rest = rest.get(sent..).unwrap_or_default();
    }
    Ok(())
}

/// Receives an answer and the descriptors that came with it.
pub(crate) fn receive(from: &UnixStream) -> io::Result<(Answer, Vec<OwnedFd>)> {
    let (mut line, mut fds) = (Vec::new(), Vec::new());
    while line.last() != Some(&b'\n') {
        let mut bytes = [0; 4096];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(6))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let into = &mut [IoSliceMut::new(&mut bytes)];
        let length = recvmsg(from, into, &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                fds.extend(received);
            }
        }
        let received = bytes.get(..length).filter(|received| !received.is_empty());
        line.extend_from_slice(received.ok_or(io::ErrorKind::UnexpectedEof)?);
    }
    Ok((serde_json::from_slice(&line)?, fds))
}
