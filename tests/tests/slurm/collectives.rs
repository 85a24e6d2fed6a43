//! Hardware collectives of jobs in a real Slurm, with the scripts and with Slurm's own plugin, on a mock
//! fabric manager.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use cxi_fabric_manager::model::TreeRequest;
use cxi_fabric_manager::{Endpoint, Fault};
use cxi_site::collectives::Certificate;
use cxi_site::fabric::{Http, HttpRequest, HttpTransport as _};
use cxi_test_kit::FabricManager;
use cxi_tests::node::eventually;

use crate::cluster::Cluster;

/// A fabric manager whose password Slurm reads.
fn fabric_manager() -> FabricManager {
    let manager = FabricManager::start();
    // SlurmUser reads it: this user if there is one, or root.
    let password = manager.files.join("passwd");
    let _ = Command::new("chown").args(["slurm", &password]).stderr(Stdio::null()).status();
    fs::set_permissions(manager.files.path(), fs::Permissions::from_mode(0o755)).unwrap();
    manager
}

fn trees(manager: &FabricManager) -> usize {
    manager.state().roots.len()
}

/// Creates a tree as libfabric does, with a task's environment.
fn make_tree(manager: &FabricManager, environment: &str) {
    let get = |name: &str| {
        let start = format!("FI_CXI_COLL_{name}=");
        let mut values = environment.lines().filter_map(|line| line.strip_prefix(&start));
        values.next().unwrap_or_else(|| panic!("{name} in {environment}"))
    };
    assert_eq!(get("FABRIC_MGR_URL"), manager.multicasts_url());
    let nics = [0x14433, 0x14434];
    let body = TreeRequest::of_libfabric(get("JOB_ID"), get("JOB_STEP_ID"), &nics, 1024);
    let body = serde_json::to_string(&body).unwrap();
    let bearer = format!("Bearer {}", get("MCAST_TOKEN"));
    let request = HttpRequest::post(get("FABRIC_MGR_URL"), Some(&bearer), &body);
    let http = Http::new(&Certificate::Unverified).unwrap();
    let made = http.send(&request, Duration::from_secs(5)).unwrap();
    assert_eq!(made.status, 200);
}

/// A step that waits; the first task's environment is in a file.
fn step() -> &'static str {
    "srun -N2 -n2 sh -c '[ $SLURM_PROCID != 0 ] || env > $DIR/part.$SLURM_STEP_ID; \
     [ $SLURM_PROCID != 0 ] || mv $DIR/part.$SLURM_STEP_ID $DIR/env.$SLURM_STEP_ID; \
     until [ -e $DIR/go.$SLURM_STEP_ID ]; do sleep 0.1; done'"
}

/// Two steps, one after the other, leave a tree each.
fn steps_have_trees_and_leave_none(cluster: &Cluster, manager: &FabricManager, options: &[&str]) {
    let options = [&["-N2", "-n2"], options].concat();
    let job = cluster.batch(&options, &format!("{}; {}", step(), step()));
    for number in ["0", "1"] {
        let file = cluster.directory.join(&format!("env.{number}"));
        eventually("the step runs", || fs::exists(&file).unwrap());
        assert_eq!(trees(manager), 0, "before step {number}");
        let environment = fs::read_to_string(file).unwrap();
        assert!(environment.contains(&format!("FI_CXI_COLL_JOB_STEP_ID={number}\n")));
        assert!(environment.contains(&format!("FI_CXI_COLL_JOB_ID=mock-{job}\n")));
        assert!(environment.contains("FI_CXI_HWCOLL_ADDRS_PER_JOB=4\n"));
        make_tree(manager, &environment);
        assert_eq!(trees(manager), 1);
        fs::write(cluster.directory.join(&format!("go.{number}")), "").unwrap();
    }
    cluster.ended(&job);
    eventually("the reservation is gone", || manager.state().is_quiet());
    eventually("the nodes are clean", || cluster.all_services() == 0);
}

#[test]
fn the_scripts_reserve_trees_for_a_job_and_free_those_of_each_step() {
    let Some(cluster) = Cluster::start("1024-1027") else { return };
    let manager = fabric_manager();
    let more = format!(
        "[collectives]\ntrees = 4\nmin-nodes = 2\n[fabric-manager]\nurl = \"{}\"\ncluster = \"mock\"\n\
         auth = \"basic\"\nauth-dir = \"{}\"\n",
        manager.url(),
        manager.files.path().display()
    );
    cluster.add_settings(&more);
    steps_have_trees_and_leave_none(&cluster, &manager, &[]);

    // Software can do what the fabric does not.
    manager.inject(Fault::status(507).on(Endpoint::CreateJob));
    let job = cluster.batch(&["-N2", "-n2"], "srun -n1 env");
    let output = cluster.ended(&job);
    assert!(output.contains("SLINGSHOT_VNIS="), "{output}");
    assert!(!output.contains("FI_CXI_COLL_JOB_ID="), "{output}");
    let state = cluster.state(&job);
    assert!(
        state.contains(
            "AdminComment=slingshot: warning: the job starts without hardware collectives"
        ),
        "{state}"
    );
}

#[test]
fn the_plugin_reserves_trees_for_jobs_with_a_step_manager() {
    let manager = fabric_manager();
    let conf = format!(
        "SwitchParameters=vnis=1024-1039,job_vni=user,hwcoll_addrs_per_job=4,hwcoll_num_nodes=2,\
         fm_url={},fm_auth=BASIC,fm_authdir={}\nSlurmctldParameters=enable_stepmgr\n\
         PrologFlags=contain",
        manager.url(),
        manager.files.path().display()
    );
    let Some(cluster) = Cluster::of_site_with("1024-1039", &conf) else { return };
    steps_have_trees_and_leave_none(&cluster, &manager, &["--network=job_vni"]);

    // The step fails.
    manager.inject(Fault::status(507).on(Endpoint::CreateJob));
    let failed = "srun -N2 -n2 echo began || echo failed";
    let output = cluster.ended(&cluster.batch(&["-N2", "-n2"], failed));
    assert!(output.contains("failed\n") && !output.contains("began"), "{output}");
}
