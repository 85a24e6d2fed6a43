//! Rest of a crash, and the findings of a restart.

use cxi_fabric_manager::api::Body;
use cxi_fabric_manager::{Effect, Endpoint, Fault, Forget};

use super::support::{Site, client_of, http, job};

/// Only this cluster's, and only those that have ended.
#[test]
fn a_sweep_touches_no_other_cluster() {
    let site = Site::new();
    let (alpha, mut others) = (site.client(), Vec::new());
    for name in ["1", "2", "3"] {
        alpha.reserve(&job(name), 1).unwrap();
    }
    for (cluster, name) in [("alpha1", "17"), ("alpha-beta", "1"), ("al", "2"), ("ALPHA", "1")] {
        let other = client_of(cluster, &site.mock.url(), site.oauth(), http());
        other.reserve(&job(name), 1).unwrap();
        others.push(format!("{cluster}-{name}"));
    }
    let swept = alpha.sweep(|job| job.as_str() == "2").unwrap();
    assert_eq!(swept.live, [job("2")]);
    assert_eq!(swept.released, [job("1"), job("3")]);
    assert_eq!((swept.failed, swept.others), (vec![], others.len()));
    others.push("alpha-2".to_owned());
    others.sort();
    assert_eq!(site.mock.state().jobs.into_keys().collect::<Vec<_>>(), others);
}

/// A job that starts while the list is read is not in it, and one that is asked for is asked for afterward.
#[test]
fn a_sweep_asks_for_jobs_after_it_has_the_list() {
    let site = Site::new();
    let client = site.client();
    client.reserve(&job("1"), 1).unwrap();
    let started = |_: &cxi_site::JobId| {
        client.reserve(&job("2"), 1).unwrap();
        false
    };
    assert_eq!(client.sweep(started).unwrap().released, [job("1")]);
    assert!(client.find(&job("2")).unwrap().is_some());
}

/// A reservation that cannot be released is named, and the next sweep finds it.
#[test]
fn a_sweep_goes_on_behind_a_failure() {
    let site = Site::new();
    let client = site.client();
    for name in ["1", "2"] {
        client.reserve(&job(name), 1).unwrap();
    }
    site.fails_once(Endpoint::DeleteJob, Fault::status(400));
    let swept = client.sweep(|_| false).unwrap();
    assert_eq!((swept.released, swept.failed.len()), (vec![job("2")], 1));
    assert_eq!(swept.failed[0].0, job("1"));
    // Reported as done, but not done: the list shows it.
    site.fails_once(Endpoint::DeleteJob, Fault::status(200));
    assert_eq!(client.sweep(|_| false).unwrap().released, [job("1")]);
    assert_eq!(client.sweep(|_| false).unwrap().released, [job("1")]);
    site.mock.assert_quiet();
}

#[test]
fn malformed_links_are_left_alone() {
    let site = Site::new();
    let links = serde_json::json!([
        null,
        7,
        "",
        "/fabric",
        "/fabric/collectives/jobs/",
        "/fabric/collectives/jobs/alpha-",
        "/fabric/collectives/jobs/alpha1-17",
        "/fabric/collectives/jobsalpha-1",
        "alpha-1",
        "/fabric/collectives/jobs/alpha-1%2F2",
        "/fabric/collectives/jobs/alpha-%ff",
    ]);
    let others = links.as_array().unwrap().len();
    let body = Body::Json(serde_json::json!({ "documentLinks": links }));
    let list = Effect::Answer { status: 200, body, perform: false };
    site.fails(Endpoint::ListJobs, Fault::new(list));
    let swept = site.client().sweep(|_| panic!("none is ours")).unwrap();
    assert_eq!((swept.released.len(), swept.others), (0, others));
}

#[test]
fn a_restart_finds_what_is_there() {
    let site = Site::new();
    let client = site.client();
    let kept = client.reserve(&job("1"), 1).unwrap().reservation;
    let found = || client.find(&job("1")).unwrap().map(|it| it.reservation);
    assert_eq!(found(), Some(kept.clone()));
    site.mock.restart(Forget::Tokens);
    assert_ne!(found().unwrap().token(), kept.token());
    site.mock.restart(Forget::Everything);
    assert_eq!(found(), None);
}

/// A lost answer does not make a second reservation.
#[test]
fn a_lost_answer_reserves_once() {
    let site = Site::new();
    let client = site.client();
    let lost = Effect::Answer { status: 500, body: Body::Html, perform: true };
    site.fails_once(Endpoint::CreateJob, Fault::new(lost));
    let reserved = client.reserve(&job("1"), 1).unwrap();
    assert!(reserved.found);
    assert_eq!(site.mock.state().jobs.len(), 1);
}
