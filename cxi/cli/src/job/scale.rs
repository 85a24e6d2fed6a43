//! Ten thousand nodes, simulated: what they and the controller do to each other.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser as _;
use cxi_job::{JobId, NodeName};
use tempfile::TempDir;

use super::controller::{decisions, release, reserve};
use crate::cli::{Cli, Command};
use crate::job::cli::JobCommand;
use crate::vni;

const NODES: u32 = 10_000;

/// A controller with a pool in a directory of its own.
struct Controller {
    directory: TempDir,
}

impl Controller {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().display();
        let settings = format!(
            "[pool]\nfile = \"{path}/pool.json\"\n[controller]\nrecords = \"{path}/decisions\"\n\
             wait = \"0s\"\n"
        );
        fs::write(directory.path().join("cxi.toml"), settings).unwrap();
        let controller = Self { directory };
        let cli = controller.parse("vni configure 1024-65535");
        let Command::Vni(arguments) = &cli.command else {
            unreachable!()
        };
        vni::run(arguments, &cli.common).unwrap();
        controller
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn parse(&self, words: &str) -> Cli {
        let config = self.path("cxi.toml").display().to_string();
        let words = ["cxi", "--config", &config]
            .into_iter()
            .chain(words.split(' '));
        let mut cli = Cli::try_parse_from(words).unwrap();
        cli.common.complete().unwrap();
        cli
    }

    fn reserve(&self, job: u32, nodes: u32) {
        let cli = self.parse(&format!(
            "job reserve {job} --uid 1000 --nodes n[1-{nodes}]"
        ));
        let Command::Job(command) = &cli.command else {
            unreachable!()
        };
        let JobCommand::Reserve(arguments) = &**command else {
            unreachable!()
        };
        reserve(arguments, &cli.common).unwrap();
    }

    fn release(&self, job: u32) {
        let cli = self.parse(&format!("job release {job}"));
        let Command::Job(command) = &cli.command else {
            unreachable!()
        };
        let JobCommand::Release(arguments) = &**command else {
            unreachable!()
        };
        release(arguments, &cli.common).unwrap();
    }

    /// What a prolog and an epilog do on each of these nodes, but for the NICs.
    fn nodes(&self, job: u32, nodes: u32) {
        let cli = self.parse("demo");
        let decisions = decisions(&cli.common.settings).unwrap();
        let job = JobId::new(&job.to_string()).unwrap();
        thread::scope(|threads| {
            for first in 1..=8 {
                let (decisions, job) = (&decisions, &job);
                threads.spawn(move || {
                    for node in (first..=nodes).step_by(8) {
                        let decision = decisions.find(job).unwrap().unwrap();
                        assert_eq!(decision.vnis.len(), 1);
                        let node = NodeName::new(&format!("n{node}")).unwrap();
                        decisions.confirm(job, &node).unwrap();
                    }
                });
            }
        });
    }
}

#[test]
fn ten_thousand_nodes_take_no_lock_and_the_pool_changes_three_times() {
    let controller = Controller::new();
    let lock = |name: &str| fs::File::open(controller.path(name)).unwrap();
    let sequence = || {
        let text = fs::read_to_string(controller.path("pool.json")).unwrap();
        let pool: serde_json::Value = serde_json::from_str(&text).unwrap();
        pool["pool"]["sequence"].as_u64().unwrap()
    };
    let before = sequence();
    controller.reserve(1, NODES);
    assert_eq!(sequence(), before + 1, "one reservation");
    controller.release(1);
    // Whoever needed one of these would wait for a minute.
    let held = [lock("pool.json.lock"), lock("decisions/.lock")];
    for lock in &held {
        lock.lock().unwrap();
    }
    controller.nodes(1, NODES);
    drop(held);
    assert_eq!(sequence(), before + 2, "nodes change nothing in the pool");
    controller.reserve(2, NODES);
    assert_eq!(
        sequence(),
        before + 4,
        "all have confirmed, and the next job"
    );
    assert!(!controller.path("decisions/ended/1").exists());
}

/// By hand, as it takes a minute:
/// `CXI_TEST_FULL=1 cargo test --release -p cxi-cli --lib ten_thousand`; the figures are in `cxi-scale.txt`
/// in the temporary directory.
#[test]
fn what_a_thousand_jobs_on_ten_thousand_nodes_cost() {
    if std::env::var_os("CXI_TEST_FULL").is_none() {
        return;
    }
    let each = |time: Duration, count: u32| time.as_secs_f64() * 1e3 / f64::from(count);
    let mut lines = String::new();
    for nodes in [10, NODES] {
        let controller = Controller::new();
        for jobs in [250, 500, 750, 1000] {
            let start = Instant::now();
            (jobs - 250..jobs).for_each(|job| controller.reserve(job, nodes));
            let reserved = each(start.elapsed(), 250);
            let size = fs::metadata(controller.path("pool.json")).unwrap().len();
            lines += &format!(
                "{nodes} nodes, {jobs} jobs: reserve {reserved:.2} ms, pool {size} bytes\n"
            );
        }
        let start = Instant::now();
        (0..10).for_each(|job| controller.release(job));
        lines += &format!(
            "{nodes} nodes: release {:.2} ms\n",
            each(start.elapsed(), 10)
        );
        let start = Instant::now();
        (0..10).for_each(|job| controller.nodes(job, nodes));
        let confirmed = each(start.elapsed(), 10 * nodes);
        lines += &format!("{nodes} nodes: read and confirm {confirmed:.3} ms for each node\n");
        let start = Instant::now();
        controller.reserve(5000, nodes);
        lines += &format!(
            "{nodes} nodes: freeing 10 jobs and reserve {:.1} ms\n",
            each(start.elapsed(), 1)
        );
        assert!(!controller.path("decisions/ended/3").exists());
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    lines += status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or_default();
    fs::write(std::env::temp_dir().join("cxi-scale.txt"), &lines).unwrap();
}
