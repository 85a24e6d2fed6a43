//! The scripts for Flux in a real Flux, that of `CXI_TEST_FLUX_PREFIX`, on a mock node.

mod node;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use node::{Directory, Run, Served, is_root, printed, skip};

const CXI: &str = env!("CARGO_BIN_EXE_test-cxi");
const PREFIX: &str = "CXI_TEST_FLUX_PREFIX";

/// As in docs/integration/flux.md, except for paths that belong to the test.
const INSTANCE: &str = r#"
. "$SITE/functions"
"$CXI" integration install flux --prefix "$SITE" > /dev/null
cat > "$SITE/flux.toml" << END
[job-manager]
plugins = [{ load = "perilog.so" }, { load = "cray-slingshot.so" }]
[job-manager.prolog]
per-rank = true
command = ["$SITE/flux/prolog.sh"]
[job-manager.epilog]
per-rank = true
command = ["$SITE/flux/epilog.sh"]
[job-manager.housekeeping]
command = ["$SITE/flux/housekeeping.sh"]
[cray-slingshot]
vni-pool = "1024-1025"
END
"$SITE/flux/broker-start.sh" > "$SITE/log"
exec timeout 120 flux start --config-path="$SITE/flux.toml" sh -eu "$SITE/commands"
"#;

/// Functions that the commands of a test call.
const FUNCTIONS: &str = r#"
PATH=$PREFIX/bin:$PATH
# The services of jobs on the first NIC.
services() { "$CXI" --json -d cxi0 service list | grep -c '"id": [2-9]' || true; }
has() { until [ "$(services)" = "$1" ]; do sleep 0.1; done; }
"#;

/// A mock node with the scripts, and Flux's files.
struct Site {
    node: Served,
    directory: Directory,
    prefix: PathBuf,
}

impl Site {
    /// `None`, and a message, where there is no Flux with the plugin that reserves VNIs.
    fn start() -> Option<Self> {
        let Some(prefix) = env::var_os(PREFIX).map(PathBuf::from) else {
            skip(&format!("{PREFIX} does not name a Flux with flux-coral2"));
            return None;
        };
        let plugin = "flux/job-manager/plugins/cray-slingshot.so";
        let libraries = ["lib", "lib64", "lib/x86_64-linux-gnu"];
        let has = |library: &&str| prefix.join(library).join(plugin).exists();
        if !libraries.iter().any(has) {
            skip(&format!("{}: there is no {plugin}", prefix.display()));
            return None;
        }
        if !is_root() || !node::possible() {
            skip("prologs need root and a served node");
            return None;
        }
        let directory = Directory::new();
        let settings = format!(
            "[pool]\nvnis = \"1024-1025\"\n[node]\nlock = \"{}\"\nrecords = \"{}\"\nretry-busy = \
             \"500ms\"\n",
            directory.join("run/node.lock"),
            directory.join("run/jobs")
        );
        fs::write(directory.path().join("cxi.toml"), settings).expect("a file");
        fs::write(directory.path().join("functions"), FUNCTIONS).expect("a file");
        let node = Served::start(&["--nics", "2"]);
        Some(Self {
            node,
            directory,
            prefix,
        })
    }

    /// Runs commands in a new instance of Flux.
    fn flux(&self, commands: &str) -> Output {
        let commands = format!(". \"$SITE/functions\"\n{commands}");
        fs::write(self.directory.path().join("commands"), commands).expect("a file");
        let mut command = self.node.command(&["sh", "-euc", INSTANCE]);
        command
            .env("PREFIX", &self.prefix)
            .env("SITE", self.directory.path())
            .env("NODE", self.node.dir())
            .env("CXI", CXI)
            .env("SERVER", node::SERVER)
            .env("CXI_CONFIG", self.directory.join("cxi.toml"))
            .env_remove("FLUX_URI");
        command.run()
    }

    /// How many services the first NIC has besides the default one.
    fn services(&self) -> u64 {
        let count = self.node.state()["svc_count"].as_u64();
        count.expect("a number") - 1
    }

    fn has_records(&self) -> bool {
        let records = fs::read_dir(Path::new(&self.directory.join("run/jobs")));
        records.is_ok_and(|mut records| {
            records.any(|record| {
                let name = record.expect("an entry").file_name();
                name.to_string_lossy().ends_with(".json")
            })
        })
    }
}

#[test]
fn a_job_has_services_and_its_tasks_an_environment() {
    let Some(site) = Site::start() else { return };
    let commands = r#"
flux run -n2 "$SITE/flux/with-slingshot.sh" sh -c 'env | grep ^SLINGSHOT_; "$CXI" job list'
flux run "$CXI" --json -d cxi0 service list | grep -c '"id": [2-9]'
has 0
flux resource list -s down -no "{nnodes}"
"#;
    let said = printed(&site.flux(commands));
    let tasks = said
        .lines()
        .filter(|line| *line == "SLINGSHOT_VNIS=1024" || line.ends_with("running  1024"));
    assert_eq!(tasks.count(), 4, "{said}");
    assert!(said.ends_with("1\n0"), "{said}");
    assert!(!site.has_records());
}

#[test]
fn a_job_that_does_not_fit_fails_with_the_reason_and_leaves_nothing() {
    let Some(site) = Site::start() else { return };
    let commands = r#"
"$CXI" service create -d all --uid=9 --vni=9 --limit=txqs=1023:1023 > /dev/null
flux run true 2>&1 && exit 1
flux dmesg | grep "prolog: .*TXQs"
flux resource drain -no "{reason}"
"#;
    let said = printed(&site.flux(commands));
    assert!(said.contains("TXQs"), "{said}");
    // Flux drains a node whose prolog fails, whatever the reason.
    assert!(
        said.lines()
            .any(|line| line.starts_with("prolog failed for job")),
        "{said}"
    );
    assert_eq!(site.services(), 1, "of another user");
    assert!(!site.has_records());
}

/// Without systemd, Flux only logs that housekeeping has failed.
#[test]
fn busy_services_fail_housekeeping_and_a_clean_up_is_the_remedy() {
    let Some(site) = Site::start() else { return };
    let commands = r#"
"$SERVER" ctl --dir "$NODE" fault SVC_DESTROY:EBUSY
flux run true
until flux dmesg | grep -q "housekeeping: .*nonzero exit code"; do sleep 0.1; done
services
"$SERVER" ctl --dir "$NODE" clear-faults
"$CXI" job clean > /dev/null
services
flux run true
has 0
"#;
    let said = printed(&site.flux(commands));
    assert_eq!(said, "1\n0");
    assert!(!site.has_records());
}

#[test]
fn what_a_killed_broker_leaves_goes_when_it_starts_again() {
    let Some(site) = Site::start() else { return };
    let killed = site.flux("flux submit sleep 300\nhas 1\nkill -9 $(flux getattr broker.pid)\n");
    assert!(!killed.status.success(), "{killed:?}");
    assert_eq!(site.services(), 1);
    assert!(site.has_records());
    assert_eq!(printed(&site.flux("services")), "0");
    assert!(!site.has_records());
}
