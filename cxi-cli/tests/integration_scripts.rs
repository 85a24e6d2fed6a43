//! The scripts of docs/integration, run as a scheduler runs them, on mock nodes. Commands of the
//! scheduler itself are played by a few lines of shell.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use common::{MockNode, Said};
use nix::unistd::geteuid;

fn scripts(scheduler: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs/integration")
        .join(scheduler)
}

/// A node with a scheduler's variables.
struct Node {
    mock: MockNode,
    scheduler: &'static str,
    variables: Vec<(&'static str, String)>,
}

impl Node {
    fn new(scheduler: &'static str) -> Self {
        Self {
            mock: MockNode::new(),
            scheduler,
            variables: Vec::new(),
        }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    fn bin(&self) -> PathBuf {
        self.mock.directory().join("bin")
    }

    /// Puts a program into the PATH of the scripts.
    fn program(&self, name: &str, text: &str) {
        fs::create_dir_all(self.bin()).unwrap();
        let path = self.bin().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, script: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Said {
        let cxi = Path::new(env!("CARGO_BIN_EXE_cxi")).parent().unwrap();
        let path = format!("{}:{}:/usr/bin:/bin", self.bin().display(), cxi.display());
        let mut command = Command::new(scripts(self.scheduler).join(script));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", path)
            .env("CXI_MOCK", self.mock.file())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .envs(variables.iter().copied());
        command.output().unwrap().into()
    }

    fn services(&self) -> usize {
        let list = self.mock.cxi(&["--json", "service", "list"]).json();
        list["services"].as_array().unwrap().len()
    }
}

fn flux(vnis: &str) -> Node {
    let library = scripts("flux").join("flux-job.sh");
    let node = Node::new("flux")
        .with("FLUX_JOB_ID", "ƒ3WqKLhmP")
        .with("FLUX_JOB_USERID", "5588")
        .with("CXI_FLUX_LIB", library.display().to_string());
    let event = format!(
        "{{\"timestamp\":1751386927.8,\"name\":\"cray-slingshot\",\"context\":{{\"vnis\":[{vnis}]}}}}"
    );
    node.program(
        "flux",
        &format!(
            "#!/bin/sh\ncase \"$1 $2\" in\n'job wait-event') echo '{event}' ;;\n'getattr rank') echo 3 \
             ;;\n'job info') echo R ;;\n'R decode') [ \"$3 $4\" = '--include=3 --count=core' ] && \
             echo 8 ;;\n*) exit 1 ;;\nesac\n"
        ),
    );
    node
}

#[test]
fn flux_prolog_task_epilog_housekeeping() {
    let node = flux("1024,1025");
    assert_eq!(
        node.run("prolog.sh", &[], &[]).done(),
        "Created service 2 on cxi0-1: for uid 5588, VNIs 1024,1025\n"
    );
    let busy = [
        ("CXI_MOCK_FAULT", "cxi1:SVC_DESTROY:EBUSY"),
        ("CXI_EPILOG_RETRY", "20ms"),
        ("CXI_HOUSEKEEPING_RETRY", "20ms"),
    ];
    // The epilog leaves what is busy to housekeeping, which drains the node by its exit code.
    let said = node.run("epilog.sh", &[], &busy);
    assert_eq!(said.code, 0);
    assert!(
        said.err.ends_with(
            "slingshot: services of ƒ3WqKLhmP are still busy, housekeeping tries again\n"
        ),
        "{}",
        said.err
    );
    assert_eq!(node.run("housekeeping.sh", &[], &busy).code, 4);
    assert_eq!(
        node.run("housekeeping.sh", &[], &[]).done(),
        "cxi1: service 2 (uid 5588, VNIs 1024,1025): destroyed\n"
    );
    assert_eq!(node.services(), 2);
    assert_eq!(node.run("housekeeping.sh", &[], &[]).code, 0);
    assert_eq!(node.run("epilog.sh", &[], &[]).code, 0);

    let broken = [("CXI_MOCK_FAULT", "SVC_LIST_GET:EIO")];
    assert_eq!(node.run("epilog.sh", &[], &broken).code, 1);
    node.program("flux", "#!/bin/sh\nexit 1\n");
    for script in ["prolog.sh", "epilog.sh", "housekeeping.sh"] {
        node.run(script, &[], &[]).refused(
            1,
            "slingshot: no event cray-slingshot of ƒ3WqKLhmP: is the jobtap plugin loaded?",
        );
    }
}

#[test]
fn flux_task_environment_and_jobs_without_slingshot() {
    let uid = geteuid().as_raw().to_string();
    let node = flux("1024").with("FLUX_JOB_USERID", uid);
    node.run("prolog.sh", &[], &[]).done();
    let task = ["sh", "-c", "echo $SLINGSHOT_VNIS $SLINGSHOT_SVC_IDS"];
    assert_eq!(
        node.run("with-slingshot.sh", &task, &[]).done(),
        "1024 2,2\n"
    );

    let off = flux("");
    for script in ["prolog.sh", "epilog.sh", "housekeeping.sh"] {
        assert_eq!(off.run(script, &[], &[]).done(), "");
    }
    assert_eq!(
        off.run("with-slingshot.sh", &["echo", "task"], &[]).done(),
        "task\n"
    );
}

#[test]
fn flux_housekeeping_clears_a_node_that_jobs_do_not_share() {
    let node = flux("1024");
    node.mock
        .cxi(&["service", "create", "-d", "all", "--uid=9", "--vni=1030"])
        .done();
    assert_eq!(node.run("housekeeping.sh", &[], &[]).code, 0);
    assert_eq!(node.services(), 4);
    let pool = [("CXI_CLEAN_POOL", "1024-65535")];
    assert_eq!(node.run("housekeeping.sh", &[], &pool).code, 0);
    assert_eq!(node.services(), 2);
}

/// Nodes of one Slurm job, with the pool on a file system that they share.
fn slurm(pool: &Path, name: &str) -> Node {
    let node = Node::new("slurm");
    let run = node.mock.directory().join("run").display().to_string();
    node.with("SLURM_JOB_ID", "4711")
        .with("SLURM_JOB_UID", geteuid().as_raw().to_string())
        .with("SLURM_CPUS_ON_NODE", "16")
        .with("SLURMD_NODENAME", name)
        .with("CXI_RUN", run)
        .with("CXI_VNI_POOL", pool.display().to_string())
}

fn free(mock: &MockNode, pool: &Path) -> u64 {
    let option = format!("--pool={}", pool.display());
    mock.cxi(&["vni", &option, "--json", "show"]).json()["free"]
        .as_u64()
        .unwrap()
}

#[test]
fn slurm_nodes_share_vnis_that_are_free_after_the_last_epilog() {
    let shared = MockNode::new();
    let pool = shared.directory().join("pool.json");
    let option = format!("--pool={}", pool.display());
    shared
        .cxi(&["vni", &option, "configure", "1024-1027"])
        .done();
    let (one, two) = (slurm(&pool, "n1"), slurm(&pool, "n2"));
    let uid = geteuid();
    for node in [&one, &two] {
        assert_eq!(
            node.run("prolog.sh", &[], &[]).done(),
            format!("Created service 2 on cxi0-1: for uid {uid}, VNI 1024\n")
        );
        assert_eq!(
            node.run("task-prolog.sh", &[], &[]).done(),
            "export SLINGSHOT_VNIS=1024\nexport SLINGSHOT_DEVICES=cxi0,cxi1\nexport \
             SLINGSHOT_SVC_IDS=2,2\nexport SLINGSHOT_TCS=0xa\n"
        );
    }
    assert_eq!(free(&shared, &pool), 3);

    one.run("epilog.sh", &[], &[]).done();
    assert_eq!(one.services(), 2);
    assert_eq!(free(&shared, &pool), 3, "the other node still has it");

    // A node that fails is drained, and the VNI stays with the job.
    let busy = [
        ("CXI_MOCK_FAULT", "SVC_DESTROY:EBUSY"),
        ("CXI_EPILOG_RETRY", "20ms"),
    ];
    assert_eq!(two.run("epilog.sh", &[], &busy).code, 4);
    assert_eq!(free(&shared, &pool), 3);
    two.run("epilog.sh", &[], &[]).done();
    assert_eq!(free(&shared, &pool), 4);
    assert_eq!(two.run("epilog.sh", &[], &[]).done(), "", "again");
}

#[test]
fn slurm_health_check_spares_jobs_that_run() {
    let shared = MockNode::new();
    let pool = shared.directory().join("pool.json");
    let option = format!("--pool={}", pool.display());
    shared
        .cxi(&["vni", &option, "configure", "1024-1027"])
        .done();
    let node = slurm(&pool, "n1");
    assert_eq!(node.run("health-check.sh", &[], &[]).code, 0);
    node.run("prolog.sh", &[], &[]).done();
    node.mock
        .cxi(&["service", "create", "-d", "all", "--uid=9", "--vni=1030"])
        .done();
    node.run("health-check.sh", &[], &[]).done();
    assert_eq!(node.services(), 4, "the job's and the default ones");
    // The job's files went with the node's memory.
    fs::remove_dir_all(node.mock.directory().join("run")).unwrap();
    node.run("health-check.sh", &[], &[]).done();
    assert_eq!(node.services(), 2);
}

/// A script does not try again when it gets code 4: its commands wait, in the order of arrival, as
/// long as `CXI_WAIT` says.
#[test]
fn slurm_scripts_wait_for_the_pool_as_long_as_they_are_told() {
    let shared = MockNode::new();
    let pool = shared.directory().join("pool.json");
    let option = format!("--pool={}", pool.display());
    shared
        .cxi(&["vni", &option, "configure", "1024-1027"])
        .done();
    let lock = fs::File::open(shared.directory().join("pool.json.lock")).unwrap();
    lock.lock().unwrap();
    let nodes: Vec<Node> = (0..6).map(|n| slurm(&pool, &format!("n{n}"))).collect();
    let said = nodes[0].run("prolog.sh", &[], &[("CXI_WAIT", "30ms")]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("for 30ms"), "{}", said.err);
    assert_eq!(nodes[0].services(), 2, "the default ones");
    thread::scope(|scope| {
        let run = |node| scope.spawn(move || Node::run(node, "prolog.sh", &[], &[]));
        let prologs: Vec<_> = nodes.iter().map(run).collect();
        thread::sleep(Duration::from_millis(200));
        assert!(!prologs.iter().any(thread::ScopedJoinHandle::is_finished));
        drop(lock);
        for prolog in prologs {
            prolog.join().unwrap().done();
        }
    });
    assert_eq!(
        free(&shared, &pool),
        3,
        "one VNI for all of the job's nodes"
    );
}
