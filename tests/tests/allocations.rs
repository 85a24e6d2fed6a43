//! What allocates on the heap: no command of the kernel interface, and of the safe library only
//! what returns something of a length that is not known before.

use std::sync::Arc;

use allocation_counter::{measure, opt_out};
use cxi_ioctl::{
    CharDev, Command, Errno, Mapping, Opcode, Request, Transport, abi, execute_unchecked,
};
use cxi_tests::commands::{Visitor, visit_all};
use cxi_tests::counted::{OPERATIONS, Scene};

/// The null device, with ones as the response to every command.
#[derive(Debug)]
struct Answers(CharDev);

impl Transport for Answers {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        self.0.submit(request.reborrow())?;
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

struct Executed {
    device: Answers,
    names: Vec<&'static str>,
}

impl Visitor for Executed {
    fn visit<C: Command>(&mut self, name: &'static str, command: &C) {
        let mut answered = false;
        let allocations = measure(|| {
            // SAFETY: no address is followed.
            answered = unsafe { execute_unchecked(&self.device, command) }.is_ok();
        });
        assert!(answered, "{name}");
        assert_eq!(allocations.count_total, 0, "{name}");
        self.names.push(name);
    }
}

#[test]
fn no_command_allocates() {
    let mut executed = Executed {
        device: Answers(CharDev::open("/dev/null").unwrap()),
        names: Vec::new(),
    };
    visit_all(&mut executed);
    let mut all: Vec<_> = abi::commands().map(|command| command.request).collect();
    all.sort_unstable();
    executed.names.sort_unstable();
    assert_eq!(executed.names, all);
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
