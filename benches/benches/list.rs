//! A list of services, next to the same bytes from the same transport without the library: the cost
//! of fetching, checking and decoding a service.
//!
//! The transport copies a list that a mock has made before, which is a lower bound. On a NIC it is the driver's own list, with services made to fill it.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use cxi::Device;
use cxi_benches::bare::{self, Listing};
use cxi_benches::nic::{self, Modest, Result, device};
use cxi_benches::run;
use cxi_ioctl::abi::service::{SvcDesc, SvcListGetCmd};
use cxi_ioctl::{LIST_HEADROOM, fetch_list};
use zerocopy::IntoBytes;

/// The services of a NIC, as the driver lists them.
fn raw(device: &Device) -> Result<Vec<SvcDesc>> {
    Ok(fetch_list::<SvcListGetCmd>(&**device.transport(), 0)?)
}

/// A NIC with that many services.
fn listing(count: u32) -> Result<(Device, Option<Modest>)> {
    if nic::named().is_some() {
        let device = device()?;
        let missing = (count as usize).saturating_sub(raw(&device)?.len());
        let made = Modest::create(&device, missing)?;
        return Ok((device, Some(made)));
    }
    let device = device()?;
    // The default service is one of them.
    Modest::create(&device, count as usize - 1)?;
    let list = raw(&device)?.as_bytes().to_vec();
    let transport = Arc::new(Listing::new(list, count));
    Ok((Device::cxi0(transport), None))
}

fn lists(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("list");
    for count in run::sizes(&[1_u32, 8, 64, 512, 4096]) {
        let (device, _made) = match listing(count) {
            Ok(listing) => listing,
            Err(error) if nic::named().is_some() => {
                run::skip(format_args!("list/{count}"), error);
                continue;
            }
            Err(error) => panic!("{count} services: {error}"),
        };
        let services = device.services();
        group.throughput(Throughput::Elements(count.into()));

        let raw = raw(&device).expect("a list");
        let mut room = vec![0; raw.as_bytes().len() * LIST_HEADROOM];
        let mut response = [0; bare::RESPONSE_ROOM];
        let entries = u32::try_from(raw.len()).expect("a count");
        let transport = &**device.transport();
        group.bench_function(BenchmarkId::new("transport", count), |bencher| {
            bencher.iter(|| {
                let entries = black_box(entries);
                bare::submit_list::<SvcListGetCmd>(transport, entries, &mut response, &mut room)
                    .expect("a list");
                black_box(&mut room);
            });
        });

        group.bench_function(BenchmarkId::new("list", count), |bencher| {
            bencher.iter(|| {
                let list = services.list().expect("a list");
                assert_eq!(list.len(), raw.len());
            });
        });
    }
    group.finish();
}

criterion_group!(name = benches; config = run::criterion(); targets = lists);
criterion_main!(benches);
