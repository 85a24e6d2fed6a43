//! LNIs that share RGIDs, on nodes with more processes than RGIDs.

use std::fs;
use std::sync::Arc;

use cxi::{Device, LnisPerRgid};
use cxi_ioctl::{Errno, Fault, Faulty, Opcode};
use cxi_job::allocate::Cause;
use cxi_job::limits::RgidError;
use cxi_job::{AllocateError, Grant, JobRequestBuilder, Node};
use cxi_mock::MockNode;

use crate::support::{cxi, id, job, mock, open};

/// Two NICs with this many free RGIDs.
struct Site {
    mock: MockNode,
    sysfs: tempfile::TempDir,
}

impl Site {
    fn new(free: [&str; 2]) -> Self {
        let sysfs = tempfile::tempdir().unwrap();
        for (number, free) in (0..).zip(free) {
            let directory = format!("class/cxi_user/cxi{number}/device/properties");
            let directory = sysfs.path().join(directory);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("rgids_avail"), free).unwrap();
        }
        Self { mock: mock(2), sysfs }
    }

    fn node(&self, fault: Option<&Fault>) -> Node {
        let nics = self.mock.nics().iter().zip(0..);
        let devices = nics.map(|(nic, number)| {
            let transport = Faulty::new(open(nic));
            if let Some(fault) = fault {
                transport.inject(fault.clone());
            }
            Device::with_sysfs(cxi(number), Arc::new(transport), self.sysfs.path())
        });
        Node::from_devices(devices)
    }

    fn allocate(&self, request: JobRequestBuilder) -> Result<Grant, AllocateError> {
        self.node(None).allocate(&request.build().unwrap())
    }

    /// LNIs per RGID of the first service on each NIC.
    fn shared(&self) -> [u32; 2] {
        let node = self.node(None);
        [0, 1].map(|nic| {
            let services = node.nics()[nic].device().unwrap().services();
            services.lnis_per_rgid(id(2)).unwrap().get()
        })
    }
}

#[test]
fn as_many_share_an_rgid_as_it_takes_on_each_nic() {
    for (processes, nics, shared) in
        [(500, None, [1, 2]), (500, Some(1), [2, 4]), (510, None, [1, 3])]
    {
        let site = Site::new(["255\n", "127\n"]);
        let request = || job(1000, 4034).spread(processes, nics);
        let grant = site.allocate(request()).unwrap();
        assert_eq!(site.shared(), shared, "{processes} on {nics:?}");
        let granted =
            grant.services.iter().map(|entry| entry.lnis_per_rgid.map_or(1, LnisPerRgid::get));
        assert_eq!(granted.collect::<Vec<_>>(), shared);
        // Again, while the job runs and has taken RGIDs.
        fs::write(
            site.sysfs.path().join("class/cxi_user/cxi0/device/properties/rgids_avail"),
            "60\n",
        )
        .unwrap();
        let busy = Fault::errno(Errno::EBUSY).on(Opcode::SVC_SET_LPR);
        site.node(Some(&busy)).allocate(&request().build().unwrap()).unwrap();
        assert_eq!(site.shared(), shared);
    }
}

#[test]
fn what_eight_for_each_rgid_do_not_hold_is_refused() {
    let site = Site::new(["255\n", "10\n"]);
    let error = site.allocate(job(1000, 4034).spread(300, None)).unwrap_err();
    let failure = &error.failures()[0];
    assert_eq!(failure.device, cxi(1));
    assert!(matches!(failure.cause, Cause::Rgids(RgidError::TooMany { needed: 15, .. })));
    assert_eq!(
        failure.to_string(),
        "cxi1: 300 processes on 2 NICs with 10 free RGIDs each would need 15 LNIs per RGID: at most \
         8 can share one"
    );
    assert!(error.left().is_empty());
}

#[test]
fn nothing_is_shared_where_the_driver_does_not_count() {
    let site = Site::new(["", ""]);
    let grant = site.allocate(job(1000, 4034).spread(5000, None)).unwrap();
    assert_eq!(grant.services[0].lnis_per_rgid, None);
}
