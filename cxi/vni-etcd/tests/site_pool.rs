//! The pool of a site in a file, and in etcd where there is one.

mod server;

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use cxi::Errno;
use cxi_job::cluster::{ReserveRequest, Site, SiteError};
use cxi_site::pool::PoolConfig;
use cxi_site::settings::Settings;
use cxi_site::{ErrorCode, FileLock, JobId};
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
    JobId::new(id.to_string()).unwrap()
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
    assert!(!pool.is_here().unwrap() && pool.place() == place);
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
    // A program that another test starts has the lock, too, until it executes.
    let site = site(directory.path(), "a", "1s", "");
    let (pool, other) = (pool(&site), pool(&site));
    let made = pool.configure(&config()).unwrap();
    assert!(made.made && made.event.is_some() && pool.is_here().unwrap());
    let again = pool.configure(&config()).unwrap();
    assert!(!again.made && again.event.is_none());
    assert_eq!(pool.lead().unwrap(), None);
    let path = directory.path().join("pool.json");
    assert_eq!(reserve(&site, &pool, 1).unwrap(), [1024]);
    assert_eq!(reserve(&site, &other, 2).unwrap(), [1025]);
    assert_eq!(pool.look().unwrap().jobs().count(), 2);
    let held = FileLock::of(&path).wait(Duration::from_secs(10)).acquire().unwrap();
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
    assert!(first.configure(&config()).unwrap().made && !first.is_here().unwrap());
    assert_eq!(first.place().to_string(), "cxi/vni in etcd");
    assert_eq!(reserve(&one, &first, 1).unwrap(), [1024]);
    assert_eq!(first.lead().unwrap(), Some(1));
    assert!(first.is_here().unwrap() && !second.is_here().unwrap());
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

/// Members that take a connection and never answer.
#[test]
fn the_start_of_a_job_waits_for_etcd_as_long_as_is_set() {
    let directory = TempDir::new().unwrap();
    let silent = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let urls = silent.each_ref().map(|one| format!("http://{}", one.local_addr().unwrap()));
    let settings = format!("store = \"etcd\"\n[etcd]\nendpoints = {urls:?}\n");
    let site = site(directory.path(), "a", "1m", &settings);
    let begins = Instant::now();
    let lost = reserve(&site, &pool(&site), 1).unwrap_err();
    assert!(lost.to_string().contains("no answer in time"), "{lost}");
    // Not to wait at all still leaves it a second.
    assert!(begins.elapsed() < Duration::from_secs(2), "{:?}", begins.elapsed());
    assert!(!directory.path().join("decisions/running/1").exists());
}

/// One of three members is left, which has no majority.
#[test]
fn the_start_of_a_job_waits_for_a_majority_as_long_as_is_set() {
    let Some(mut etcd) = Etcd::members(3, "http", &[]) else { return };
    let directory = TempDir::new().unwrap();
    let urls: Vec<String> = etcd.iter().map(Etcd::url).collect();
    let settings = format!("store = \"etcd\"\n[etcd]\nendpoints = {urls:?}\n");
    let site = site(directory.path(), "a", "1m", &settings);
    pool(&site).configure(&config()).unwrap();
    let opened = pool(&site);
    assert_eq!(reserve(&site, &opened, 1).unwrap(), [1024]);
    etcd[0].kill();
    etcd[1].kill();
    for pool in [opened, pool(&site)] {
        let begins = Instant::now();
        let lost = reserve(&site, &pool, 2).unwrap_err();
        assert_eq!(lost.code(), ErrorCode::Failed, "{lost}");
        assert!(begins.elapsed() < Duration::from_millis(2500), "{:?}", begins.elapsed());
    }
}

/// etcd is lost, and another one takes its place: the procedure of the documentation.
#[test]
fn a_pool_that_is_lost_with_its_etcd_knows_the_jobs_again() {
    let (Some(lost), Some(new)) = (Etcd::start(), Etcd::start()) else { return };
    let directory = TempDir::new().unwrap();
    let on = |etcd: &Etcd| {
        let settings = format!("store = \"etcd\"\n[etcd]\nendpoints = [\"{}\"]\n", etcd.url());
        site(directory.path(), "a", "5s", &settings)
    };
    let before = on(&lost);
    pool(&before).configure(&config()).unwrap();
    pool(&before).lead().unwrap();
    for (id, vni) in [(1, 1024), (2, 1025), (3, 1026)] {
        assert_eq!(reserve(&before, &pool(&before), id).unwrap(), [vni]);
    }
    drop(lost);
    let after = on(&new);
    assert!(pool(&after).configure(&config()).unwrap().made);
    let leads = pool(&after);
    leads.lead().unwrap();
    let adopted = after.controller(&leads).unwrap().adopt().unwrap();
    assert_eq!((adopted.jobs, adopted.mismatches), (vec![job(1), job(2), job(3)], vec![]));
    assert_eq!(reserve(&after, &leads, 4).unwrap(), [1027]);
    // Those that ended meanwhile drain, and are free when their node has confirmed.
    let controller = after.controller(&leads).unwrap();
    let _ = controller.release(&job(1), None).unwrap();
    controller.confirm(&job(1), &"n1".parse().unwrap()).unwrap();
    assert!(controller.collect().unwrap().is_empty());
    assert_eq!(leads.look().unwrap().jobs().count(), 3);
}

#[test]
fn a_password_that_others_can_read_is_refused() {
    let directory = TempDir::new().unwrap();
    let password = directory.path().join("password");
    let site = |url: &str, more: &str| {
        let settings = format!(
            "store = \"etcd\"\n[etcd]\nendpoints = [\"{url}\"]\nuser = \"cxi\"\npassword-file = \
             \"{}\"\n{more}",
            password.display()
        );
        site(directory.path(), "a", "1s", &settings)
    };
    fs::write(&password, "secret\n").unwrap();
    fs::set_permissions(&password, Permissions::from_mode(0o640)).unwrap();
    let refused = pool(&site("http://127.0.0.1:9", "")).look().unwrap_err().to_string();
    assert!(refused.ends_with("others can use (mode 640): expected mode 600"), "{refused}");
    fs::set_permissions(&password, Permissions::from_mode(0o600)).unwrap();
    let asked = pool(&site("http://127.0.0.1:9", "")).look().unwrap_err().to_string();
    assert!(asked.contains("did not answer"), "{asked}");
    let clear = "http://etcd.invalid:2379";
    let refused = SitePool::of(site(clear, "").settings()).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::BadInput);
    assert_eq!(
        refused.to_string(),
        "etcd.endpoints: the password of etcd.user would be sent in clear to http://etcd.invalid:2379: \
         expected https://, or the setting etcd.allow-clear-password"
    );
    let allowed = pool(&site(clear, "allow-clear-password = true\n")).look().unwrap_err();
    assert!(allowed.to_string().contains("did not answer"), "{allowed}");
}
