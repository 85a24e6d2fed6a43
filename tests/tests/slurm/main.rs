//! The scripts for Slurm in a real Slurm, the distribution's, on two mock nodes.
//!
//! Each test has its own cluster, which `tests/slurm/cluster` sets up.

mod cluster;
mod collectives;
mod foreign;
mod kills;
mod plugin;
#[path = "../../../cxi/vni-etcd/tests/server/mod.rs"]
mod server;

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use cluster::{CXI, Cluster};
use cxi_test_kit::full;
use cxi_tests::node::{errors, eventually};

/// Lines of a job's output that show its Slingshot environment.
fn told(output: &str) -> Vec<&str> {
    let mut lines: Vec<&str> =
        output.lines().filter(|line| line.starts_with("SLINGSHOT_")).collect();
    lines.sort_unstable();
    lines
}

/// Tasks that were told of VNI 1024.
fn tasks_with_1024(output: &str) -> usize {
    let lines = output.lines();
    lines.filter(|line| *line == "SLINGSHOT_VNIS=1024").count()
}

#[test]
fn jobs_have_one_vni_on_all_nodes_and_it_comes_back() {
    let Some(cluster) = Cluster::start("1024-1025") else { return };
    let environment = cluster.printed("srun", &["-N2", "-n3", "env"]);
    assert_eq!(tasks_with_1024(&environment), 3, "{environment}");
    eventually("both nodes are clean", || cluster.all_services() == 0);
    eventually("the VNI is free", || cluster.free() == 2);
    assert!(cluster.is_idle(), "{}", cluster.nodes());

    // Each node gives what its own CPUs ask for; the user may ask for something else.
    let script = format!("srun {CXI} --json service list");
    let reserved = |output: &str| -> Vec<u64> {
        let values = output.split("\"name\": \"TXQs\"").skip(1);
        let values = values.filter_map(|rest| rest.split("\"res\": ").nth(1));
        let numbers = values.filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        let mut numbers: Vec<u64> = numbers.filter_map(|number| number.parse().ok()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.retain(|number| *number > 0);
        numbers
    };
    let job = cluster.batch(&["-N2", "-n3"], &script);
    assert_eq!(reserved(&cluster.ended(&job)), [2, 4]);
    let job = cluster.batch(&["-N2", "-n3", "--network=depth=5"], &script);
    assert_eq!(reserved(&cluster.ended(&job)), [10]);
    let job = cluster.batch(&["-N1", "--network=no_vni"], "srun env");
    assert!(told(&cluster.ended(&job)).is_empty());
}

#[test]
fn every_component_of_a_heterogeneous_job_has_its_environment() {
    let Some(cluster) = Cluster::start("1024-1025") else { return };
    let script = cluster.directory.join("het");
    fs::write(
        &script,
        "#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -N1 -n2\nsrun --het-group=0,1 env\n",
    )
    .unwrap();
    let output = cluster.directory.join("job.%j");
    let job = cluster.printed("sbatch", &["--parsable", "-o", &output, &script]);
    let output = cluster.ended(job.trim());
    assert_eq!(tasks_with_1024(&output), 3, "{output}");
    eventually("the VNI is free", || cluster.free() == 2);
    assert_eq!(cluster.all_services(), 0);
}

#[test]
fn a_job_without_a_vni_is_requeued_and_no_node_is_drained() {
    let Some(cluster) = Cluster::start("1024") else { return };
    let first = cluster.batch(&["-N1", "-n1"], "sleep 60");
    eventually("the first job runs", || cluster.state(&first).contains("RUNNING"));
    let second = cluster.batch(&["-N1", "-n1"], "srun env");
    eventually("Slurm says why the second one waits", || {
        let state = cluster.state(&second);
        state.contains("JobState=PENDING") && state.contains("failed to reserve 1 VNI: 0 available")
    });
    assert!(!cluster.nodes().contains("drain"), "{}", cluster.nodes());
    cluster.printed("scancel", &[&first]);
    eventually("the VNI is free", || cluster.free() == 1);
    cluster.printed("scontrol", &["update", &format!("JobId={second}"), "StartTime=now"]);
    let output = cluster.ended(&second);
    assert!(told(&output).contains(&"SLINGSHOT_VNIS=1024"), "{output}");
}

#[test]
fn a_job_with_an_unknown_option_is_held_and_says_why() {
    let Some(cluster) = Cluster::start("1024") else { return };
    let job = cluster.batch(&["-N1", "--network=fast"], "true");
    eventually("it is held", || {
        let state = cluster.state(&job);
        state.contains("Reason=JobHeldUser") && state.contains("invalid network option 'fast'")
    });
    // A user at a terminal gets an error, and these jobs block nothing.
    let other = cluster.run("srun", &["-N1", "--network=fast", "true"]);
    let told = errors(&other);
    assert!(told.contains("PrologSlurmctld failed, job killed"), "{told}");
    assert!(told.contains("slingshot: error: ") && told.contains("option 'fast'"), "{told}");
    cluster.printed("srun", &["-N2", "true"]);
    assert!(cluster.state(&job).contains(" Restarts=1 "));
    eventually("nothing is left", || cluster.is_idle() && cluster.free() == 1);
}

#[test]
fn rendezvous_gets_are_off_as_long_as_a_job_runs_that_wants_that() {
    let Some(cluster) = Cluster::start("1024") else { return };
    let file = "/sys/class/cxi_user/cxi0/device/properties/rdzv_get_en";
    let off = ["-N2", "--network=disable_rdzv_get", "cat", file];
    assert_eq!(cluster.printed("srun", &off), "0\n0\n");
    eventually("they are on again", || {
        ["n1", "n2"].iter().all(|node| cluster.on(node, &["cat", file]).stdout == b"1\n")
    });
}

#[test]
fn a_failed_epilog_drains_its_node_and_the_health_check_is_the_remedy() {
    let Some(cluster) = Cluster::start("1024") else { return };
    cluster.drain_with_a_busy_service();
    let reasons = cluster.reasons();
    assert!(reasons.contains("slingshot: error: cxi0: service 2"), "{reasons}");
    assert_eq!((cluster.services("n1"), cluster.services("n2"), cluster.free()), (0, 1, 0));
    cluster.health_check("n2");
    assert_eq!(cluster.services("n2"), 1, "still busy");
    cluster.control("n2", &["clear-faults"]);
    cluster.health_check("n2");
    assert_eq!((cluster.services("n2"), cluster.free()), (0, 1));
    cluster.printed("scontrol", &["update", "NodeName=n2", "State=RESUME"]);
    cluster.printed("srun", &["-N2", "true"]);
}

/// Services that reserve LEs have 15 pools on a NIC: further jobs reserve none.
#[test]
fn more_jobs_run_on_a_node_than_its_nic_has_pools_for() {
    let (cpus, count, at_once) = if full() { ("32 32 32 32", 200, 120) } else { ("20", 20, 20) };
    let Some(cluster) = Cluster::start_on(cpus, 2, "1024-1279") else { return };
    // Slurm calls a job running before its prolog has run.
    let script = "touch $DIR/runs.$SLURM_JOB_ID; until [ -e $DIR/go ]; do sleep 0.5; done; \
                  echo less=$SLINGSHOT_CXI_SCALED_BACK";
    let jobs: Vec<String> = (0..count).map(|_| cluster.batch(&["-n1"], script)).collect();
    let runs = |job: &&String| fs::exists(cluster.directory.join(&format!("runs.{job}"))).unwrap();
    eventually("they run at the same time", || jobs.iter().filter(runs).count() >= at_once);
    fs::write(cluster.directory.join("go"), "").unwrap();
    let less = jobs.iter().filter(|job| {
        let output = cluster.ended(job);
        let state = cluster.state(job);
        assert!(state.contains(" Restarts=0 "), "{state}");
        assert!(state.contains("JobState=COMPLETED "), "{state}");
        output.contains("less=LEs")
    });
    assert!(less.count() >= at_once / 20 * 5);
    eventually("no node is drained", || cluster.is_idle());
}

#[test]
fn what_cannot_be_scaled_back_waits_and_drains_no_node() {
    let Some(cluster) = Cluster::start_on("8", 1, "1024-1031") else { return };
    cluster.set_strict();
    let tles = ["-n1", "--network=def_tles=1"];
    let jobs = [(); 3].map(|()| cluster.batch(&tles, "sleep 60"));
    eventually("the TLE pools are taken", || cluster.services("n1") == 3);
    let short = "slingshot: n1: error: cxi0: no TLE pool is left";
    let fourth = cluster.batch(&tles, "env");
    eventually("the fourth waits, and says why", || {
        let state = cluster.state(&fourth);
        state.contains("JobState=PENDING ") && state.contains(short)
    });
    // A job that cannot be requeued ends.
    let told = cluster.run("srun", &[&tles[..], &["true"]].concat());
    assert!(!told.status.success());
    let told = errors(&told);
    assert!(told.contains(short), "{told}");
    assert!(!cluster.nodes().contains("drain"), "{}", cluster.nodes());
    for job in &jobs {
        cluster.printed("scancel", &[job]);
    }
    eventually("the pools are free", || cluster.services("n1") == 0);
    // Slurm starts a requeued job two or three minutes later, when its nodes have forgotten the first
    // attempt.
    if full() {
        std::thread::sleep(Duration::from_secs(150));
        let output = cluster.ended(&fourth);
        assert!(output.contains("SLINGSHOT_VNIS="), "{output}");
    }
    // Any other failure is the node's.
    cluster.control("n1", &["fault", "SVC_ALLOC:EIO"]);
    cluster.batch(&["-n1"], "true");
    eventually("the node is drained, and says why", || {
        let reasons = cluster.reasons();
        reasons.contains("slingshot: n1: error: cxi0: SVC_ALLOC")
    });
}

/// As the guide has it: Slurm counts the pools, and no prolog is short of one.
#[test]
fn a_job_waits_for_a_generic_resource_instead_of_being_requeued() {
    let Some(cluster) = Cluster::start_on("20", 1, "1024-1055") else { return };
    cluster.set_strict();
    for (count, options) in
        [(3, &["--network=def_tles=1", "--gres=tlepool:1"][..]), (15, &["--gres=lepool:1"])]
    {
        let options = [&["-n1"], options].concat();
        let jobs: Vec<String> = (0..count).map(|_| cluster.batch(&options, "sleep 300")).collect();
        eventually("the pools are taken", || cluster.services("n1") == count);
        let next = cluster.batch(&options, "echo $SLINGSHOT_VNIS$SLINGSHOT_CXI_SCALED_BACK");
        eventually("the next one waits", || {
            let state = cluster.state(&next);
            state.contains("JobState=PENDING Reason=Resources ")
        });
        cluster.printed("scancel", &[&jobs[0]]);
        let output = cluster.ended(&next);
        assert!(output.trim().parse::<u16>().is_ok(), "{output}");
        let state = cluster.state(&next);
        assert!(state.contains(" Restarts=0 "), "{state}");
        for job in &jobs[1..] {
            cluster.printed("scancel", &[job]);
        }
        eventually("the pools are free", || cluster.services("n1") == 0);
    }
    eventually("no node is drained", || cluster.is_idle());
}

/// The scripts are the same; of the members, one does not answer.
#[test]
fn a_slurmctld_that_takes_over_leads_the_pool_in_etcd() {
    let Some(etcd) = server::Etcd::start() else { return };
    let urls = format!("http://127.0.0.1:9,{}", etcd.url());
    let Some(cluster) = Cluster::start_with_etcd("1024-1025", &urls) else { return };
    let epoch = || fs::read_to_string(cluster.directory.join("state/vni-epoch"));
    eventually("the first one leads", || epoch().is_ok_and(|epoch| epoch == "1\n"));
    let environment = cluster.printed("srun", &["-N2", "-n2", "env"]);
    assert_eq!(tasks_with_1024(&environment), 2, "{environment}");
    // Slurm itself may take minutes to hear the end of a job that it had not saved when it was killed.
    eventually("the VNI is free", || cluster.free() == 2);
    let pid = fs::read_to_string(cluster.directory.join("pids/slurmctld")).unwrap();
    cluster.printed("kill", &["-9", pid.trim()]);
    // Its port is free only then.
    eventually("the first one has ended", || {
        fs::read_link(format!("/proc/{}/exe", pid.trim())).is_err()
    });
    cluster.start_daemon("slurmctld", &[]);
    eventually("the next one leads", || epoch().is_ok_and(|epoch| epoch == "2\n"));
    let environment = cluster.printed("srun", &["-N1", "env"]);
    assert!(environment.contains("SLINGSHOT_VNIS=102"), "{environment}");
    eventually("its VNI is free", || cluster.free() == 2);
}

#[test]
fn a_node_that_is_reset_during_a_job_confirms_when_it_boots() {
    let Some(cluster) = Cluster::start("1024") else { return };
    let job = cluster.batch(&["-N2", "--no-requeue"], "sleep 60");
    eventually("the job runs", || cluster.all_services() == 2);
    cluster.printed(&cluster.directory.join("crash"), &["n2"]);
    cluster.printed("scontrol", &["update", "NodeName=n2", "State=DOWN", "Reason=crash"]);
    eventually("the job has failed", || cluster.state(&job).contains("NODE_FAIL"));
    eventually("the other node is clean", || cluster.services("n1") == 0);
    assert_eq!(cluster.free(), 0);
    let list = cluster.printed(CXI, &["job", "list", "--controller"]);
    assert!(list.contains("waits for n2"), "{list}");
    cluster.start_daemon("boot", &["n2"]);
    assert_eq!(cluster.free(), 1);
}

#[test]
fn a_task_without_a_record_fails_and_says_why() {
    let Some(cluster) = Cluster::start("1024") else { return };
    let job = cluster.batch(&["-N1"], "rm $DIR/n1.run/jobs/$SLURM_JOB_ID.json; srun echo started");
    let output = cluster.ended(&job);
    assert!(!output.contains("started"), "{output}");
    let told = format!("slingshot: error: job {job} has no record on this node: there is no ");
    assert!(output.contains(&told), "{output}");
}

#[test]
fn a_health_check_takes_nothing_from_jobs_that_start() {
    let Some(cluster) = Cluster::start("1024-1039") else { return };
    let rounds = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (all_ended, no_more_jobs) = mpsc::channel::<()>();
        let (cluster, rounds) = (&cluster, &rounds);
        let checks = scope.spawn(move || {
            while no_more_jobs.try_recv() == Err(mpsc::TryRecvError::Empty) {
                cluster.health_check("n1");
                cluster.health_check("n2");
                rounds.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        // Jobs start for as long as a few rounds take, which on a busy machine is long.
        while rounds.load(Ordering::Relaxed) < 4 && !checks.is_finished() {
            let start = |_| cluster.batch(&["-N1", "-n1"], "srun env; sleep 0.2");
            let jobs: Vec<String> = (0..24).map(start).collect();
            for job in jobs {
                let output = cluster.ended(&job);
                assert_eq!(told(&output).len(), 4, "{output}");
            }
        }
        drop(all_ended);
    });
    eventually("all VNIs are free", || cluster.free() == 16);
    assert!(cluster.is_idle(), "{}", cluster.nodes());
}
