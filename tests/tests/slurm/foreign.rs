//! A node whose jobs another plugin runs, which makes services directly: packages come and go, and
//! none of its services is lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::cluster::{CXI, Cluster};
use cxi_test_kit::{Directory, has};
use cxi_tests::node::{Run, eventually, printed};

/// The node whose packages change.
const NODE: &str = "n1";

/// Gives a node its own `/etc`, `/usr` and `/var`, above those of this machine, and a systemd that
/// notes what it is told.
const LAYERS: &str = r#"
mkdir -p "$DIR/layers" "$DIR/systemd/system" /run/systemd
mount -t tmpfs layers "$DIR/layers"
for place in etc usr var; do
    mkdir "$DIR/layers/$place" "$DIR/layers/$place.work"
    mount -t overlay layers -o "lowerdir=/$place,upperdir=$DIR/layers/$place,workdir=$DIR/layers/$place.work" "/$place"
done
mount --bind "$DIR/systemd" /run/systemd
printf '#!/bin/sh\necho "$*" >> %s/systemctl\n' "$DIR" > /usr/local/bin/systemctl
chmod 755 /usr/local/bin/systemctl
rm -rf /etc/cxi /etc/slurm /usr/share/cxi
mkdir /etc/slurm
cp "$DIR/slurm.conf" /etc/slurm/
"#;

/// Makes the Debian packages `cxi` and `cxi-slurm` of what `cargo-deb` would put into them, without the
/// manual pages, which are generated.
fn packages(place: &Path, version: &str) -> Vec<PathBuf> {
    let cli = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cxi/cli");
    let manifest = cli.join("Cargo.toml");
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--no-deps", "--offline", "--format-version=1", "--manifest-path"]);
    let metadata: Value = serde_json::from_str(&printed(&command.arg(manifest).run())).unwrap();
    let all = metadata["packages"].as_array().unwrap();
    let of_cli = all.iter().find(|package| package["name"] == "cxi-cli").unwrap();
    let deb = &of_cli["metadata"]["deb"];
    let scripts = cli.join(deb["maintainer-scripts"].as_str().unwrap());
    let make = |deb: &Value, scripts: Option<&Path>| {
        let name = deb["name"].as_str().unwrap();
        let root = place.join(format!("{name}-{version}"));
        fs::create_dir_all(root.join("DEBIAN")).unwrap();
        for asset in deb["assets"].as_array().unwrap() {
            let [source, to, mode] = [0, 1, 2].map(|at| asset[at].as_str().unwrap());
            let source = match source {
                "target/release/cxi" => CXI,
                generated if generated.contains("target/packages/") => continue,
                source => source,
            };
            // The shell knows the patterns. A program has the name of the package's.
            let script = r#"for file in $0; do
                case $2 in
                */) to=$1/$2${file##*/} ;;
                *) to=$1/$2 ;;
                esac
                install -D -m "$3" "$file" "${to%/test-cxi}${4}" || exit 1
            done"#;
            let name = if source == CXI { "/cxi" } else { "" };
            let mut install = Command::new("sh");
            install.current_dir(&cli).args(["-c", script, source]).arg(&root);
            printed(&install.args([to, mode, name]).run());
        }
        let depends = deb["depends"].as_str().filter(|depends| !depends.contains('$'));
        let depends = depends.map(|depends| format!("Depends: {depends}\n")).unwrap_or_default();
        let architecture = printed(&Command::new("dpkg").arg("--print-architecture").run());
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: {}\nMaintainer: {}\n{depends}Description: \
             of this test\n",
            architecture.trim(),
            deb["maintainer"].as_str().unwrap_or("nobody <nobody@example.com>"),
        );
        fs::write(root.join("DEBIAN/control"), control).unwrap();
        for script in scripts.into_iter().flat_map(|scripts| fs::read_dir(scripts).unwrap()) {
            let script = script.unwrap();
            let to = root.join("DEBIAN").join(script.file_name());
            fs::copy(script.path(), &to).unwrap();
            printed(&Command::new("chmod").arg("755").arg(&to).run());
        }
        let file = place.join(format!("{name}_{version}.deb"));
        let mut build = Command::new("dpkg-deb");
        build.args(["-Znone", "--root-owner-group", "--build"]).arg(&root).arg(&file);
        printed(&build.run());
        fs::remove_dir_all(root).unwrap();
        file
    };
    vec![make(deb, Some(&scripts)), make(&deb["variants"]["slurm"], None)]
}

impl Cluster {
    /// Output of a command on the node, which must end with this code.
    #[track_caller]
    fn on_node(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.on(NODE, arguments);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    }

    /// As systemd does, with the jobs going on.
    fn restart_slurmd(&self) {
        let pid = fs::read_to_string(self.directory.join("pids/slurmd.n1")).unwrap();
        let pid: i32 = pid.trim().parse().unwrap();
        kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
        eventually("slurmd has ended", || fs::read_link(format!("/proc/{pid}/exe")).is_err());
        self.start_daemon("slurmd", &[NODE]);
        // A job that starts now is one that the new one has started.
        let job = self.batch(&["-n1", "-w", NODE], "true");
        self.ended(&job);
        assert!(!self.nodes().contains("drain"), "{}: {}", self.nodes(), self.reasons());
        assert_eq!(fs::read_to_string(self.directory.join("foreign/lost")).unwrap_or_default(), "");
    }
}

#[test]
fn no_service_of_a_foreign_plugin_is_lost_while_packages_come_and_go() {
    if !has("dpkg-deb") || !has("dpkg") {
        return;
    }
    let Some(cluster) = Cluster::of_foreign_plugin() else { return };
    cluster.on_node(0, &["sh", "-euc", LAYERS]);
    let place = Directory::new();
    let [first, second] = ["1", "2"].map(|version| packages(place.path(), version));
    let dpkg = |code, action: &str, what: &[&str]| {
        // What the binary of the test links is on this machine.
        let all = [&["dpkg", "--force-depends", action], what].concat();
        cluster.on_node(code, &all)
    };
    let files = |version: &[PathBuf]| -> Vec<String> {
        version.iter().map(|file| file.display().to_string()).collect()
    };
    let install = |version: &[PathBuf]| {
        let files = files(version);
        dpkg(0, "--install", &files.iter().map(String::as_str).collect::<Vec<_>>());
    };
    let settings = ["find", "/etc/cxi", "/etc/systemd/system", "/etc/slurm", "-type", "f"];
    let etc = || {
        let found = cluster.on(NODE, &settings).stdout;
        String::from_utf8(found).unwrap()
    };
    let before = etc();
    let health_check = "/etc/cxi/slurm/health-check.sh";
    let enable = ["cxi", "integration", "enable", "slurm", "--role=node"];
    let disable = ["cxi", "integration", "disable", "slurm", "--yes"];

    let endless = cluster.batch(&["-n1", "-w", NODE], "until [ -e $DIR/over ]; do sleep 0.2; done");
    eventually("a job runs", || cluster.services(NODE) > 0);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let short = scope.spawn(|| {
            let mut jobs = 0;
            while !over.load(Ordering::Relaxed) {
                if cluster.printed("squeue", &["--noheader"]).lines().count() < 5 {
                    cluster.batch(&["-n1", "-w", NODE], "sleep 0.$(($$ % 10))");
                    jobs += 1;
                }
                sleep(Duration::from_millis(100));
            }
            jobs
        });
        let steps = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            install(&first);
            cluster.restart_slurmd();
            assert_eq!(etc(), before, "installed is not switched on");
            install(&second);
            cluster.restart_slurmd();
            assert_eq!(etc(), before, "nor is upgraded");

            let refused = cluster.on_node(4, &[&enable[..], &["--yes"]].concat());
            assert!(refused.contains("no record says who made cxi0 service"), "{refused}");
            let despite = [&enable[..], &["--despite-services"]].concat();
            let shown = cluster.on_node(0, &despite);
            assert!(shown.contains(&format!("\n+ExecStartPre=-{health_check}\n")), "{shown}");
            assert_eq!(etc(), before, "shown is not done");
            cluster.on_node(0, &[&despite[..], &["--yes"]].concat());
            let records = format!("s|/shared/cxi|{}|", cluster.directory.join("shared"));
            cluster.on_node(0, &["sed", "-i", &records, "/etc/cxi/cxi.toml"]);
            cluster.restart_slurmd();
            let log = fs::read_to_string(cluster.directory.join("log/health-check.n1")).unwrap();
            assert!(log.contains("--foreign destroys it, too"), "it has run: {log}");
            for _ in 0..10 {
                cluster.on_node(0, &["env", "SLURMD_NODENAME=n1", health_check]);
            }

            // The scripts of the earlier version, as after a downgrade.
            install(&first);
            cluster.on_node(0, &[&despite[..], &["--yes"]].concat());
            cluster.restart_slurmd();
            let refused = dpkg(1, "--purge", &["cxi", "cxi-slurm"]);
            assert!(refused.contains("run cxi integration disable slurm --yes first"), "{refused}");
            let include = "echo include /etc/cxi/slurm/slurm.conf >> /etc/slurm/slurm.conf";
            cluster.on_node(0, &["sh", "-c", include]);
            let refused = cluster.on_node(4, &disable);
            assert!(refused.contains("/etc/slurm/slurm.conf uses /etc/cxi/slurm"), "{refused}");
            cluster.on_node(0, &["sed", "-i", "/^include/d", "/etc/slurm/slurm.conf"]);
            let said = cluster.on_node(0, &disable);
            assert!(said.contains("Kept, because it was edited: /etc/cxi/cxi.toml"), "{said}");
            cluster.restart_slurmd();
            cluster.on_node(0, &["rm", "-r", "/etc/cxi"]);
            assert_eq!(etc(), before, "disabled leaves no trace");
            dpkg(0, "--purge", &["cxi-slurm", "cxi"]);
            cluster.restart_slurmd();
            cluster.on_node(1, &["sh", "-c", "[ -e /usr/bin/cxi ] || [ -e /usr/share/cxi ]"]);
        }));
        over.store(true, Ordering::Relaxed);
        let jobs = short.join().unwrap();
        steps.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert!(jobs > 10, "{jobs} jobs");
    });
    assert!(cluster.state(&endless).contains("JobState=RUNNING "), "{}", cluster.state(&endless));
    fs::write(cluster.directory.join("over"), "").unwrap();
    cluster.ended(&endless);
    eventually("all jobs have ended", || cluster.printed("squeue", &["--noheader"]).is_empty());
    let states = cluster.printed("squeue", &["--noheader", "--states=all", "--format=%T"]);
    assert!(states.lines().all(|state| state == "COMPLETED"), "{states}");
    eventually("their services are gone", || cluster.services(NODE) == 0);
    assert!(!cluster.directory.path().join("foreign/lost").exists());
    assert!(cluster.is_idle(), "{}", cluster.nodes());
    a_lost_service_is_missed(&cluster);
    let told = fs::read_to_string(cluster.directory.join("systemctl")).unwrap();
    assert_eq!(told, "daemon-reload\ndaemon-reload\n", "enabled, disabled");
}

/// Otherwise none might be lost because nobody looks.
fn a_lost_service_is_missed(cluster: &Cluster) {
    let job = cluster.batch(&["-n1", "-w", NODE], "until [ -e $DIR/lose ]; do sleep 0.2; done");
    eventually("its service is there", || cluster.services(NODE) == 1);
    cluster.on_node(0, &[CXI, "job", "clean", "--foreign", "--vni-pool=2000-3000"]);
    fs::write(cluster.directory.join("lose"), "").unwrap();
    eventually("it is missed", || {
        let lost = fs::read_to_string(cluster.directory.join("foreign/lost"));
        lost.is_ok_and(|lost| lost.trim() == job)
    });
}
