//! Cost of the library for a command: `execute` next to the bare `write(2)` of the same bytes.
//!
//! Both write to `/dev/null`, so that the kernel's share is the same and as small as possible. Nothing
//! answers there, so a thin transport around the library's puts an answer into the response buffer.
//!
//! On a NIC only the transport can say where the answer belongs, so there `execute` is measured next
//! to the transport with buffers that exist already.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::fs::{File, OpenOptions};
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use cxi_benches::nic::{self, device};
use cxi_benches::{bare, run};
use cxi_ioctl::abi::device::DevInfoGetCmd;
use cxi_ioctl::abi::lni::LniFreeCmd;
use cxi_ioctl::abi::memory::AtuMapCmd;
use cxi_ioctl::abi::service::{SvcAllocCmd, SvcDestroyCmd, SvcGetCmd, SvcRsrcGetCmd};
use cxi_ioctl::{
    CharDev, Command, Errno, Mapping, Request, SafeCommand, Transport, execute, execute_unchecked,
};

const SINK: &str = "/dev/null";

/// A device that answers every command with ones.
#[derive(Debug)]
struct Answering(CharDev);

impl Answering {
    fn new() -> Self {
        Self(CharDev::open(SINK).expect("a null device"))
    }
}

impl Transport for Answering {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        self.0.submit(request.reborrow())?;
        let len = request.opcode().handler().map_or(0, |handler| handler.response_len);
        let response = request.response().get_mut(..len).ok_or(Errno::EINVAL)?;
        // An empty buffer is at no address. Filling nothing there costs a processor that masks
        // what it writes as much as a quarter of a system call.
        if !response.is_empty() {
            response.fill(1);
        }
        Ok(())
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.0.map(offset, len)
    }
}

/// One series on the null device.
fn written<C: Command>(criterion: &mut Criterion, file: &File, command: &C) {
    let device = Answering::new();
    let mut group = criterion.benchmark_group("command");
    group.bench_function(BenchmarkId::new("write(2)", C::OPCODE), |bencher| {
        bencher.iter(|| bare::write(file, black_box(command)));
    });
    group.bench_function(BenchmarkId::new("library", C::OPCODE), |bencher| {
        // SAFETY: the null device follows no address.
        bencher.iter(|| unsafe { execute_unchecked(black_box(&device), black_box(command)) });
    });
    group.finish();
}

/// One series on a NIC.
fn answered<C: SafeCommand>(criterion: &mut Criterion, device: &cxi::Device, command: &C) {
    let transport = &**device.transport();
    let mut group = criterion.benchmark_group("command");
    let mut response = [0; bare::RESPONSE_ROOM];
    group.bench_function(BenchmarkId::new("transport", C::OPCODE), |bencher| {
        bencher.iter(|| bare::submit(transport, black_box(command), &mut response));
    });
    group.bench_function(BenchmarkId::new("library", C::OPCODE), |bencher| {
        bencher.iter(|| execute(black_box(transport), black_box(command)));
    });
    group.finish();
}

fn commands(criterion: &mut Criterion) {
    if nic::named().is_some() {
        let device = device().expect("the named NIC");
        answered(criterion, &device, &DevInfoGetCmd::new());
        answered(criterion, &device, &SvcGetCmd::of(1));
        return answered(criterion, &device, &SvcRsrcGetCmd::of(1));
    }
    let file = OpenOptions::new().read(true).write(true).open(SINK);
    let file = file.expect("a null device");
    written(criterion, &file, &SvcDestroyCmd::new());
    written(criterion, &file, &LniFreeCmd::new());
    written(criterion, &file, &SvcGetCmd::new());
    written(criterion, &file, &SvcRsrcGetCmd::new());
    written(criterion, &file, &SvcAllocCmd::new());
    written(criterion, &file, &AtuMapCmd::new());
}

criterion_group!(name = benches; config = run::criterion(); targets = commands);
criterion_main!(benches);
