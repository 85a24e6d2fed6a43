//! Opening a NIC and querying it, next to the bare calls that get the same from the kernel.
//!
//! On files that look like those of the kernel, so that no driver's time is included; commands are
//! answered by a mock in this process. On a NIC it is the kernel's own files.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::fs::{self, OpenOptions};
use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use cxi::{Device, DeviceId, Host};
use cxi_benches::{bare, nic, run};
use cxi_ioctl::abi::device::{DevInfoGetCmd, GetDevPropertiesCmd};
use cxi_tests::counted::files;

/// Device node and directory of a NIC.
struct Place {
    host: Host,
    id: DeviceId,
    // Goes with its files.
    _directory: Option<tempfile::TempDir>,
}

impl Place {
    fn new() -> Self {
        if let Some(id) = nic::named() {
            return Self { host: Host::system(), id, _directory: None };
        }
        let directory = tempfile::tempdir().expect("a directory");
        let (dev, sysfs) = (directory.path().join("dev"), directory.path().join("sys"));
        files(&dev, &sysfs).expect("files");
        Self {
            host: Host::with_roots(dev, sysfs),
            id: DeviceId::new(0),
            _directory: Some(directory),
        }
    }

    fn device(&self) -> Device {
        if nic::named().is_some() {
            return self.host.open(self.id).expect("the named NIC");
        }
        let transport = Arc::clone(nic::mock().expect("a mock").transport());
        Device::with_sysfs(self.id, transport, self.host.sysfs())
    }
}

fn open(criterion: &mut Criterion) {
    let place = Place::new();
    let mut group = criterion.benchmark_group("open");
    let path = place.host.dev().join(place.id.to_string());
    group.bench_function("open(2), close(2)", |bencher| {
        bencher.iter(|| {
            let file = OpenOptions::new().read(true).write(true).open(black_box(&path));
            file.expect("the device")
        });
    });
    group.bench_function("library", |bencher| {
        bencher.iter(|| place.host.open(black_box(place.id)).expect("the device"));
    });
    group.finish();
}

/// Files that the library reads in sysfs, with the paths ready.
struct Reads {
    links: [PathBuf; 2],
    files: [PathBuf; 2],
    attributes: [PathBuf; 2],
}

impl Reads {
    fn of(place: &Place) -> Self {
        let class = place.host.sysfs().join("class/cxi_user");
        let device = class.join(place.id.to_string()).join("device");
        Self {
            links: [device.clone(), device.join("driver")],
            files: ["physfn", "resource0"].map(|name| device.join(name)),
            attributes: ["numa_node", "local_cpulist"].map(|name| device.join(name)),
        }
    }

    fn all(&self) {
        for link in &self.links {
            black_box(fs::read_link(link)).expect("a link");
        }
        for file in &self.files {
            let _there_or_not = black_box(fs::symlink_metadata(file));
        }
        for attribute in &self.attributes {
            black_box(read(attribute)).expect("an attribute");
        }
    }
}

fn read(path: &Path) -> std::io::Result<[u8; 64]> {
    let mut text = [0; 64];
    let _len = fs::File::open(path)?.read(&mut text)?;
    Ok(text)
}

fn info(criterion: &mut Criterion) {
    let place = Place::new();
    let device = place.device();
    let reads = Reads::of(&place);
    let mut group = criterion.benchmark_group("info");
    let mut response = [0; bare::RESPONSE_ROOM];
    group.bench_function("two commands, bare reads", |bencher| {
        let transport = &**device.transport();
        bencher.iter(|| {
            bare::submit(transport, &DevInfoGetCmd::new(), &mut response).expect("info");
            let command = GetDevPropertiesCmd::new();
            bare::submit(transport, &command, &mut response).expect("properties");
            reads.all();
        });
    });
    group.bench_function("library", |bencher| {
        bencher.iter(|| device.info().expect("info"));
    });
    group.finish();
}

criterion_group!(name = benches; config = run::criterion(); targets = open, info);
criterion_main!(benches);
