//! Kills daemons and scripts at random while jobs run.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Write as _, stderr};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};

use crate::cluster::{CXI, Cluster};
use cxi_test_kit::{Random, full};
use cxi_tests::node::eventually;

/// Script of a task: it reports if its VNI is no longer on the node.
const TASK: &str = "echo >> $DIR/ran; for i in 1 2 3; do sleep 0.1; $CXI service list | grep -qw $SLINGSHOT_VNIS || \
                    echo $SLURM_JOB_ID $SLINGSHOT_VNIS >> $DIR/lost; done";

/// Words in the command lines of the processes to kill.
const VICTIMS: [&str; 8] = [
    "slurmstepd",
    "slurmd -D",
    "slurmctld -D",
    "/slurm/prolog.sh",
    "/slurm/epilog.sh",
    "/slurm/prolog-slurmctld.sh",
    "/slurm/epilog-slurmctld.sh",
    " job ",
];

fn is_dead(cluster: &Cluster, daemon: &str) -> bool {
    let file = cluster.directory.path().join("pids").join(daemon);
    let pid = fs::read_to_string(file).unwrap();
    !Path::new("/proc").join(pid.trim()).join("exe").exists()
}

/// It says what to do about Slurm's own reasons for draining a node or marking it down.
const GUIDE: &str = include_str!("../../../docs/integration/slurm.md");

/// Restarts what was killed, as systemd does, and resumes nodes whose reason an administrator
/// can act on. Returns how often each reason was given.
fn repair(cluster: &Cluster, reasons: &mut BTreeMap<String, u32>) {
    if is_dead(cluster, "slurmctld") {
        cluster.start_daemon("slurmctld", &[]);
    }
    for node in &cluster.node_names {
        if is_dead(cluster, &format!("slurmd.{node}")) {
            cluster.start_daemon("slurmd", &[node]);
        }
    }
    let out = cluster.run("sinfo", &["--noheader", "--Node", "--format=%N|%t|%E"]);
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        let [node, state, reason] = line.split('|').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        if !state.contains("drain") && !state.contains("drng") && !state.contains("down") {
            continue;
        }
        let ours = reason.strip_prefix("slingshot: ");
        let says = ours.map_or_else(
            || GUIDE.contains(&format!("`{reason}`")),
            |text| text.contains("error: "),
        );
        assert!(says, "{line}");
        *reasons.entry(reason.to_owned()).or_default() += 1;
        let node = format!("NodeName={node}");
        cluster.run("scontrol", &["update", &node, "State=RESUME"]);
    }
}

/// Returns the number of jobs that Slurm has. Those that it keeps waiting after a failed launch,
/// for two minutes or until they are released, may start; those whose daemons are gone, which it
/// takes for running, end.
fn queue(cluster: &Cluster) -> usize {
    let queue = cluster.run("squeue", &["--noheader", "--format=%A|%T|%r|%M"]);
    let queue = String::from_utf8_lossy(&queue.stdout).into_owned();
    let jobs: Vec<Vec<&str>> = queue.lines().map(|line| line.split('|').collect()).collect();
    let those = |chosen: fn(&[&str]) -> bool| -> Vec<&str> {
        let chosen = jobs.iter().filter(|job| job.len() == 4 && chosen(job));
        chosen.filter_map(|job| job.first().copied()).collect()
    };
    let later = those(|job| job[2] == "BeginTime");
    if !later.is_empty() {
        let later = format!("JobId={}", later.join(","));
        cluster.run("scontrol", &["update", &later, "StartTime=now"]);
    }
    let held = those(|job| job[2].to_lowercase().contains("held"));
    if !held.is_empty() {
        cluster.run("scontrol", &["release", &held.join(",")]);
    }
    // For a minute or longer.
    let stuck = those(|job| job[1] == "RUNNING" && !job[3].starts_with("0:"));
    if !stuck.is_empty() {
        cluster.run("scancel", &stuck);
    }
    jobs.len()
}

/// Jobs that run have different VNIs.
fn no_vni_twice(cluster: &Cluster) {
    let list = cluster.run(CXI, &["--json", "job", "list", "--controller"]);
    let Ok(list) = serde_json::from_slice::<serde_json::Value>(&list.stdout) else {
        // A record went while they were read.
        return;
    };
    let jobs = list["jobs"].as_array().unwrap().iter();
    let vnis = jobs.filter_map(|job| job["vnis"].as_array()).flatten();
    let mut vnis: Vec<u64> = vnis.filter_map(serde_json::Value::as_u64).collect();
    let all = vnis.len();
    vnis.sort_unstable();
    vnis.dedup();
    assert_eq!(vnis.len(), all, "{list}");
}

/// Files below a directory that all belong to jobs.
fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let entries = entries.map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .filter(|path| ![".lock", ".cleaned"].iter().any(|name| path.ends_with(name)))
        .collect()
}

/// At full length four nodes with two NICs each, 500 jobs and 200 kills.
#[test]
fn nothing_is_lost_or_left_whatever_is_killed() {
    let (cpus, kills, jobs) = if full() { ("4 4 4 4", 200, 500) } else { ("2 2", 8, 20) };
    let Some(cluster) = Cluster::start_on(cpus, 2, "1024-1063") else { return };
    let mut random = Random::new(20_261_122);
    let (mut killed, mut submitted) = (0, 0);
    let mut reasons = BTreeMap::new();
    let limit = Instant::now() + Duration::from_secs(if full() { 3600 } else { 180 });
    let ran = || {
        let ran = fs::read_to_string(cluster.directory.join("ran")).unwrap_or_default();
        ran.lines().count()
    };
    while killed < kills || submitted < jobs || ran() <= jobs / 2 {
        assert!(Instant::now() < limit, "{killed} kills, {submitted} jobs");
        repair(&cluster, &mut reasons);
        let nodes = ["-N1", "-N2"][random.below(2)];
        let task = format!("--wrap=srun sh -c '{TASK}'");
        if queue(&cluster) < 12
            && cluster.run("sbatch", &["-o", "/dev/null", nodes, "-n2", &task]).status.success()
        {
            submitted += 1;
        }
        // Spread over the jobs.
        if killed * jobs < kills * submitted && random.below(2) == 0 {
            let victims = cluster.processes(VICTIMS[random.below(VICTIMS.len())]);
            if !victims.is_empty()
                && kill(victims[random.below(victims.len())], Signal::SIGKILL).is_ok()
            {
                killed += 1;
            }
        }
        no_vni_twice(&cluster);
        sleep(Duration::from_millis(50));
    }
    cluster.run("scancel", &["--user=root"]);
    eventually("all jobs end", || {
        repair(&cluster, &mut reasons);
        cluster.run("scancel", &["--user=root"]);
        sleep(Duration::from_millis(200));
        let queue = cluster.run("squeue", &["--noheader"]);
        queue.status.success() && queue.stdout.is_empty()
    });
    let lost = fs::read_to_string(cluster.directory.join("lost")).unwrap_or_default();
    assert_eq!(lost, "", "live jobs lost services");
    let ran = ran();
    let _ = writeln!(
        stderr(),
        "{killed} kills, {submitted} jobs, {ran} tasks began; reasons: {reasons:#?}"
    );
    // One cleanup of each daemon's start, and nothing is left.
    let start = cluster.directory.join("cxi/slurm/sweep.sh");
    assert!(cluster.run(&start, &[]).status.success());
    for node in &cluster.node_names {
        cluster.health_check(node);
        let records = cluster.directory.path().join(format!("{node}.run/jobs"));
        assert!(files(&records).is_empty(), "{:?}", files(&records));
    }
    assert_eq!((cluster.all_services(), cluster.free()), (0, 40));
    for jobs in ["shared/running", "shared/ended"] {
        let records = files(&cluster.directory.path().join(jobs));
        assert!(records.is_empty(), "{records:?}");
    }
}
