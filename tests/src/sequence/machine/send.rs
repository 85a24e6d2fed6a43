//! Commands as bytes, and their responses.

use crate::device::Buffers;
use cxi_ioctl::abi::service::SvcAllocResp;
use cxi_ioctl::{DriverRelease, Errno};
use cxi_mock::{Client, Credentials};
use zerocopy::FromBytes;

use crate::sequence::model::Answer;
use crate::sequence::operation::{Caller, Command};

/// Writes a command, which a successful write takes as a whole.
pub(super) fn write(
    client: &Client,
    caller: &Credentials,
    command: &[u8],
) -> (Result<(), Errno>, Buffers) {
    let mut buffers = Buffers::default();
    let result = client.write(caller, command, &mut buffers);
    let result = result.map(|length| assert_eq!(length, command.len()));
    (result, buffers)
}

pub(super) fn send(
    client: &Client,
    release: DriverRelease,
    caller: Caller,
    command: &Command,
) -> Answer {
    let mut credentials = Credentials::user(caller.uid, caller.gid);
    credentials.sys_admin = caller.admin;
    credentials.net_raw = caller.admin;
    credentials.netns = caller.netns;
    let (result, buffers) = write(client, &credentials, &command.request(release));
    match (command, buffers.response) {
        (Command::SvcAlloc(_), Some(bytes)) => {
            Answer::Allocated(result, SvcAllocResp::read_from_bytes(&bytes).unwrap())
        }
        (Command::SvcUpdate(_), Some(bytes)) => {
            assert_eq!(bytes, [0; 20]);
            Answer::Updated(result)
        }
        (command, Some(bytes)) if result.is_ok() => Answer::Values(command.numbers(&bytes)),
        (_, Some(bytes)) => panic!("{command:?} wrote a response: {bytes:?} ({result:?})"),
        (_, None) => result.map_or_else(Answer::Failed, |()| Answer::Ok),
    }
}
