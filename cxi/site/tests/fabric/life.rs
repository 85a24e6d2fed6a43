//! A job's reservation from beginning to end.

use std::time::Duration;

use cxi_fabric_manager::{Config, Endpoint, Fault};
use cxi_site::collectives::CollectivesEnv;
use cxi_site::fabric::{
    ClusterName, ClusterNameError, Credentials, FabricManager, end_inherited_step,
};

use super::support::{PATIENCE, Site, http, job, step, tree};

#[test]
fn a_job_reserves_makes_trees_and_releases() {
    let site = Site::new();
    let client = site.client();
    let env = client.offload(&job("17"), step("0"), 4).unwrap();
    let vars = env.vars();
    let get = |name: &str| {
        let var = vars.iter().find(|(there, _)| *there == name);
        var.map(|(_, value)| value.clone())
    };
    let var = |name| get(name).unwrap();
    assert_eq!(var("FI_CXI_COLL_JOB_ID"), "alpha-17");
    assert_eq!(var("FI_CXI_COLL_JOB_STEP_ID"), "0");
    assert_eq!(var("FI_CXI_HWCOLL_ADDRS_PER_JOB"), "4");
    assert_eq!(var("FI_CXI_COLL_FABRIC_MGR_URL"), site.mock.multicasts_url());
    assert_eq!(var("FI_CXI_COLL_FABRIC_MGR_CACERT"), "yes");

    // A process with that environment, and a second step.
    let inner =
        CollectivesEnv::inherit(|name| Some(get(name)?.into()), step("1")).unwrap().unwrap();
    let reservation = inner.reservation();
    assert_eq!(tree(reservation, "0"), "00:00:00:01:44:33");
    assert_eq!(tree(reservation, "1"), "00:00:00:01:44:34");
    // A process with the token cleans up after its own step, the workload manager after any step.
    let end = |step| end_inherited_step(reservation, step, &*http(), &PATIENCE);
    assert!(end(inner.step()).unwrap());
    assert_eq!(site.mock.state().roots.len(), 1);
    assert!(client.end_step(&job("17"), &step("0")).unwrap());
    assert!(site.mock.state().roots.is_empty());

    let again = client.reserve(&job("17"), 4).unwrap();
    assert_eq!((again.found, again.limit), (true, Some(4)));
    assert_eq!(&again.reservation, env.reservation());
    assert!(client.release(&job("17")).unwrap());
    assert!(!client.release(&job("17")).unwrap());
    assert!(!client.end_step(&job("17"), &step("0")).unwrap());
    assert!(end(inner.step()).is_err());
    assert_eq!(client.find(&job("17")).unwrap(), None);
    site.mock.assert_quiet();
}

/// The job can start without: the error is the reason why it is slower.
#[test]
fn a_reservation_that_fails_says_why() {
    let site = Site::new();
    site.fails(Endpoint::CreateJob, Fault::status(400));
    let client = site.client();
    let why = client.offload(&job("17"), step("0"), 4).unwrap_err();
    let message =
        "cannot reserve 4 multicast trees for job 17: the answer is 400: status 400, as requested";
    assert_eq!(why.to_string(), message);
}

/// Ids of Flux are not ASCII; they come back as they went.
#[test]
fn names_are_escaped_in_paths() {
    let site = Site::new();
    let client = site.client();
    let flux = job("ƒ3WqKLhmP+1@a:b");
    client.reserve(&flux, 1).unwrap();
    assert_eq!(site.mock.state().jobs.keys().collect::<Vec<_>>(), ["alpha-ƒ3WqKLhmP+1@a:b"]);
    assert!(client.find(&flux).unwrap().is_some());
    assert_eq!(client.sweep(|_| false).unwrap().released, [flux]);
    site.mock.assert_quiet();
}

#[test]
fn names_that_would_be_ambiguous_are_refused() {
    for name in ["a/b", "a#1", "", "a b"] {
        assert!(name.parse::<ClusterName>().is_err(), "{name}");
    }
    let alpha: ClusterName = "alpha".parse().unwrap();
    assert_eq!(alpha.reservation(&job("1-2")), Err(ClusterNameError::Job(job("1-2"))));
    let site = Site::new();
    let error = site.client().reserve(&job("1-2"), 1).unwrap_err().to_string();
    assert!(error.ends_with(
        "job id 1-2 cannot be part of a reservation's name: expected no '-', '/' or '#'"
    ));
    let bad = |url: &str| {
        let certificate = cxi_site::collectives::Certificate::System;
        let client = FabricManager::new(url, alpha.clone(), site.oauth(), http(), certificate);
        client.unwrap_err().to_string()
    };
    for url in ["fm", "ftp://fm", "https://", "https:///x", "https://a b"] {
        let expected = format!(
            "cannot use a fabric manager: fabric manager address {url:?}: expected http:// or https:// and a host"
        );
        assert_eq!(bad(url), expected);
    }
}

#[test]
fn a_gateway_and_a_password_do_as_well() {
    let mut config = Config::default();
    "/apis/fabric-manager".clone_into(&mut config.prefix);
    config.access.gateway = true;
    let site = Site::with(config);
    let client = site.client_with(Credentials::basic(Some(site.mock.files.path())));
    client.reserve(&job("17"), 1).unwrap();
    let used: Vec<&str> = vec!["Basic ***"; 2];
    let journal = site.mock.journal();
    let sent = journal.iter().flat_map(|entry| &entry.headers);
    let sent = sent.filter(|(name, _)| name == "authorization").map(|(_, value)| value.as_str());
    assert_eq!(sent.collect::<Vec<_>>(), used);
    // The password is read anew each time.
    site.write("passwd", "wrong");
    let error = client.find(&job("17")).unwrap_err().to_string();
    assert_eq!(error, "cannot look for the reservation of job 17: the answer is 403");
}

#[test]
fn a_token_is_used_until_it_ends() {
    let mut config = Config::default();
    config.access.client_secret = "a&b=%c d".to_owned();
    config.access.token_seconds = 1;
    let site = Site::with(config);
    let client = site.client();
    let tokens = || {
        let journal = site.mock.journal();
        journal.iter().filter(|entry| entry.endpoint == Some(Endpoint::Token)).count()
    };
    client.find(&job("1")).unwrap();
    client.find(&job("1")).unwrap();
    assert_eq!(tokens(), 1);
    // It is replaced before it ends,
    std::thread::sleep(Duration::from_millis(950));
    client.find(&job("1")).unwrap();
    assert_eq!(tokens(), 2);
    // or when it is refused, once.
    site.mock.expire_tokens();
    client.find(&job("1")).unwrap();
    assert_eq!(tokens(), 3);
    assert!(site.mock.journal().iter().filter(|entry| entry.status == 401).count() == 1);
}
