//! A site's own Slurm with its plugin `switch/hpe_slingshot`, on two mock nodes: what others'
//! programs do with the mock, and what `cxi` reports about them.

use std::fs;
use std::time::SystemTime;

use nix::sys::signal::{Signal, kill};
use serde_json::Value;

use crate::cluster::{CXI, Cluster};
use cxi_tests::node::eventually;

/// The values of a variable in the tasks' environments, sorted.
fn values<'a>(output: &'a str, name: &str) -> Vec<&'a str> {
    let lines = output.lines().filter_map(|line| line.split_once('='));
    let values = lines.filter(|(variable, _)| *variable == name);
    let mut values: Vec<&str> = values.map(|(_, value)| value).collect();
    values.sort_unstable();
    values
}

fn vnis(output: &str) -> Vec<&str> {
    values(output, "SLINGSHOT_VNIS")
}

fn nothing_is_left(cluster: &Cluster) {
    eventually("both nodes are clean", || cluster.all_services() == 0);
    eventually("both nodes are idle", || cluster.is_idle());
}

#[test]
fn each_step_has_a_vni_of_its_own_on_all_its_nodes() {
    let Some(cluster) = Cluster::of_site("1024-1039") else { return };
    let two = "srun --overlap -N2 -n3 env & srun --overlap -N2 -n3 env; wait";
    let job = cluster.batch(&["-N2", "-n3", "--network=job_vni"], two);
    let output = cluster.ended(&job);
    let vnis_of_job = vnis(&output);
    let [first, .., last] = vnis_of_job[..] else { panic!("{output}") };
    assert_eq!(vnis_of_job, [first, first, first, last, last, last]);
    let (first, last) = (first.split_once(',').unwrap(), last.split_once(',').unwrap());
    assert_ne!(first.0, last.0, "VNIs of steps");
    assert_eq!(first.1, last.1, "the job's");
    assert_eq!(values(&output, "SLINGSHOT_DEVICES"), ["cxi0"; 6]);
    assert_eq!(values(&output, "SLINGSHOT_TCS"), ["0xa"; 6]);

    let env = |options: &[&str]| cluster.printed("srun", &[options, &["env"]].concat());
    assert_eq!(vnis(&env(&["-N1"])).len(), 1);
    assert!(vnis(&env(&["-N2", "--network=no_vni"])).is_empty());
    let output = env(&["-N1", "--network=tcs=DEDICATED_ACCESS"]);
    assert_eq!(values(&output, "SLINGSHOT_TCS"), ["0x1"]);
    let components = vnis(&env(&["-N1", "-n1", "env", ":", "-N1", "-n2"])).len();
    assert_eq!(components, 3, "heterogeneous");
    nothing_is_left(&cluster);
}

#[test]
fn a_step_that_finds_too_little_fails_and_others_run() {
    let Some(cluster) = Cluster::of_site("1024-1039") else { return };
    let step = "srun --overlap -n1 --network=res_txqs=600";
    let script = format!(
        "{step} sh -c 'touch $DIR/runs; until [ -e $DIR/tried ]; do sleep 0.1; done; echo first' &\n\
         until [ -e $DIR/runs ]; do sleep 0.1; done; {step} echo second || echo code $?; \
         touch $DIR/tried; wait"
    );
    let job = cluster.batch(&["-N1", "-n1"], &script);
    let output = cluster.ended(&job);
    assert!(output.contains("\ncode ") && output.contains("first\n"), "{output}");
    assert!(!output.contains("second\n"), "{output}");
    nothing_is_left(&cluster);
}

/// As `LimitPolicy::slurm` has it: what system services hold makes a reservation smaller.
#[test]
fn a_step_gets_what_system_services_leave() {
    let Some(cluster) = Cluster::of_site("1024-1039") else { return };
    let on = |arguments: &[&str]| {
        let done = cluster.on("n1", &[&["env", "CXI_TLES=true", CXI], arguments].concat());
        assert!(done.status.success(), "{done:?}");
        serde_json::from_slice::<Value>(&done.stdout).unwrap()
    };
    let limit = "--limit=txqs=1019:1019";
    let service = ["--system", "--uid=0", "--vni=9", limit];
    let made = on(&[&["--json", "service", "create"], &service[..]].concat());
    let system = made["created"][0]["service"].to_string();
    let plan = ["--json", "job", "plan", "--policy=slurm", "--cores=4"];
    let plan = on(&plan)["plans"][0]["limits"].take();
    assert_eq!(plan["TXQs"], serde_json::json!({"res": 5, "max": 5}));
    // Four CPUs would have eight.
    let step = "srun -n1 sh -c 'touch $DIR/runs; until [ -e $DIR/end ]; do sleep 0.1; done'";
    let job = cluster.batch(&["-wn1", "-n1", "-c4"], step);
    let path = |name| cluster.directory.path().join(name);
    eventually("the step runs", || path("runs").exists());
    let services = on(&["--json", "service", "list"]);
    fs::write(path("end"), "").unwrap();
    cluster.ended(&job);
    let found = services["services"].as_array().unwrap();
    let found = found.iter().find(|one| one["vnis"][0] == 1024).unwrap();
    for limit in found["limits"].as_array().unwrap() {
        let planned = &plan[limit["name"].as_str().unwrap()];
        assert_eq!([&limit["res"], &limit["max"]], [&planned["res"], &planned["max"]], "{limit}");
    }
    on(&["--json", "service", "destroy", &system]);
    nothing_is_left(&cluster);
}

#[test]
fn a_service_that_stays_busy_drains_its_node() {
    let Some(cluster) = Cluster::of_site("1024-1039") else { return };
    cluster.drain_with_a_busy_service();
    assert_eq!((cluster.services("n1"), cluster.services("n2")), (0, 1));
    cluster.control("n2", &["clear-faults"]);
    clean(&cluster, "n2");
    cluster.printed("scontrol", &["update", "NodeName=n2", "State=RESUME"]);
    nothing_is_left(&cluster);
}

/// Cleans a node where no job runs, as an administrator does.
fn clean(cluster: &Cluster, node: &str) {
    let clean = ["job", "clean", "--none-live", "--foreign", "--vni-pool=1024-1039"];
    let clean = cluster.on(node, &[&[CXI], &clean[..]].concat());
    assert!(clean.status.success(), "{clean:?}");
}

#[test]
fn daemons_that_are_killed_during_a_step() {
    let Some(cluster) = Cluster::of_site("1024-1039") else { return };
    let step = "srun -n2 sh -c 'touch $DIR/runs.$SLURM_PROCID; until [ -e $DIR/end ]; do sleep 0.1; done; env'";
    let start = || {
        let job = cluster.batch(&["-N2", "-n2"], step);
        let path = |name| cluster.directory.path().join(name);
        eventually("both tasks run", || path("runs.0").exists() && path("runs.1").exists());
        job
    };
    let daemon = |name: &str| {
        let [pid] = cluster.processes(name)[..] else {
            panic!("{name}: {:?}", cluster.processes(name));
        };
        kill(pid, Signal::SIGKILL).unwrap();
    };
    // slurmd and slurmctld come back and know their steps. The VNIs that a slurmctld has not saved when
    // it is killed it assigns again.
    let job = start();
    let now = SystemTime::now();
    cluster.printed("scontrol", &["update", &format!("JobId={job}"), "Comment=saved"]);
    let state = cluster.directory.path().join("state/job_state");
    eventually("slurmctld has saved the step", || {
        let saved = fs::metadata(&state).and_then(|file| file.modified());
        saved.is_ok_and(|saved| saved > now)
    });
    daemon("slurmd -D -N n2");
    cluster.start_daemon("slurmd", &["n2"]);
    daemon("slurmctld -D");
    cluster.start_daemon("slurmctld", &[]);
    eventually("the nodes are back", || !cluster.nodes().contains('*'));
    let other = cluster.printed("srun", &["-N2", "-n2", "env"]);
    fs::write(cluster.directory.join("end"), "").unwrap();
    let output = cluster.ended(&job);
    let (other, own) = (vnis(&other), vnis(&output));
    assert_eq!((own.len(), other.len()), (2, 2), "{output}");
    assert!(own[0] == own[1] && other[0] == other[1], "{own:?} {other:?}");
    nothing_is_left(&cluster);

    // What a slurmstepd created stays when it is killed, and is found.
    for file in ["end", "runs.0", "runs.1"] {
        fs::remove_file(cluster.directory.join(file)).unwrap();
    }
    let job = start();
    let step = format!("slurmstepd: [{job}.0]");
    let steps = cluster.processes(&step);
    assert_eq!(steps.len(), 2, "{step}");
    kill(steps[0], Signal::SIGKILL).unwrap();
    cluster.printed("scancel", &[&job]);
    eventually("both nodes are idle", || cluster.is_idle());
    eventually("one service is left", || cluster.all_services() == 1);
    let left = if cluster.services("n1") == 1 { "n1" } else { "n2" };
    clean(&cluster, left);
    nothing_is_left(&cluster);
}

/// One service of a step, from inside it.
const SERVICES: &str = "$CXI --json service list";

fn step_service(output: &str) -> Value {
    let start = output.find('{').unwrap_or_else(|| panic!("{output}"));
    let list: Value = serde_json::from_str(&output[start..]).unwrap();
    let services = list["services"].as_array().unwrap();
    let found = services.iter().find(|service| service["id"] != 1);
    found.unwrap_or_else(|| panic!("{list}")).clone()
}

fn limit(service: &Value, name: &str) -> (u64, u64) {
    let limits = service["limits"].as_array().unwrap();
    let found = limits.iter().find(|limit| limit["name"] == name).unwrap();
    (found["res"].as_u64().unwrap(), found["max"].as_u64().unwrap())
}

/// Steps behave as the guide says of the plugin, where the scripts do otherwise.
#[test]
fn steps_have_options_of_their_own_and_defaults_differ() {
    let conf = "SwitchParameters=vnis=1024-1039";
    let Some(cluster) = Cluster::of_site_with("1024-1039", conf) else { return };
    // Without parameters for them, neither single nodes nor jobs have a VNI.
    let environment = cluster.printed("srun", &["-N1", "env"]);
    assert!(vnis(&environment).is_empty(), "{environment}");
    for option in ["job_vni", "single_node_vni"] {
        let refused = cluster.run("srun", &["-N2", &format!("--network={option}"), "true"]);
        assert!(!refused.status.success(), "{option}");
    }
    // Options of a step, but not its traffic classes.
    let script = format!(
        "srun --overlap -N2 -n2 sh -c '[ $SLURM_PROCID != 0 ] || {SERVICES}' > $DIR/one\n\
         srun --overlap -N2 -n2 --network=depth=3,tcs=DEDICATED_ACCESS sh -c \
         '[ $SLURM_PROCID != 0 ] || {{ echo $SLINGSHOT_TCS; {SERVICES}; }}' > $DIR/two\n\
         srun --overlap -N2 -n2 --network=no_vni env > $DIR/three\n\
         srun --overlap -N2 -n2 --network=disable_rdzv_get \
         cat /sys/class/cxi_user/cxi0/device/properties/rdzv_get_en > $DIR/four\n\
         srun --overlap -N2 -n2 cat /sys/class/cxi_user/cxi0/device/properties/rdzv_get_en > $DIR/five\n\
         srun --overlap -N2 -n2 ls $DIR/n1.spool/switch_hpe_slingshot > $DIR/six"
    );
    cluster.ended(&cluster.batch(&["-N2", "-n2"], &script));
    let read = |name: &str| fs::read_to_string(cluster.directory.join(name)).unwrap();
    let (one, two) = (read("one"), read("two"));
    assert_eq!(limit(&step_service(&one), "TXQs"), (2, 1024));
    // Each step takes a pool of TLEs, which has eight or more.
    assert_eq!(limit(&step_service(&one), "TLEs"), (8, 8));
    assert_eq!(limit(&step_service(&two), "TXQs").0, 6);
    assert!(two.starts_with("0xa\n"), "{two}");
    assert!(vnis(&read("three")).is_empty());
    assert_eq!((read("four"), read("five")), ("0\n0\n".into(), "1\n1\n".into()));
    assert!(read("six").contains("apinfo."), "{}", read("six"));
    nothing_is_left(&cluster);

    // A step without a NIC on one of its nodes starts there without a service.
    cluster.control("n2", &["unplug", "0"]);
    let environment = cluster.printed("srun", &["-N2", "-n2", "env"]);
    assert_eq!(vnis(&environment).len(), 1, "{environment}");
}

/// A VNI is free when its step has ended, whether or not its nodes have destroyed its services.
#[test]
fn a_vni_is_assigned_again_while_a_service_has_it() {
    let conf = "SwitchParameters=vnis=1-2,destroy_retries=2,single_node_vni=all";
    let Some(cluster) = Cluster::of_site_with("1-2", conf) else { return };
    cluster.control("n2", &["fault", "SVC_DESTROY:EBUSY"]);
    let step = |options: &[&str]| {
        let environment = cluster.printed("srun", &[options, &["env"]].concat());
        vnis(&environment)[0].to_owned()
    };
    let first = step(&["-N2", "-n2"]);
    eventually("the service is left", || cluster.services("n2") == 1);
    // Also those of the default service.
    let others = [step(&["-N1", "-wn1"]), step(&["-N1", "-wn1"])];
    assert!(others.contains(&first), "{first} {others:?}");
    assert!(others.contains(&"1".to_owned()), "{others:?}");
    cluster.control("n2", &["clear-faults"]);
    let clean = ["job", "clean", "--none-live", "--foreign", "--vni-pool=1-2"];
    cluster.on("n2", &[&[CXI], &clean[..]].concat());
}
