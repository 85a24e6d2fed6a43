//! Allocations of the safe library on the heap: only calls that return something of a length that
//! is not known before make any. The test `foreign_kernel` checks that no command allocates.

use std::sync::Arc;

use allocation_counter::{measure, opt_out};
use cxi_ioctl::{Errno, Mapping, Request, Transport};
use cxi_tests::counted::{OPERATIONS, Scene};

/// Transport whose own allocations are not counted as the library's.
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
        let mut done = Ok(());
        let allocations = measure(|| done = operation.run(&mut scene));
        done.unwrap();
        let name = operation.name;
        assert_eq!(allocations.count_total > 0, operation.allocates, "{name}");
    }
}
