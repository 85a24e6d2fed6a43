//! The scripts for schedulers, installed and run as a scheduler runs them, with its variables and
//! no others, on mock nodes. Commands of the scheduler itself are played by a few lines of shell.

mod common;

use std::path::Path;
use std::time::Duration;
use std::{fs, thread};

use common::site::Site;
use common::slurm::{site_of_slurm, slurm_node};
use common::{MockNode, Said, assert_contains};
use nix::unistd::geteuid;

#[test]
fn slurm_jobs_with_nothing_but_slurms_own_variables() {
    let site = site_of_slurm();
    let (one, two) = (slurm_node(&site, "n1"), slurm_node(&site, "n2"));
    one.run("prolog-slurmctld.sh", &[]).done();
    for node in [&one, &two] {
        let uid = geteuid();
        node.run("prolog.sh", &[])
            .prints(&format!("Created service 2 on cxi0-1: for uid {uid}, VNI 1024\n"));
        node.run("task-prolog.sh", &[]).prints(
            "export SLINGSHOT_VNIS=1024\nexport SLINGSHOT_DEVICES=cxi0,cxi1\nexport \
             SLINGSHOT_SVC_IDS=2,2\nexport SLINGSHOT_TCS=0xa\n",
        );
    }
    one.run("epilog-slurmctld.sh", &[]).done();
    one.run("epilog.sh", &[]).done();
    // A node that fails is drained, and its health check repairs it.
    let busy = [("CXI_MOCK_FAULT", "SVC_DESTROY:EBUSY")];
    assert_eq!(two.run("epilog.sh", &busy).code, 4);
    assert_eq!(two.run("health-check.sh", &busy).code, 0);
    assert_eq!(two.mock.services(), 2);
    two.run("health-check.sh", &[]).done();
    assert_eq!(one.mock.services() + two.mock.services(), 0);
    assert_eq!(two.run("epilog.sh", &[]).code, 0, "again");
    site.run("sweep.sh", &[], &[]);
    assert_eq!(site.cxi("--json vni show").json()["free"], 2);
}

#[test]
fn slurm_requeues_a_job_without_a_vni_and_says_why() {
    let site = site_of_slurm();
    let node = slurm_node(&site, "n1");
    let prolog = |job| node.run("prolog-slurmctld.sh", &[("SLURM_JOB_ID", job)]);
    for job in ["1", "2"] {
        prolog(job).done();
    }
    assert_eq!(prolog("3").code, 7);
    let updates = fs::read_to_string(site.path("updates")).unwrap();
    let short = "JobId=3 AdminComment=slingshot: error: failed to reserve 1 VNI: 0 available";
    assert!(updates.starts_with(short), "{updates}");
    // The user's options reach the nodes.
    fs::write(site.path("network"), "no_vni,depth=4").unwrap();
    prolog("4").done();
    node.run("prolog.sh", &[("SLURM_JOB_ID", "4")]).done();
    assert_eq!(node.mock.services(), 0);
    fs::write(site.path("network"), "deep").unwrap();
    assert_eq!(prolog("5").code, 2);
    let updates = fs::read_to_string(site.path("updates")).unwrap();
    assert_contains(&updates, "invalid network option 'deep'");
    assert!(!updates.contains("--help"), "{updates}");
    // A retry could not succeed.
    let held = updates.lines().filter(|line| line.starts_with("uhold"));
    assert_eq!(held.collect::<Vec<_>>(), ["uhold 5"]);
}

/// A script does not try again when it gets code 4: its commands wait, in the order of arrival, as
/// long as the settings say.
#[test]
fn slurm_scripts_wait_for_the_pool_as_long_as_they_are_told() {
    let site = site_of_slurm();
    let node = slurm_node(&site, "n1");
    let lock = fs::File::open(site.path("pool.json.lock")).unwrap();
    lock.lock().unwrap();
    let said = node.run("prolog-slurmctld.sh", &[("CXI_CONTROLLER_WAIT", "1200ms")]);
    assert_eq!(said.code, 4);
    let updates = fs::read_to_string(site.path("updates")).unwrap();
    assert_contains(&updates, "for 1s 200ms");
    assert_contains(&updates, "AdminComment=slingshot: error: ");
    fs::remove_file(site.path("updates")).unwrap();
    thread::scope(|scope| {
        let run = |job| {
            let node = &node;
            let variables = [("SLURM_JOB_ID", job), ("CXI_CONTROLLER_WAIT", "1m")];
            scope.spawn(move || node.run("prolog-slurmctld.sh", &variables))
        };
        let prologs = ["1", "2"].map(run);
        thread::sleep(Duration::from_millis(200));
        assert!(!prologs.iter().any(thread::ScopedJoinHandle::is_finished));
        drop(lock);
        for prolog in prologs {
            prolog.join().unwrap().done();
        }
    });
    // A job that starts keeps its comment.
    assert_eq!(fs::read_to_string(site.path("updates")).unwrap_or_default(), "");
}

#[test]
fn slurm_tasks_of_every_component_have_an_environment_and_others_do_not_start() {
    let site = site_of_slurm();
    let node = slurm_node(&site, "n1");
    let het = [("SLURM_HET_JOB_ID", "4711")];
    let component = [het[0], ("SLURM_JOB_ID", "4712")];
    for variables in [&component[..], &het] {
        node.run("prolog-slurmctld.sh", variables).done();
        node.run("prolog.sh", variables).done();
    }
    let environment = node.run("task-prolog.sh", &[]).done();
    assert_contains(&environment, "SLINGSHOT_VNIS=1024");
    let said = node.run("task-prolog.sh", &[("SLURM_JOB_ID", "9")]);
    assert_eq!(said.code, 5);
    let told = "print slingshot: error: job 9 has no record on this node: ";
    assert!(said.out.starts_with(told), "{}", said.out);
    node.run("epilog.sh", &component).done();
    assert_eq!(node.mock.services(), 2);
    node.run("epilog.sh", &het).done();
    assert_eq!(node.mock.services(), 0);
}

#[test]
fn slurm_says_what_was_cut() {
    let site = site_of_slurm();
    let node = slurm_node(&site, "n2");
    node.mock.take_queues();
    node.run("prolog-slurmctld.sh", &[]).done();
    let strict = [("CXI_MODE", "strict")];
    // The node stays available, and the job waits or ends.
    for (job, done) in [
        ("Requeue=1 Restarts=0 BatchFlag=1", "requeue 4711"),
        ("Requeue=1 Restarts=10 BatchFlag=1", "requeuehold 4711"),
        ("Requeue=0 Restarts=0 BatchFlag=1", "cancel 4711"),
        ("Requeue=1 Restarts=0 BatchFlag=0", "cancel 4711"),
    ] {
        fs::write(site.path("job"), format!("{job} ExitCode=0:0")).unwrap();
        let _ = fs::remove_file(site.path("updates"));
        assert_eq!(node.run("prolog.sh", &strict).code, 0);
        let updates = fs::read_to_string(site.path("updates")).unwrap();
        let why =
            "JobId=4711 AdminComment=slingshot: n2: error: cxi0-1: SVC_ALLOC: not enough TXQs";
        assert!(updates.starts_with(why), "{updates}");
        assert!(updates.ends_with(&format!("{done}\n")), "{updates}");
    }
    // Any other failure drains the node.
    let removed = [("CXI_MOCK_FAULT", "SVC_ALLOC:EIO")];
    assert_eq!(node.run("prolog.sh", &removed).code, 3);
    let updates = fs::read_to_string(site.path("updates")).unwrap();
    let drained = "NodeName=n2 State=DRAIN Reason=slingshot: n2: error: cxi0-1: SVC_ALLOC";
    assert_contains(&updates, drained);
    assert_eq!(node.run("prolog.sh", &[]).code, 0);
    let told = "print slingshot: less than the job asks for of TXQs\n";
    let said = node.run("task-prolog.sh", &[]).done();
    assert!(said.ends_with(told), "{said}");
    let said = node.run("task-prolog.sh", &[("SLURM_PROCID", "1")]).done();
    assert!(!said.contains("print"), "{said}");
}

/// As after a kill of the controller. A node that does not see its records is drained.
#[test]
fn slurm_requeues_a_job_that_the_controller_lost() {
    let site = site_of_slurm();
    let node = slurm_node(&site, "n1");
    fs::write(site.path("job"), "Requeue=1 Restarts=0 BatchFlag=1 ExitCode=0:0").unwrap();
    let last_update = |code| {
        assert_eq!(node.run("prolog.sh", &[("CXI_WAIT", "10ms")]).code, code);
        let updates = fs::read_to_string(site.path("updates")).unwrap();
        updates.lines().last().unwrap().to_owned()
    };
    let drained = last_update(1);
    assert!(drained.starts_with("NodeName=n1 State=DRAIN"), "{drained}");
    assert_contains(&drained, "No such file or directory");
    node.run("prolog-slurmctld.sh", &[("SLURM_JOB_ID", "1")]).done();
    assert_eq!(last_update(0), "requeue 4711");
}

/// As when Slurm was killed and has forgotten it. A node cannot know that.
#[test]
fn slurm_jobs_whose_end_was_lost_are_ended_by_the_sweep_and_then_by_the_health_check() {
    let site = site_of_slurm();
    let node = slurm_node(&site, "n1");
    node.run("prolog-slurmctld.sh", &[]).done();
    node.run("prolog.sh", &[]).done();
    let health_check = |services| {
        assert_eq!(node.run("health-check.sh", &[]).code, 0);
        assert_eq!(node.mock.services(), services);
    };
    let is_swept = || {
        let metrics = site.cxi("metrics --mock").done();
        metrics.contains("\ncxi_controller_last_sweep_timestamp_seconds ")
    };
    health_check(2);
    assert!(!is_swept());
    site.run("sweep.sh", &[], &[]).prints("Job 4711 has ended\n");
    assert!(is_swept());
    health_check(0);
    site.cxi("job confirm 4711 --node n2").done();
    site.run("sweep.sh", &[], &[]);
    assert_eq!(site.cxi("--json vni show").json()["free"], 2);
}

/// As by the kernel when memory is short.
#[test]
fn slurm_reasons_name_a_command_that_was_killed() {
    let site = site_of_slurm();
    let node = slurm_node(&site, "n1");
    site.program("killed", "#!/bin/sh\necho 'warning: slow' >&2; kill -9 $$\n");
    let killed = format!("cxi={}", site.path("bin/killed").display());
    for (script, reason) in [
        ("prolog-slurmctld.sh", "JobId=4711 AdminComment=slingshot: "),
        ("prolog.sh", "NodeName=n1 State=DRAIN Reason=slingshot: n1: "),
        ("epilog.sh", "NodeName=n1 State=DRAIN Reason=slingshot: "),
    ] {
        let path = site.path("slurm").join(script);
        let text = fs::read_to_string(&path).unwrap();
        let usual = format!("cxi={}", env!("CARGO_BIN_EXE_cxi"));
        fs::write(&path, text.replace(&usual, &killed)).unwrap();
        let _ = fs::remove_file(site.path("updates"));
        assert_eq!(node.run(script, &[]).code, 137);
        let updates = fs::read_to_string(site.path("updates")).unwrap();
        assert!(updates.starts_with(reason), "{script}: {updates}");
        assert_contains(&updates, "ended with status 137");
    }
}

/// An option of a user is one word, even if it looks like an option.
#[test]
fn slurm_options_are_those_of_the_user() {
    let site = site_of_slurm();
    let node = slurm_node(&site, "n1");
    for network in ["--tenant=of-others", "-x", "--vnis"] {
        fs::write(site.path("network"), network).unwrap();
        let _ = fs::remove_file(site.path("updates"));
        assert_eq!(node.run("prolog-slurmctld.sh", &[]).code, 2);
        let updates = fs::read_to_string(site.path("updates")).unwrap();
        assert_contains(&updates, &format!(": invalid network option '{network}': expected "));
    }
}

/// A user at a terminal sees nothing else.
#[test]
fn slurm_tells_users_at_a_terminal_why_their_job_does_not_start() {
    let site = site_of_slurm();
    let node = slurm_node(&site, "n1");
    fs::write(site.path("network"), "bogus").unwrap();
    let told = |job: &str| {
        fs::write(site.path("job"), job).unwrap();
        let _ = fs::remove_file(site.path("updates"));
        assert_eq!(node.run("prolog-slurmctld.sh", &[]).code, 2);
        let updates = fs::read_to_string(site.path("updates")).unwrap();
        assert_contains(
            &updates,
            "JobId=4711 AdminComment=slingshot: error: invalid value 'bogus'",
        );
        updates.contains("notify 4711 slingshot: error: invalid value 'bogus' for '--network")
    };
    assert!(told("Requeue=0 Restarts=0 BatchFlag=0"));
    assert!(!told("Requeue=0 Restarts=0 BatchFlag=1"));
}

/// As when Slurm has lost its state, and begins with its job numbers anew.
#[test]
fn slurm_says_how_to_end_an_earlier_job_with_the_same_number() {
    let site = site_of_slurm();
    let node = slurm_node(&site, "n1");
    node.run("prolog-slurmctld.sh", &[("SLURM_JOB_UID", "1001")]).done();
    let again = || node.run("prolog-slurmctld.sh", &[("SLURM_JOB_UID", "1002")]);
    assert_eq!(again().code, 10);
    let updates = fs::read_to_string(site.path("updates")).unwrap();
    assert_contains(
        &updates,
        "AdminComment=slingshot: error: job 4711 belongs to uid 1001, not 1002",
    );
    assert_contains(&updates, "cxi job release 4711 ends the earlier job");
    assert!(!updates.contains("hold"), "{updates}");
    // What the comment says helps.
    site.cxi("job release 4711").done();
    for node in ["n1", "n2"] {
        site.cxi(&format!("job confirm 4711 --node {node}")).done();
    }
    again().done();
}

/// One judge says whether a node is fit; that others have drained it is their business.
#[test]
fn slurm_drains_a_node_that_is_not_fit_for_a_job() {
    let site = site_of_slurm();
    let node = slurm_node(&site, "n1");
    let drains = || {
        let _ = fs::remove_file(site.path("updates"));
        assert_eq!(node.run("health-check.sh", &[("CXI_NICS", "3")]).code, 0);
        fs::read_to_string(site.path("updates")).unwrap_or_default()
    };
    let reason = "slingshot: error: cxi2: the NIC is not there (2 of 3 expected)";
    let drained = drains();
    let expected = format!("NodeName=n1 State=DRAIN Reason={reason}");
    assert!(drained.starts_with(&expected), "{drained}");
    for (noted, is_drained) in [
        ("of the site", false),
        (drained.split_once("Reason=").unwrap().1.trim_end(), false),
        ("slingshot: error: earlier", true),
    ] {
        fs::write(site.path("reason"), format!("{noted}\n")).unwrap();
        assert_eq!(drains() == drained, is_drained, "{noted}");
    }
    // The node is not at fault if jobs take all there is, or if somebody else's services are there.
    node.mock.take_queues();
    fs::write(site.path("reason"), "none\n").unwrap();
    assert_eq!(node.run("health-check.sh", &[("CXI_NICS", "2")]).code, 0);
    assert_eq!(fs::read_to_string(site.path("updates")).unwrap(), drained);
}

/// A site with Flux, whose user has decided what jobs have.
fn flux(settings: &str) -> Site {
    let site = Site::new("flux", "");
    let path = site.directory.path().display().to_string();
    fs::write(
        site.path("cxi.toml"),
        format!(
            "wait = \"2s\"\n[pool]\nfile = \"{path}/pool.json\"\n[controller]\nrecords = \
             \"{path}/shared\"\nwait = \"0s\"\n[node]\nretry-busy = \"20ms\"\nrecords = \
             \"{path}/run/cxi/jobs\"\n{settings}"
        ),
    )
    .unwrap();
    fs::create_dir(site.path("shared")).unwrap();
    // The exceptions of jobs and the reasons of drained nodes go to a file.
    site.program(
        "flux",
        &format!(
            "#!/bin/sh\ncase \"$1 $2\" in\n'job id') [ $4 = 5 ] && echo f6 || echo \
             \"f${{4#ƒ}}\" ;;\n'job wait-event') [ -e {path}/event ] ;;\n'getattr rank') echo 3 \
             ;;\n'job info') echo R ;;\n'R decode') [ \"$3 $4\" = '--include=3 --count=core' ] && \
             echo 8 ;;\n'job raise' | 'resource drain') echo \"$@\" >> {path}/said ;;\n'jobs -A') cat \
             {path}/jobs ;;\n*) exit 1 ;;\nesac\n"
        ),
    );
    site.install();
    site.cxi("vni configure 1024-1025").done();
    site
}

/// Reserves as the plugin of the job manager does before a job starts.
fn flux_reserves(site: &Site, options: &str) {
    let (uid, node) = (geteuid(), nix::unistd::gethostname().unwrap());
    let node = node.display();
    let reserve = format!("job reserve f6 --uid {uid} --nodes {node} {options}");
    site.cxi(&reserve).done();
    fs::write(site.path("event"), "").unwrap();
}

fn flux_run(site: &Site, mock: &MockNode, script: &str, fault: &str) -> Said {
    let (uid, mock) = (geteuid().to_string(), mock.file().display().to_string());
    // As Flux formats it for each of them.
    let is_housekeeping = script == "housekeeping.sh";
    let variables = [
        ("FLUX_JOB_ID", if is_housekeeping { "5" } else { "ƒ6" }),
        ("FLUX_JOB_USERID", uid.as_str()),
        ("CXI_MOCK", mock.as_str()),
        ("CXI_MOCK_FAULT", fault),
    ];
    site.run(script, &[], &variables)
}

#[test]
fn flux_prolog_epilog_housekeeping() {
    let (site, mock) = (flux(""), MockNode::new());
    let run = |script, fault| flux_run(&site, &mock, script, fault);
    let uid = geteuid();
    flux_reserves(&site, "--vnis 2");
    run("prolog.sh", "")
        .prints(&format!("Created service 2 on cxi0-1: for uid {uid}, VNIs 1024,1025\n"));
    site.cxi("job release f6").done();
    // The epilog leaves busy services to housekeeping, whose exit code drains the node.
    let told = "slingshot: services of f6 are still busy, housekeeping tries again\n";
    run("epilog.sh", "cxi1:SVC_DESTROY:EBUSY").mentions(0, told);
    assert_eq!(run("housekeeping.sh", "cxi1:SVC_DESTROY:EBUSY").code, 4);
    // The broker is not queried again: the record has everything.
    site.program("flux", "#!/bin/sh\n[ \"$1 $2\" = 'job id' ] && echo f6\n");
    assert_eq!(run("epilog.sh", "SVC_LIST_GET:EIO").code, 1);
    assert_eq!(site.cxi("--json vni show").json()["free"], 0);
    run("housekeeping.sh", "")
        .prints(&format!("cxi1: service 2 (uid {uid}, VNIs 1024,1025): destroyed\n"));
    assert_eq!(mock.services(), 0);
    for script in ["housekeeping.sh", "epilog.sh"] {
        assert_eq!(run(script, "").code, 0);
    }
    assert_eq!(site.cxi("job list --controller").done().lines().count(), 2);
}

#[test]
fn flux_jobs_without_slingshot_have_no_services() {
    let (site, mock) = (flux(""), MockNode::new());
    flux_reserves(&site, "--vnis 0");
    for script in ["prolog.sh", "epilog.sh", "housekeeping.sh"] {
        assert_eq!(flux_run(&site, &mock, script, "").code, 0);
        assert_eq!(mock.services(), 0);
    }
}

#[test]
fn flux_jobs_get_exceptions_and_nodes_that_fail_are_drained() {
    let (site, mock) = (flux("[job]\nmode = \"strict\"\n"), MockNode::new());
    let said = || fs::read_to_string(site.path("said")).unwrap_or_default();
    // As when the plugin is no longer loaded.
    site.cxi("job reserve f7 --uid 7 --nodes n1 --vnis 0").done();
    assert_eq!(flux_run(&site, &mock, "prolog.sh", "").code, 0);
    assert!(said().starts_with("job raise --type=slingshot --severity=0 ƒ6 "), "{}", said());
    assert_contains(&said(), "no decision of the controller within 2s");

    flux_reserves(&site, "");
    mock.take_queues();
    assert_eq!(flux_run(&site, &mock, "prolog.sh", "").code, 0);
    assert_contains(&said(), "--severity=0 ƒ6 ");
    assert_contains(&said(), ": error: cxi0-1: SVC_ALLOC: not enough TXQs");
    assert!(!said().contains("drain"), "{}", said());

    assert_eq!(flux_run(&site, &mock, "prolog.sh", "SVC_ALLOC:EIO").code, 3);
    assert_contains(&said(), "resource drain --update 3 slingshot: ");
    assert_contains(&said(), "--severity=1 ƒ6 ");
}

/// As on a broker that has just started.
#[test]
fn flux_jobs_start_although_the_event_is_missed() {
    let (site, mock) = (flux(""), MockNode::new());
    flux_reserves(&site, "");
    fs::remove_file(site.path("event")).unwrap();
    flux_run(&site, &mock, "prolog.sh", "").done();
    assert_eq!(mock.services(), 2);
}

/// A broker that starts again does not end the jobs of its node: Flux says which have ended.
#[test]
fn flux_jobs_outlive_a_broker_and_those_it_has_lost_are_swept() {
    let (site, mock) = (flux(""), MockNode::new());
    flux_reserves(&site, "");
    flux_run(&site, &mock, "prolog.sh", "").done();
    fs::write(site.path("jobs"), "f6\n").unwrap();
    let restart = |services| {
        site.run("sweep.sh", &[], &[]);
        assert_eq!(flux_run(&site, &mock, "clean.sh", "").code, 0);
        assert_eq!(mock.services(), services);
    };
    restart(2);
    fs::remove_file(site.path("jobs")).unwrap();
    restart(2);
    fs::write(site.path("jobs"), "").unwrap();
    restart(0);
    site.run("sweep.sh", &[], &[]);
    assert_eq!(site.cxi("--json vni show").json()["free"], 2);
}

/// As after another scheduler has crashed on a node.
#[test]
fn flux_destroys_what_is_foreign_only_when_it_is_told() {
    let (site, mock) = (flux(""), MockNode::new());
    // A job that lives, on both NICs, as where nodes are shared.
    flux_reserves(&site, "");
    flux_run(&site, &mock, "prolog.sh", "").done();
    let vni = "service create --device=cxi0 --uid=1001 --vni=1025";
    mock.cxi(vni).done();
    let records = format!("{}.d/services", mock.file().display());
    fs::remove_dir_all(records).unwrap();
    assert_eq!(flux_run(&site, &mock, "clean.sh", "").code, 0);
    assert_eq!(mock.services(), 3);
    let mocked = mock.file().display().to_string();
    let clean = |word| site.run("clean.sh", &[word], &[("CXI_MOCK", &mocked)]);
    assert_eq!(clean("--every").code, 2);
    let said = clean("--all").done();
    let listed = said.find("would").or_else(|| said.find("service 3")).unwrap();
    assert!(listed < said.find("destroyed").unwrap(), "{said}");
    assert_eq!(mock.services(), 2);
}

/// The broker's rank names the node; without a broker, nobody can be told.
#[test]
fn flux_drains_a_node_that_is_not_fit_for_a_job() {
    let (site, mock) = (flux(""), MockNode::new());
    let mocked = mock.file().display().to_string();
    let said = site.run("clean.sh", &[], &[("CXI_MOCK", &mocked), ("CXI_NICS", "3")]);
    assert_eq!(said.code, 0);
    let said = fs::read_to_string(site.path("said")).unwrap();
    assert!(said.starts_with("resource drain --update 3 slingshot: "), "{said}");
    assert_contains(&said, ": error: cxi2: the NIC is not there (2 of 3 expected)");
}

/// They say to the controller that they have nothing of a job.
#[test]
fn flux_nodes_without_a_nic_are_not_drained() {
    if Path::new("/sys/class/cxi_user").exists() {
        return cxi_test_kit::skip("this machine has CXI devices");
    }
    let site = flux("");
    flux_reserves(&site, "");
    site.cxi("job release f6").done();
    let variables = [("FLUX_JOB_ID", "ƒ6"), ("FLUX_JOB_USERID", "7")];
    fs::write(site.path("jobs"), "").unwrap();
    let nothing = "Nothing to do: this node has no NIC\n";
    for script in ["prolog.sh", "epilog.sh", "housekeeping.sh", "clean.sh"] {
        assert_eq!(site.run(script, &[], &variables).done(), nothing, "{script}");
    }
    site.run("sweep.sh", &[], &[]);
    assert_eq!(site.cxi("--json vni show").json()["free"], 2);
}
