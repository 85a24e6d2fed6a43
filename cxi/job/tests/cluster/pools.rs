//! VNIs of a pool that was lost, restored or led by another: none is given twice.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use cxi::{Errno, Vni};
use cxi_job::cluster::{Mismatch, PoolStore, ReserveRequest, Site, SiteError, Warning};
use cxi_site::pool::log::{FileLog, SharedPool};
use cxi_site::pool::{Phase, PoolConfig, Timestamp};
use cxi_site::{ErrorCode, NodeName};
use tempfile::TempDir;

use crate::support::{job, pool, reserve, site};

/// A pool in a file, of as many VNIs as jobs of the tests want.
fn pool_in(file: &Path, vnis: &str) -> Mutex<SharedPool<FileLog>> {
    let config = PoolConfig::new(vnis.parse().unwrap());
    Mutex::new(SharedPool::open(FileLog::new(file), config, "", 0, Timestamp::now()).unwrap())
}

fn vni_of(site: &Site, pool: &impl PoolStore, id: u32) -> Result<u16, SiteError> {
    let request = ReserveRequest::new(job(id), 1000, "n1".parse().unwrap());
    let done = site.controller(pool)?.reserve(&request)?;
    Ok(done.result.vnis[0].get())
}

/// Ends a job, and confirms that for its node.
fn end(site: &Site, pool: &impl PoolStore, id: u32) {
    let controller = site.controller(pool).unwrap();
    assert_eq!(controller.release(&job(id), None).unwrap().result, [job(id)]);
    controller.confirm(&job(id), &NodeName::new("n1").unwrap()).unwrap();
    assert!(controller.collect().unwrap().is_empty());
}

#[test]
fn a_pool_that_is_configured_anew_gives_no_recorded_vni_to_another_job() {
    let directory = TempDir::new().unwrap();
    let (site, file) = (site(directory.path()), directory.path().join("pool.json"));
    let vnis = "1024-1029";
    let first = pool_in(&file, vnis);
    for (id, vni) in [(1, 1024), (2, 1025), (3, 1026)] {
        assert_eq!(vni_of(&site, &first, id).unwrap(), vni);
    }
    let _ = site.controller(&first).unwrap().release(&job(2), None).unwrap();
    fs::remove_file(&file).unwrap();

    let anew = pool_in(&file, vnis);
    let given = site.controller(&anew).unwrap().compare().unwrap();
    let given_away = given.iter().filter(|one| matches!(one, Mismatch::GivenAway { .. }));
    assert_eq!((given.len(), given_away.count()), (3, 3), "{given:?}");
    assert!(given.iter().all(Mismatch::is_harmful));
    assert_eq!(vni_of(&site, &anew, 4).unwrap(), 1027);
    // A job that asks again keeps what it has.
    assert_eq!(vni_of(&site, &anew, 1).unwrap(), 1024);
    assert!(site.controller(&anew).unwrap().compare().unwrap().is_empty());
    let metrics = anew.lock().unwrap().pool().metrics(Timestamp::now());
    assert_eq!((metrics.reserved, metrics.draining, metrics.free), (3, 1, 2));
    end(&site, &anew, 1);
    let free = anew.lock().unwrap().pool().metrics(Timestamp::now()).free;
    assert_eq!(free, 3);
    drop(anew);
    // A release is the first thing that a new pool hears of a job: its VNIs drain until the node has
    // confirmed.
    fs::remove_file(&file).unwrap();
    let anew = pool_in(&file, vnis);
    let _ = site.controller(&anew).unwrap().release(&job(3), None).unwrap();
    let held = anew.lock().unwrap().pool().job(&job(3)).cloned().unwrap();
    assert!(matches!(held.phase, Phase::Draining { .. }), "{held:?}");
}

#[test]
fn an_older_copy_of_a_pool_gives_no_recorded_vni_to_another_job() {
    let directory = TempDir::new().unwrap();
    let (site, file) = (site(directory.path()), directory.path().join("pool.json"));
    let copy = directory.path().join("copy.json");
    let pool = pool_in(&file, "1024-1025");
    assert_eq!(vni_of(&site, &pool, 1).unwrap(), 1024);
    fs::copy(&file, &copy).unwrap();
    end(&site, &pool, 1);
    assert_eq!(vni_of(&site, &pool, 2).unwrap(), 1025);
    assert_eq!(vni_of(&site, &pool, 3).unwrap(), 1024);

    // There, job 1 has the VNI of job 3, and that of job 2 is free.
    let copy = pool_in(&copy, "1024-1025");
    let short = vni_of(&site, &copy, 4).unwrap_err();
    assert_eq!(short.code(), ErrorCode::NotEnough, "{short}");
    // The scheduler uses the number again: it does not get the VNI that its namesake had.
    let others = vni_of(&site, &copy, 1).unwrap_err();
    assert_eq!(
        others.to_string(),
        "the pool has VNI 1024 for job 1, and others have VNI 1024, as records say: end what the pool \
         says of it, with a release"
    );
    let controller = site.controller(&copy).unwrap();
    let left = controller.compare().unwrap();
    let vni = Vni::new(1024).unwrap();
    assert_eq!(
        left,
        [
            Mismatch::HeldByOther { job: job(3), vni, holder: job(1) },
            Mismatch::Unrecorded { job: job(1), vnis: vec![vni] },
        ]
    );
    // What an administrator does about it.
    let mut ends = |pool: &mut cxi_site::VniPool, now| Ok(pool.release(&job(1), &[], now)?);
    copy.change(Duration::from_secs(1), &mut ends).unwrap();
    let mut confirms = |pool: &mut cxi_site::VniPool, now| Ok(pool.confirm_all(&[job(1)], now)?);
    copy.change(Duration::from_secs(1), &mut confirms).unwrap();
    let adopted = controller.adopt().unwrap();
    assert_eq!((adopted.jobs, adopted.mismatches), (vec![job(3)], vec![]));
    let short = vni_of(&site, &copy, 4).unwrap_err();
    assert_eq!(short.code(), ErrorCode::NotEnough, "{short}");
    end(&site, &copy, 3);
    assert_eq!(vni_of(&site, &copy, 4).unwrap(), 1024);
}

/// Another job goes on, unless nobody knows which VNIs it must not get.
#[test]
fn a_record_that_cannot_be_read_keeps_its_vnis() {
    let directory = TempDir::new().unwrap();
    let (site, file) = (site(directory.path()), directory.path().join("pool.json"));
    let pool = pool_in(&file, "1024-1029");
    for id in 1..=2 {
        vni_of(&site, &pool, id).unwrap();
    }
    fs::write(directory.path().join("decisions/running/1/job.json"), "").unwrap();
    let request = ReserveRequest::new(job(3), 1000, "n1".parse().unwrap());
    let done = site.controller(&pool).unwrap().reserve(&request).unwrap();
    let [Warning::Job(warning)] = &done.warnings[..] else { panic!("{done:?}") };
    assert!(warning.to_string().contains("the decision is empty"), "{warning}");
    fs::remove_file(&file).unwrap();
    let unknown = vni_of(&site, &pool_in(&file, "1024-1029"), 4).unwrap_err();
    assert!(
        matches!(&unknown, SiteError::UnknownVnis { job: of, .. } if *of == job(1)),
        "{unknown}"
    );
}

/// A record that the crash of a file system has cut off keeps others from starting only if its job's
/// VNIs could be given away.
#[test]
fn a_record_that_is_cut_off_is_named_and_others_start() {
    let directory = TempDir::new().unwrap();
    let (site, file) = (site(directory.path()), directory.path().join("pool.json"));
    let pool = pool_in(&file, "1024-1029");
    let record = |id: u32| directory.path().join(format!("decisions/running/{id}/job.json"));
    assert_eq!(vni_of(&site, &pool, 1).unwrap(), 1024);
    let controller = site.controller(&pool).unwrap();
    let mut request = ReserveRequest::new(job(2), 1000, "n1".parse().unwrap());
    request.vnis = Some(0);
    assert!(controller.reserve(&request).unwrap().result.vnis.is_empty());
    // Nothing is left of the one without VNIs, and the beginning of the other.
    fs::write(record(2), "").unwrap();
    let text = fs::read_to_string(record(1)).unwrap();
    let end = text.find("\"network\"").unwrap();
    fs::write(record(1), &text[..end]).unwrap();
    // Not even the pool knows it any more.
    fs::remove_file(&file).unwrap();
    let pool = pool_in(&file, "1024-1029");
    let request = ReserveRequest::new(job(3), 1000, "n1".parse().unwrap());
    let done = site.controller(&pool).unwrap().reserve(&request).unwrap();
    assert_eq!(done.result.vnis, [Vni::new(1025).unwrap()]);
    let warnings: Vec<_> = done.warnings.iter().map(ToString::to_string).collect();
    assert!(
        warnings.len() == 2
            && warnings[0].contains("running/1/job.json: the decision is cut off")
            && warnings[1].contains("running/2/job.json: the decision is empty"),
        "{warnings:?}"
    );
}

/// The scheduler lost its state, and uses its numbers again.
#[test]
fn a_job_number_of_another_user_has_a_code_and_a_way_out() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    reserve(&site, &pool, 1, "n1").unwrap();
    let controller = site.controller(&pool).unwrap();
    let request = ReserveRequest::new(job(1), 1001, "n1".parse().unwrap());
    let other = controller.reserve(&request).unwrap_err();
    assert_eq!((other.code(), other.errno()), (ErrorCode::OtherUser, Errno::EEXIST));
    assert_eq!(other.to_string(), "job 1 belongs to uid 1000, not 1001, and has not ended here");
    let _ = controller.release(&job(1), None).unwrap();
    assert_eq!(controller.reserve(&request).unwrap_err().code(), ErrorCode::Busy);
    controller.confirm(&job(1), &NodeName::new("n1").unwrap()).unwrap();
    assert_eq!(controller.reserve(&request).unwrap().result.uid, 1001);
}
