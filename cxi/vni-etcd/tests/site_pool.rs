//! The pool of a site in a file, and in etcd where there is one.

mod server;

use std::fs;
use std::path::Path;
use std::time::Duration;

use cxi::Errno;
use cxi_job::pool::PoolConfig;
use cxi_job::settings::Settings;
use cxi_job::site::{ReserveRequest, Site, SiteError};
use cxi_job::{ErrorCode, JobId, durable};
use cxi_vni_etcd::{PoolPlace, SitePool, SitePoolError};
use server::{Etcd, config};
use tempfile::TempDir;

/// A site on one machine: other machines have other files for their epochs.
fn site(directory: &Path, machine: &str, wait: &str, pool: &str) -> Site {
    let (place, file) = (directory.display(), directory.join(machine));
    let text = format!(
        "wait = \"{wait}\"\n[controller]\nrecords = \"{place}/decisions\"\nwait = \"0s\"\n[pool]\nfile \
         = \"{place}/pool.json\"\nepoch = \"{place}/{machine}.epoch\"\n{pool}"
    );
    fs::write(&file, text).unwrap();
    Site::open(Settings::load(Some(&file)).unwrap()).unwrap()
}

fn pool(site: &Site) -> SitePool {
    SitePool::of(site.settings()).unwrap()
}

fn job(id: u32) -> JobId {
    JobId::new(&id.to_string()).unwrap()
}

fn reserve(site: &Site, pool: &SitePool, id: u32) -> Result<Vec<u16>, SiteError> {
    let request = ReserveRequest::new(job(id), 1000, "n1".parse().unwrap());
    let done = site.controller(pool)?.reserve(&request)?;
    Ok(done.result.vnis.iter().map(|vni| vni.get()).collect())
}

#[test]
fn where_there_is_no_pool_nothing_is_left_behind() {
    let directory = TempDir::new().unwrap();
    let site = site(directory.path(), "a", "0s", "");
    let pool = pool(&site);
    let place = PoolPlace::File(directory.path().join("pool.json"));
    assert!(!pool.is_here() && pool.place() == place);
    for missing in [pool.look().map(drop), pool.open().map(drop)] {
        let missing = missing.unwrap_err();
        assert!(matches!(&missing, SitePoolError::Missing(found) if *found == place), "{missing}");
    }
    let missing = reserve(&site, &pool, 1).unwrap_err();
    assert_eq!((missing.code(), missing.errno()), (ErrorCode::NotFound, Errno::ENOENT));
    assert_eq!(missing.to_string(), format!("{place}: there is no pool of VNIs"));
    let unusable = pool.configure(&PoolConfig::new("1,10".parse().unwrap()));
    assert_eq!(unusable.unwrap_err().code(), ErrorCode::BadInput);
    let entries = fs::read_dir(directory.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a", "decisions"]);
}

#[test]
fn a_pool_in_a_file_is_made_changed_and_locked_for_each_change() {
    let directory = TempDir::new().unwrap();
    let site = site(directory.path(), "a", "0s", "");
    let (pool, other) = (pool(&site), pool(&site));
    let made = pool.configure(&config()).unwrap();
    assert!(made.made && made.event.is_some() && pool.is_here());
    let again = pool.configure(&config()).unwrap();
    assert!(!again.made && again.event.is_none());
    assert_eq!(pool.lead().unwrap(), None);
    let path = directory.path().join("pool.json");
    assert_eq!(reserve(&site, &pool, 1).unwrap(), [1024]);
    assert_eq!(reserve(&site, &other, 2).unwrap(), [1025]);
    assert_eq!(pool.look().unwrap().jobs().count(), 2);
    let held = durable::lock(&path, Duration::ZERO).unwrap();
    let busy = reserve(&site, &pool, 3).unwrap_err();
    assert_eq!((busy.code(), busy.errno()), (ErrorCode::Busy, Errno::EAGAIN));
    drop(held);
    assert_eq!(reserve(&site, &pool, 3).unwrap(), [1026]);
    fs::write(&path, "{}\n").unwrap();
    let damaged = pool.look().unwrap_err();
    assert_eq!(damaged.code(), ErrorCode::BadInput);
    let expected = format!("{}: not a change of a pool: ", path.display());
    assert!(damaged.to_string().starts_with(&expected), "{damaged}");
}

#[test]
fn one_of_two_controllers_leads_a_pool_in_etcd() {
    let Some(etcd) = Etcd::start() else { return };
    let directory = TempDir::new().unwrap();
    let settings = format!("store = \"etcd\"\n[etcd]\nendpoints = [\"{}\"]\n", etcd.url());
    let [one, two] = ["a", "b"].map(|machine| site(directory.path(), machine, "5s", &settings));
    let [first, second] = [&one, &two].map(pool);
    let missing = reserve(&one, &first, 1).unwrap_err();
    assert_eq!(missing.code(), ErrorCode::NotFound, "{missing}");
    assert!(first.configure(&config()).unwrap().made && !first.is_here());
    assert_eq!(first.place().to_string(), "cxi/vni in etcd");
    assert_eq!(reserve(&one, &first, 1).unwrap(), [1024]);
    assert_eq!(first.lead().unwrap(), Some(1));
    assert!(first.is_here() && !second.is_here());
    // What was opened before leads too, and so does another program of this machine.
    assert_eq!(reserve(&one, &first, 2).unwrap(), [1025]);
    assert_eq!(reserve(&one, &pool(&one), 3).unwrap(), [1026]);
    assert_eq!(second.lead().unwrap(), Some(2));
    assert_eq!(reserve(&two, &second, 4).unwrap(), [1027]);
    let deposed = reserve(&one, &first, 5).unwrap_err();
    assert_eq!(deposed.code(), ErrorCode::Failed);
    assert!(deposed.to_string().contains("a leader with epoch 2"), "{deposed}");
    fs::write(directory.path().join("b.epoch"), "two\n").unwrap();
    let unusable = pool(&two).look().unwrap_err();
    assert!(matches!(unusable, SitePoolError::Epoch(_)), "{unusable}");
}
