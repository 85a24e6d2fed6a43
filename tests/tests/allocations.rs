//! What allocates on the heap: no command of the kernel interface, and of the safe library only
//! what returns something of a length that is not known before.

use std::sync::Arc;

use allocation_counter::{measure, opt_out};
use cxi_ioctl::{Command, Errno, Mapping, Opcode, Request, Transport, abi, execute_unchecked};
use cxi_tests::commands::{Visitor, visit_all};
use cxi_tests::counted::{OPERATIONS, Scene};

/// A device that answers every command with ones.
#[derive(Debug)]
struct Answers;

impl Transport for Answers {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        let len = response_len(request.opcode());
        request.response()[..len].fill(1);
        Ok(())
    }

    fn map(&self, _offset: u64, _len: usize) -> Result<Mapping, Errno> {
        Err(Errno::ENODEV)
    }
}

fn response_len(opcode: Opcode) -> usize {
    opcode.info().unwrap().handler.unwrap().response_len
}

#[derive(Default)]
struct Executed(Vec<&'static str>);

impl Visitor for Executed {
    fn visit<C: Command>(&mut self, name: &'static str, command: &C) {
        let mut answered = false;
        let allocations = measure(|| {
            // SAFETY: nobody follows an address.
            answered = unsafe { execute_unchecked(&Answers, command) }.is_ok();
        });
        assert!(answered, "{name}");
        assert_eq!(allocations.count_total, 0, "{name}");
        self.0.push(name);
    }
}

#[test]
fn no_command_allocates() {
    let mut executed = Executed::default();
    visit_all(&mut executed);
    let mut all: Vec<_> = abi::commands().map(|command| command.request).collect();
    all.sort_unstable();
    executed.0.sort_unstable();
    assert_eq!(executed.0, all);
}

/// What the device does is not the library's.
#[derive(Debug)]
struct Uncounted(Arc<dyn Transport>);

impl Transport for Uncounted {
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        let mut result = Ok(());
        opt_out(|| result = self.0.submit(request));
        result
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.0.map(offset, len)
    }
}

#[test]
fn the_safe_library_allocates_what_it_returns() {
    let directory = tempfile::tempdir().unwrap();
    let mut scene =
        Scene::on_files(directory.path(), &|device| Arc::new(Uncounted(device))).unwrap();
    for operation in OPERATIONS {
        operation.run(&mut scene).unwrap();
    }
    for operation in OPERATIONS {
        let mut kept = None;
        let allocations = measure(|| kept = Some(operation.run(&mut scene)));
        kept.unwrap().unwrap();
        let name = operation.name;
        assert_eq!(allocations.count_total > 0, operation.allocates, "{name}");
    }
}
