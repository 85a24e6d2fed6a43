//! A cluster with the distribution's Slurm or a site's, made by `tests/slurm/cluster`.

use std::ffi::OsString;
use std::io::{Write, stderr};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::{env, fs};

use cxi_test_kit::{Directory, skip};
use cxi_tests::node::{Run, client, cxi_mock, eventually, possible};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub(crate) const CXI: &str = env!("CARGO_BIN_EXE_test-cxi");

/// Names the installation of a site's Slurm.
const PREFIX: &str = "CXI_TEST_SLURM_PREFIX";

pub(crate) struct Cluster {
    process: Child,
    pub(crate) directory: Directory,
    pub(crate) node_names: Vec<String>,
    slurm: Slurm,
}

/// Directories of Slurm's programs.
struct Slurm {
    prefix: Option<OsString>,
    path: OsString,
}

impl Slurm {
    fn new(prefix: Option<OsString>) -> Self {
        let mut path = OsString::new();
        for place in ["bin", "sbin"] {
            if let Some(prefix) = &prefix {
                path.push(prefix);
                path.push(format!("/{place}:"));
            }
        }
        path.push(env::var_os("PATH").unwrap_or_default());
        Self { prefix, path }
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("PATH", &self.path).env_remove(PREFIX);
        command.envs(self.prefix.as_ref().map(|prefix| (PREFIX, prefix)));
        command
    }
}

impl Cluster {
    /// A cluster with these VNIs, the distribution's Slurm and our scripts; `None` if it cannot
    /// be one.
    pub(crate) fn start(vnis: &str) -> Option<Self> {
        Self::start_on("4 8", 1, vnis)
    }

    /// The same with nodes of these numbers of CPUs, and this many NICs on each.
    pub(crate) fn start_on(cpus: &str, nics: u32, vnis: &str) -> Option<Self> {
        Self::start_with(cpus, nics, vnis, &[], Slurm::new(None))
    }

    /// The same with the pool in an etcd, at URLs with commas between.
    pub(crate) fn start_with_etcd(vnis: &str, etcd: &str) -> Option<Self> {
        let etcd = [("CXI_SLURM_ETCD", etcd)];
        Self::start_with("4 8", 1, vnis, &etcd, Slurm::new(None))
    }

    /// A cluster with the distribution's Slurm, whose jobs a plugin runs that is not ours.
    pub(crate) fn of_foreign_plugin() -> Option<Self> {
        let foreign = [("CXI_SLURM_FOREIGN", client())];
        Self::start_with("4 8", 1, "1024", &foreign, Slurm::new(None))
    }

    /// A cluster with a site's Slurm, and its plugin in the place of our scripts.
    pub(crate) fn of_site(vnis: &str) -> Option<Self> {
        Self::of_site_with(vnis, "")
    }

    /// The same with more lines in `slurm.conf`.
    pub(crate) fn of_site_with(vnis: &str, conf: &str) -> Option<Self> {
        let Some(prefix) = env::var_os(PREFIX) else {
            skip(format_args!("{PREFIX} names no Slurm with switch/hpe_slingshot"));
            return None;
        };
        let conf = [("CXI_SLURM_CONF", conf)];
        Self::start_with("4 8", 1, vnis, &conf, Slurm::new(Some(prefix)))
    }

    fn start_with(
        cpus: &str,
        nics: u32,
        vnis: &str,
        more: &[(&str, &str)],
        slurm: Slurm,
    ) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            skip("Slurm's daemons run as root");
            return None;
        }
        for program in ["slurmctld", "slurmd", "munged"] {
            let found = slurm.command(program).arg("-V").output().is_ok();
            if !found {
                skip(format_args!("there is no {program}: apt-get install slurm-wlm munge"));
                return None;
            }
        }
        if !possible() {
            return None;
        }
        let directory = Directory::new();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("slurm/cluster");
        let process = slurm
            .command(script)
            // Until its standard input is closed.
            .args(["sh", "-c", "touch $DIR/ready; cat"])
            .envs([
                ("CXI", CXI),
                ("CXI_MOCK_SERVER", cxi_mock()),
                ("CXI_SLURM_CPUS", cpus),
                ("CXI_SLURM_VNIS", vnis),
            ])
            .envs(more.iter().copied())
            .env("CXI_SLURM_NICS", nics.to_string())
            // As many pools as a NIC has.
            .env("CXI_SLURM_GRES", "tlepool:3,lepool:15")
            .env("CXI_SLURM_PORT", free_ports().to_string())
            .env("DIR", directory.path())
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut cluster = Self {
            process,
            directory,
            node_names: (1..=cpus.split(' ').count()).map(|number| format!("n{number}")).collect(),
            slurm,
        };
        let ready = cluster.directory.path().join("ready");
        eventually("the cluster is ready", || {
            assert_eq!(cluster.process.try_wait().unwrap(), None, "the cluster has ended");
            ready.exists()
        });
        Some(cluster)
    }

    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let path = self.directory.path();
        let mut command = self.slurm.command(program);
        command
            .args(arguments)
            .current_dir(path)
            .env("DIR", path)
            .env("MOCK", cxi_mock())
            .env("CXI", CXI)
            .env("SLURM_CONF", path.join("slurm.conf"))
            .env("CXI_CONFIG", path.join("cxi/cxi.toml"));
        command
    }

    /// Appends to the settings of `cxi`, of which `[job]` is the last table.
    pub(crate) fn add_settings(&self, more: &str) {
        let file = self.directory.join("cxi/cxi.toml");
        let text = fs::read_to_string(&file).unwrap() + more;
        fs::write(file, text).unwrap();
    }

    /// Jobs get all that they ask for, or wait.
    pub(crate) fn set_strict(&self) {
        self.add_settings("mode = \"strict\"\n");
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Output {
        self.command(program, arguments).run()
    }

    /// The output of a program that must succeed.
    pub(crate) fn printed(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The number of a batch job that runs this script.
    pub(crate) fn batch(&self, options: &[&str], script: &str) -> String {
        let wrap = format!("--wrap={script}");
        let output = self.directory.join("job.%j");
        let all = [&["--parsable", "-o", &output, &wrap], options].concat();
        self.printed("sbatch", &all).trim().to_owned()
    }

    /// Returns the output of a batch job, when it has ended.
    pub(crate) fn ended(&self, job: &str) -> String {
        eventually("the job ends", || {
            let state = self.state(job);
            ["COMPLETED", "FAILED"].iter().any(|end| state.contains(&format!("JobState={end} ")))
        });
        fs::read_to_string(self.directory.join(&format!("job.{job}"))).unwrap_or_default()
    }

    pub(crate) fn state(&self, job: &str) -> String {
        self.printed("scontrol", &["show", "job", "--oneliner", job])
    }

    pub(crate) fn on(&self, node: &str, arguments: &[&str]) -> Output {
        let on = self.directory.join("on");
        self.run(&on, &[&[node], arguments].concat())
    }

    /// The services on a node, without the default ones.
    pub(crate) fn services(&self, node: &str) -> usize {
        let list = self.on(node, &[CXI, "--json", "service", "list"]);
        let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
        let services = list["services"].as_array().unwrap().iter();
        services.filter(|service| service["id"] != 1).count()
    }

    /// Those on all nodes.
    pub(crate) fn all_services(&self) -> usize {
        let nodes = self.node_names.iter();
        nodes.map(|node| self.services(node)).sum()
    }

    pub(crate) fn nodes(&self) -> String {
        self.printed("sinfo", &["--noheader", "--Node", "--format=%N:%t"]).replace('\n', " ")
    }

    /// Returns the reasons for which nodes are drained.
    pub(crate) fn reasons(&self) -> String {
        self.printed("sinfo", &["--noheader", "--list-reasons", "--format=%E"])
    }

    pub(crate) fn is_idle(&self) -> bool {
        let nodes = self.nodes();
        nodes.split_whitespace().all(|node| node.ends_with(":idle"))
    }

    /// VNIs that the controller could allocate now.
    pub(crate) fn free(&self) -> u64 {
        // The search for VNIs first looks for confirmations.
        let _ = self.run(CXI, &["job", "release", "none"]);
        let show = self.printed(CXI, &["--json", "vni", "show"]);
        let show: serde_json::Value = serde_json::from_str(&show).unwrap();
        show["free"].as_u64().unwrap()
    }

    pub(crate) fn health_check(&self, node: &str) {
        let name = format!("SLURMD_NODENAME={node}");
        let script = self.directory.join("cxi/slurm/health-check.sh");
        let output = self.on(node, &["env", &name, &script]);
        assert!(output.status.success(), "{output:?}");
    }

    /// Starts daemons, which outlive the command that starts them.
    pub(crate) fn start_daemon(&self, program: &str, arguments: &[&str]) {
        let program = self.directory.join(program);
        let quiet = || Stdio::null();
        let mut command = self.command(&program, arguments);
        let status = command.stdout(quiet()).stderr(quiet()).status().unwrap();
        assert!(status.success(), "{program} {arguments:?}");
    }

    /// The processes of this cluster that have a word in their command lines.
    pub(crate) fn processes(&self, word: &str) -> Vec<Pid> {
        let ours = format!("SLURM_CONF={}", self.directory.join("slurm.conf"));
        let scripts = self.directory.join("cxi");
        let nodes = format!("{}/n", self.directory.path().display());
        let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let path = entry.ok()?.path();
            let pid: i32 = path.file_name()?.to_str()?.parse().ok()?;
            let text = |name: &str| {
                let bytes = fs::read(path.join(name)).unwrap_or_default();
                String::from_utf8_lossy(&bytes).replace('\0', " ")
            };
            let line = text("cmdline");
            let environment = text("environ");
            // A slurmstepd writes its title over its environment; on a node all have its /run.
            let here = environment.contains(&ours)
                || environment.contains(&scripts)
                || line.contains(&scripts)
                || text("mountinfo").contains(&nodes);
            (here && line.contains(word)).then(|| Pid::from_raw(pid))
        });
        processes.collect()
    }

    /// Runs a job whose service on n2 stays busy, until that node is drained.
    pub(crate) fn drain_with_a_busy_service(&self) {
        self.control("n2", &["fault", "SVC_DESTROY:EBUSY"]);
        self.printed("srun", &["-N2", "true"]);
        eventually("the node is drained", || self.nodes() == "n1:idle n2:drain ");
    }

    pub(crate) fn control(&self, node: &str, arguments: &[&str]) {
        let node = self.directory.join(node);
        self.printed(cxi_mock(), &[&["ctl", "--dir", &node], arguments].concat());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
        // Tasks whose daemons were killed go on.
        for left in self.processes("") {
            let _ = kill(left, Signal::SIGKILL);
        }
        if std::thread::panicking() {
            for log in ["slurmctld", "slurmd.n1", "slurmd.n2"] {
                let text = fs::read_to_string(self.directory.path().join("log").join(log));
                let text = text.unwrap_or_default();
                let lines: Vec<&str> = text.lines().collect();
                let last = lines.iter().skip(lines.len().saturating_sub(12));
                let last: Vec<&str> = last.copied().collect();
                let _ = writeln!(stderr(), "--- {log}\n{}", last.join("\n"));
            }
        }
    }
}

/// The first of ten ports that are free.
fn free_ports() -> u16 {
    static NEXT: std::sync::atomic::AtomicU16 = std::sync::atomic::AtomicU16::new(0);
    loop {
        let next = NEXT.fetch_add(10, std::sync::atomic::Ordering::Relaxed);
        let first = 20_000 + u16::try_from(std::process::id() % 1000).unwrap() * 10 + next;
        if (first..first + 10).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return first;
        }
    }
}
