//! Every typed command of the interface by itself, including those that the safe API does not send.

use std::collections::BTreeSet;

use allocation_counter::measure;
use cxi_ioctl::layout::{CommandLayout, CommandVisitor};
use cxi_ioctl::{Command, CommandError, Errno, Opcode, Request, Transport, abi, execute_unchecked};
use zerocopy::IntoBytes;

/// Writes this many bytes of response, if they fit, and returns this result.
#[derive(Debug)]
struct Writes(usize, Result<(), Errno>);

impl Transport for Writes {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        let len = self.0.min(request.response().len());
        request.response()[..len].fill(0);
        self.1
    }
}

const ERRNOS: [Errno; 7] = [
    Errno::EINVAL,
    Errno::EOPNOTSUPP,
    Errno::ENOTTY,
    Errno::ENOSYS,
    Errno::EIO,
    Errno::EINTR,
    Errno::from_raw(4242),
];

/// Lengths up to the available room, and beyond. One byte too few is left out: no
/// number of the interface has such a length.
fn lengths(right: usize) -> impl Iterator<Item = usize> {
    (0..=right + 64).chain([4096]).filter(move |len| len + 1 != right)
}

fn check<C: Command>(layout: &CommandLayout, command: &C) {
    let (opcode, right) = (C::OPCODE, size_of::<C::Response>());
    assert_eq!((opcode, right), (layout.opcode, layout.response_len));
    let mut answered = false;
    let allocations = measure(|| {
        // SAFETY: no address is followed.
        answered = unsafe { execute_unchecked(&Writes(right, Ok(())), command) }.is_ok();
    });
    let allocations = allocations.count_total;
    assert_eq!((answered, allocations), (true, 0), "{opcode} allocates");
    for len in lengths(right) {
        // SAFETY: no address is followed.
        let result = unsafe { execute_unchecked(&Writes(len, Ok(())), command) };
        match result {
            // Without a response there is no buffer that a driver could write to.
            Ok(response) if len == right || right == 0 => {
                assert!(response.as_bytes().iter().all(|byte| *byte == 0));
            }
            Err(CommandError::AbiMismatch { opcode: named, expected, written }) if len != right => {
                assert_eq!((named, expected), (opcode, right));
                assert_eq!(written, len.min(right + 64), "{opcode}");
            }
            _ => panic!("{opcode}: {len} bytes are taken for {right}"),
        }
        for errno in ERRNOS {
            let transport = Writes(len, Err(errno));
            // SAFETY: no address is followed.
            let refused = unsafe { execute_unchecked(&transport, command) }.err();
            let Some(CommandError::Refused { opcode: named, errno: kept, fail_info }) = refused
            else {
                panic!("{opcode}: {errno} is taken for success");
            };
            assert_eq!((named, kept), (opcode, errno));
            let explains =
                [Opcode::SVC_ALLOC, Opcode::SVC_ALLOC_PARENT, Opcode::SVC_UPDATE].contains(&opcode);
            assert_eq!(fail_info.is_some(), explains && len == right, "{opcode}: {len}");
        }
    }
}

#[derive(Default)]
struct Checked(BTreeSet<&'static str>);

impl CommandVisitor for Checked {
    fn visit<C: Command>(&mut self, name: &'static str, command: &C) {
        let layout = abi::commands().find(|layout| layout.request == name);
        check(layout.expect(name), command);
        assert!(self.0.insert(name));
    }
}

#[test]
fn answers_of_any_length_and_any_error() {
    let mut checked = Checked::default();
    abi::visit_commands(&mut checked);
    let known: BTreeSet<&str> = abi::commands().map(|layout| layout.request).collect();
    assert_eq!(checked.0, known);
}
