//! A pool keeps its owner when root changes it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

use crate::common::vni_pool::Pool;

#[test]
fn what_root_writes_stays_its_owners() {
    if !cxi_test_kit::root("give files away") {
        return;
    }
    let pool = Pool::new();
    // An administrator gives the pool away, with its lock.
    for (name, mode) in [("pool.json", 0o640), ("pool.json.lock", 0o660)] {
        chown(pool.path(name), Some(12345), Some(12346)).unwrap();
        fs::set_permissions(pool.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    pool.reserve("job1");
    let file = |name: &str| {
        let metadata = fs::metadata(pool.path(name)).unwrap();
        (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777)
    };
    assert_eq!(file("pool.json"), (12345, 12346, 0o640));
    // A lock that exists stays as it is.
    assert_eq!(file("pool.json.lock"), (12345, 12346, 0o660));
    // A new one is for those who may change the pool.
    fs::remove_file(pool.path("pool.json.lock")).unwrap();
    pool.reserve("job2");
    assert_eq!(file("pool.json.lock"), (12345, 12346, 0o600));
}
