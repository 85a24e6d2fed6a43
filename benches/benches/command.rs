//! What the library adds to a command: `execute` beside the bare `write(2)` of the same bytes.
//!
//! Both write to `/dev/null`, so that the kernel's share is the same and smallest. Nobody answers
//! there, so a thin transport around the library's puts an answer into the response buffer.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::fs::OpenOptions;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use cxi_benches::raw_write;
use cxi_ioctl::abi::lni::LniFreeCmd;
use cxi_ioctl::abi::memory::AtuMapCmd;
use cxi_ioctl::abi::service::{SvcAllocCmd, SvcDestroyCmd, SvcGetCmd, SvcRsrcGetCmd};
use cxi_ioctl::{CharDev, Command, Errno, Mapping, Request, Transport, execute};

const SINK: &str = "/dev/null";

/// A device that answers every command with ones.
#[derive(Debug)]
struct Answering(CharDev);

impl Transport for Answering {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        self.0.submit(request.reborrow())?;
        let len = request
            .opcode
            .info()
            .and_then(|info| info.handler)
            .map_or(0, |handler| handler.response_len);
        let response = request.response.get_mut(..len);
        response.ok_or(Errno::EINVAL)?.fill(1);
        Ok(())
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.0.map(offset, len)
    }
}

/// One series: the raw write and the library, in the same group.
fn pair<C: Command>(criterion: &mut Criterion, command: &C) {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(SINK)
        .expect("a null device");
    let device = Answering(CharDev::open(SINK).expect("a null device"));
    execute(&device, command).expect("an answer");
    let mut group = criterion.benchmark_group(C::OPCODE.to_string());
    group.bench_function("write(2)", |bencher| {
        bencher.iter(|| raw_write(&file, black_box(command)));
    });
    group.bench_function("library", |bencher| {
        bencher.iter(|| execute(black_box(&device), black_box(command)));
    });
    group.finish();
    let allocations = allocation_counter::measure(|| {
        black_box(execute(&device, command)).expect("an answer");
    });
    assert_eq!(
        allocations.count_total,
        0,
        "{} allocates on the heap",
        C::OPCODE
    );
}

fn commands(criterion: &mut Criterion) {
    pair(criterion, &SvcDestroyCmd::new());
    pair(criterion, &LniFreeCmd::new());
    pair(criterion, &SvcGetCmd::new());
    pair(criterion, &SvcRsrcGetCmd::new());
    pair(criterion, &SvcAllocCmd::new());
    pair(criterion, &AtuMapCmd::new());
}

criterion_group!(benches, commands);
criterion_main!(benches);
