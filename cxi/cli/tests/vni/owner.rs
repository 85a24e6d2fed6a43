//! A pool keeps its owner when root changes it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

use crate::common;
use crate::common::vni_pool::Pool;

#[test]
fn what_root_writes_stays_its_owners() {
    if !nix::unistd::geteuid().is_root() {
        common::skip("files can be given away by root only");
        return;
    }
    let pool = Pool::new();
    chown(pool.path("pool.json"), Some(12345), Some(12346)).unwrap();
    fs::set_permissions(pool.path("pool.json"), fs::Permissions::from_mode(0o640)).unwrap();
    pool.reserve("job1");
    let file = |name: &str| {
        let metadata = fs::metadata(pool.path(name)).unwrap();
        (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777)
    };
    assert_eq!(file("pool.json"), (12345, 12346, 0o640));
    // Only those who may change the pool may lock it.
    assert_eq!(file("pool.json.lock"), (12345, 12346, 0o600));
}
