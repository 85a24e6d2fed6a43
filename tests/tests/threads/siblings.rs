//! Handles of one LNI in several threads: the last one to be dropped frees what they share.

use std::sync::{Arc, Barrier};

use cxi::lni::{EventQueueOptions, PtOptions, TgqOptions};
use cxi::{Device, Limit, Member, Resource, ResourceMap, ServiceSpec, Vni};
use cxi_ioctl::DriverRelease;
use cxi_mock::{Nic, NicConfig};

use crate::rounds;

#[test]
fn siblings_end_in_any_order_and_any_thread() {
    let nic = Nic::new(NicConfig::new().release(DriverRelease::Main2026_07)).unwrap();
    let before = nic.state();
    let device = Device::cxi0(nic.root().unwrap());
    let vni = Vni::new(1024).unwrap();
    let limits = ResourceMap::from_fn(|resource| match resource {
        Resource::Tles => Limit::NONE,
        _ => Limit::at_most(16),
    });
    let spec = ServiceSpec::builder().member(Member::Uid(0)).vni(vni).limits(limits);
    let service = device.services().create(&spec.build().unwrap()).unwrap();
    for _ in 0..rounds() {
        let lni = Arc::new(device.alloc_lni(service).unwrap());
        let events = Arc::new(lni.alloc_eq(&EventQueueOptions::new(4096)).unwrap());
        let domain = Arc::new(lni.alloc_domain(vni, None).unwrap());
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            for offset in 0..4 {
                let (lni, events) = (Arc::clone(&lni), Arc::clone(&events));
                let (domain, start) = (Arc::clone(&domain), &start);
                scope.spawn(move || {
                    start.wait();
                    let options = TgqOptions::new(64).event_queue(&events);
                    let queue = lni.alloc_tgq(&options).unwrap();
                    let pte = lni.alloc_pte(PtOptions::IS_MATCHING, Some(&events)).unwrap();
                    let mapping = pte.map(&domain, offset).unwrap();
                    // The parents go first, here and elsewhere.
                    drop((lni, events, domain, pte));
                    assert_eq!(queue.commands().unwrap().len(), 64 * 64);
                    mapping.close().unwrap();
                    drop(queue);
                });
            }
            drop((lni, events, domain));
        });
        assert_eq!(nic.state().stats, cxi_mock::ObjectCounts::default());
    }
    device.services().destroy(service).unwrap();
    drop(device);
    assert_eq!(nic.state(), before);
}
