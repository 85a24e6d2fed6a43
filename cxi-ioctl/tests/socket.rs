//! The transport over a socket, with servers that answer as they should and as they should not.

#![allow(missing_docs, reason = "a test has no users")]
#![allow(unsafe_code, reason = "raw requests are unsafe to make")]

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use cxi_ioctl::abi::service::{SvcDestroyCmd, SvcListGetCmd};
use cxi_ioctl::socket::NodeSocket;
use cxi_ioctl::socket::wire::{Head, PACKET, Question};
use cxi_ioctl::{
    Command, CommandError, Errno, Opcode, Pointers, Request, Transport, execute, fetch_list,
};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, accept, bind, listen, recvmsg, sendmsg, socket_with,
};
use tempfile::TempDir;
use zerocopy::IntoBytes;

/// Packets of an answer.
type Packets = Vec<Vec<u8>>;

/// A server of one connection, which it leaves when there is nothing to answer.
struct Server {
    directory: TempDir,
    thread: JoinHandle<()>,
}

impl Server {
    fn new(answer: impl Fn(Head, &[u8]) -> Packets + Send + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let flags = SocketFlags::CLOEXEC;
        let listener =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(path(&directory)).unwrap()).unwrap();
        listen(&listener, 1).unwrap();
        let thread = thread::spawn(move || {
            let connection = accept(&listener).unwrap();
            while let Some((head, bytes)) = receive(&connection) {
                let packets = answer(head, &bytes);
                if packets.is_empty() {
                    return;
                }
                for packet in packets {
                    let mut control = SendAncillaryBuffer::default();
                    let parts = [IoSlice::new(&packet)];
                    if sendmsg(&connection, &parts, &mut control, SendFlags::NOSIGNAL).is_err() {
                        return;
                    }
                }
            }
        });
        Self { directory, thread }
    }

    fn node(&self) -> NodeSocket {
        NodeSocket::at(path(&self.directory))
    }

    fn end(self) {
        self.thread.join().unwrap();
    }
}

fn path(directory: &TempDir) -> PathBuf {
    directory.path().join("node.sock")
}

fn receive(connection: &OwnedFd) -> Option<(Head, Vec<u8>)> {
    let (mut head, mut bytes) = (Head::default(), vec![0; 1 << 16]);
    let mut control = RecvAncillaryBuffer::default();
    let mut parts = [IoSliceMut::new(head.as_mut_bytes()), IoSliceMut::new(&mut bytes)];
    let length = recvmsg(connection, &mut parts, &mut control, RecvFlags::empty()).ok()?.bytes;
    bytes.truncate(length.checked_sub(size_of::<Head>())?);
    Some((head, bytes))
}

/// An answer with an errno and a response, and that many bytes of a list to come.
fn answer(errno: Errno, response: &[u8], list: usize) -> Vec<u8> {
    let head = Head {
        kind: errno.raw().cast_unsigned(),
        number: 0,
        response: u32::try_from(response.len()).unwrap(),
        list: u32::try_from(list).unwrap(),
    };
    [head.as_bytes(), response].concat()
}

const OK: Errno = Errno::from_raw(0);

/// Answers the opening of the NIC.
fn opens(head: Head) -> Option<Packets> {
    let is_open = head.kind == Question::Open.code();
    is_open.then(|| vec![answer(OK, &[7; 16], 0)])
}

#[test]
fn a_node_that_is_not_there_says_so() {
    let node = NodeSocket::at("/nowhere/node.sock");
    assert_eq!(node.open(0).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(node.read(Path::new("/sys/x")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_command_goes_out_whole_and_a_refusal_comes_back_with_its_response() {
    let server = Server::new(|head, bytes| {
        opens(head).unwrap_or_else(|| {
            assert_eq!(head.kind, Question::Command.code());
            assert_eq!((head.number, head.response, head.list), (16, 24, 0));
            assert_eq!(bytes, [5; 16]);
            vec![answer(Errno::EBUSY, &[9; 8], 0)]
        })
    });
    let nic = server.node().open(3).unwrap();
    let mut response = [1; 24];
    // SAFETY: the driver is this test, which follows no address.
    let request = unsafe {
        Request::from_raw(Opcode::SVC_GET, &[5; 16], Pointers::NONE, &mut response, &mut [])
    };
    assert_eq!(nic.submit(request), Err(Errno::EBUSY));
    assert_eq!((&response[..8], &response[8..]), (&[9; 8][..], &[1; 16][..]));
    drop(nic);
    server.end();
}

#[test]
fn the_status_of_an_entry_brings_its_buffer_along() {
    let server = Server::new(|head, bytes| {
        opens(head).unwrap_or_else(|| {
            assert_eq!(bytes, [[5; 8], [1; 8]].concat());
            vec![answer(OK, &[2; 8], 0)]
        })
    });
    let nic = server.node().open(0).unwrap();
    let mut response = [1; 8];
    // SAFETY: the driver is this test, which follows no address.
    let request = unsafe {
        Request::from_raw(Opcode::PTE_STATUS, &[5; 8], Pointers::NONE, &mut response, &mut [])
    };
    assert_eq!(nic.submit(request), Ok(()));
    assert_eq!(response, [2; 8]);
    drop(nic);
    server.end();
}

#[test]
fn a_long_list_comes_in_packets() {
    let sent: Vec<u8> = (0..PACKET * 2 + 5).map(|at| at.to_le_bytes()[1] ^ 0x5a).collect();
    let packets = sent.clone();
    let server = Server::new(move |head, bytes| {
        assert_eq!((head.kind, bytes), (Question::Read.code(), &b"/sys/x"[..]));
        let first = answer(OK, &[], packets.len());
        [first].into_iter().chain(packets.chunks(PACKET).map(<[u8]>::to_vec)).collect()
    });
    let node = server.node();
    assert!(node.read(Path::new("/sys/x")).unwrap() == sent);
    drop(node);
    server.end();
}

#[test]
fn names_are_apart_by_null_bytes() {
    let server = Server::new(|_, _| vec![answer(OK, &[], 10), b"cxi0\0cxi1\0".to_vec()]);
    let node = server.node();
    assert_eq!(node.names(Path::new("/sys/class/cxi_user")).unwrap(), ["cxi0", "cxi1"]);
    drop(node);
    server.end();
}

/// More than there is room for, less than announced, and another length of the list.
#[test]
fn a_server_that_errs_writes_nowhere_else_and_is_asked_no_more() {
    let wrong: [fn() -> Packets; 4] = [
        || vec![answer(OK, &[3; 4096], 0)],
        || vec![answer(OK, &[], 1 << 20)],
        || vec![vec![0; 4]],
        || vec![answer(OK, &[4; 4], 8), vec![0; 9]],
    ];
    for wrong in wrong {
        let server = Server::new(move |head, _| opens(head).unwrap_or_else(wrong));
        let nic = server.node().open(0).unwrap();
        fetch_list::<SvcListGetCmd>(&nic, 0).unwrap_err();
        let error = execute(&nic, &SvcDestroyCmd::new()).unwrap_err();
        let opcode = SvcDestroyCmd::OPCODE;
        assert_eq!(error, CommandError::refused(opcode, Errno::EIO));
        drop(nic);
        server.end();
    }
}

#[test]
fn a_server_that_is_gone_is_an_error_and_no_signal() {
    let server = Server::new(|head, _| opens(head).unwrap_or_default());
    let nic = server.node().open(0).unwrap();
    assert_eq!(execute(&nic, &SvcDestroyCmd::new()).unwrap_err().errno(), Errno::EIO);
    assert_eq!(execute(&nic, &SvcDestroyCmd::new()).unwrap_err().errno(), Errno::EIO);
    assert_eq!(nic.windows().window(0, 4096).unwrap_err(), Errno::EIO);
    server.end();
}

#[test]
fn a_nic_that_cannot_be_opened_says_why() {
    let server = Server::new(|_, _| vec![answer(Errno::ENOENT, &[], 0)]);
    assert_eq!(server.node().open(9).unwrap_err().kind(), ErrorKind::NotFound);
    server.end();
}

#[test]
fn a_window_without_memory_is_none_and_an_open_file_has_a_descriptor() {
    let server = Server::new(|head, _| opens(head).unwrap_or_else(|| vec![answer(OK, &[], 0)]));
    let file = server.node().open(0).unwrap();
    assert!(file.connection().is_ok());
    assert_eq!(file.windows().window(0, 4096).unwrap_err(), Errno::ENODEV);
    assert_eq!(file.map(0, 4096).unwrap_err(), Errno::ENODEV);
    assert!(format!("{file:?}").contains("node.sock"));
    drop(file);
    server.end();
}

#[test]
fn a_file_is_written_by_its_path() {
    let server = Server::new(|head, bytes| {
        assert_eq!(Question::of(head.kind), Some(Question::Write));
        assert_eq!(bytes, b"/sys/nid0x12");
        assert_eq!(head.number, 8);
        vec![answer(OK, &[], 0)]
    });
    let node = server.node();
    node.write(Path::new("/sys/nid"), b"0x12").unwrap();
    assert_eq!(node, server.node());
    drop(node);
    server.end();
}

/// An address of a socket has room for 107 bytes.
#[test]
fn a_socket_may_have_a_long_path() {
    let server = Server::new(|_, _| vec![answer(Errno::ENOENT, &[], 0)]);
    let long = server.directory.path().join("long".repeat(50));
    std::os::unix::fs::symlink(server.directory.path(), &long).unwrap();
    let node = NodeSocket::at(long.join("node.sock"));
    let error = node.read(Path::new("/sys/none")).unwrap_err();
    assert_eq!(Errno::from_io(&error), Errno::ENOENT);
    drop(node);
    server.end();
}
