//! `cxi-cni` and `cxi cdi` on a served node: real network namespaces, and real container runtimes
//! where they are installed.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cxi_test_kit::{Directory, skip};
use cxi_tests::node::{self, Run, Served, need_node, printed};
use serde_json::{Value, json};

/// The name by which a network configuration finds the plugin.
const PLUGIN: &str = "test-cxi-cni";
const CNI: &str = env!("CARGO_BIN_EXE_test-cxi-cni");
const CXI: &str = env!("CARGO_BIN_EXE_test-cxi");

/// A node with a pod, which is a process with its own network namespace.
struct Site {
    node: Served,
    directory: Directory,
    pod: std::process::Child,
}

impl Site {
    fn start() -> Self {
        let node = Served::start(&["--nics", "2"]);
        let directory = Directory::new();
        let settings = format!(
            "[node]\nlock = \"{}\"\nrecords = \"{}\"\n",
            directory.join("node.lock"),
            directory.join("jobs")
        );
        fs::write(directory.path().join("cxi.toml"), settings).expect("a file");
        let pod = node.command(&["unshare", "--net", "sh", "-c", "echo $$; exec sleep 600"]);
        let mut pod = { pod }.start();
        let mut line = String::new();
        let out = pod.stdout.take().expect("a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("a line");
        fs::write(directory.path().join("pid"), line.trim()).expect("a file");
        Self { node, directory, pod }
    }

    fn netns(&self) -> String {
        let pid = fs::read_to_string(self.directory.path().join("pid")).expect("a file");
        format!("/proc/{pid}/ns/net")
    }

    fn config(&self) -> Value {
        json!({
            "cniVersion": "1.1.0",
            "name": "blue",
            "type": PLUGIN,
            "cxi": {
                "vnis": {"source": "static", "vnis": [1024]},
                "stateDir": self.directory.join("state"),
                "retryBusySeconds": 1,
            },
        })
    }

    /// A program on the node, with the settings of the site.
    fn command(&self, program: &[&str]) -> Command {
        let mut command = self.node.command(program);
        command.env("CXI_CONFIG", self.directory.join("cxi.toml"));
        command
    }

    fn start_call(&self, command: &str) -> std::process::Child {
        let mut call = self.command(&[CNI]);
        call.env("CNI_COMMAND", command)
            .env("CNI_CONTAINERID", "one")
            .env("CNI_IFNAME", "eth0")
            .env("CNI_NETNS", self.netns())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut call = call.spawn().expect("the plugin runs");
        let mut stdin = call.stdin.take().expect("a pipe");
        write!(stdin, "{}", self.config()).expect("it reads");
        call
    }

    fn call(&self, command: &str) -> Output {
        self.start_call(command).wait_with_output().expect("it ends")
    }

    fn refused(&self, command: &str) -> Value {
        let output = self.call(command);
        assert!(!output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("an error is JSON")
    }

    /// Runs a program in the pod.
    fn inside(&self, program: &[&str]) -> Output {
        let netns = format!("--net={}", self.netns());
        self.node.enter(&[&["nsenter", &netns][..], program].concat())
    }

    /// Ends the last process of the pod, and with it the network namespace.
    fn end_pod(&mut self) {
        let netns = self.netns();
        self.pod.kill().expect("a signal");
        self.pod.wait().expect("it ends");
        node::eventually("the namespace is gone", || !Path::new(&netns).exists());
    }

    fn services(&self) -> u64 {
        self.node.state()["svc_count"].as_u64().expect("a number")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.pod.kill();
        let _ = self.pod.wait();
    }
}

#[test]
fn only_the_pod_can_use_what_the_pod_got() {
    need_node!(cxi_test_kit::has("nsenter"));
    let site = Site::start();
    assert_eq!(printed(&site.call("STATUS")), "");
    assert_eq!(printed(&site.call("ADD")), r#"{"cniVersion":"1.1.0"}"#);
    assert_eq!(printed(&site.call("CHECK")), "");
    assert_eq!(site.services(), 2);
    // One lock for everything on the node: that of the settings.
    assert!(site.directory.path().join("node.lock").exists());
    let open = [CXI, "explain", "open", "2"];
    printed(&site.inside(&open));
    let outside = site.node.enter(&open);
    assert!(!outside.status.success(), "{outside:?}");

    // As if a process of the pod still had an LNI.
    site.node.order(&["fault", "SVC_DESTROY:EBUSY"]);
    assert_eq!(site.refused("DEL")["code"], 11);
    assert_eq!(site.services(), 2);
    site.node.order(&["clear-faults"]);
    assert_eq!(printed(&site.call("DEL")), "");
    assert_eq!(site.services(), 1);
    assert_eq!(site.refused("CHECK")["code"], 102);
}

/// Records tell what to release: the path of a namespace ends with it.
#[test]
fn what_a_container_had_goes_after_its_namespace_is_gone() {
    need_node!();
    let mut site = Site::start();
    let netns = site.netns();
    let job = |site: &Site, arguments: &[&str]| {
        let all = [&[CXI, "job"], arguments].concat();
        site.command(&all).run()
    };
    let member = ["--netns", &netns, "--vni=2000"];
    let prolog = ["prolog", "--job=4711", "--cores=1", "--no-tles"];
    printed(&site.call("ADD"));
    printed(&job(&site, &[&prolog[..], &member].concat()));
    assert_eq!(site.services(), 3);
    site.end_pod();

    printed(&job(&site, &["epilog", "--job=4711"]));
    assert_eq!(site.services(), 2);
    // The runtime still names the path.
    assert_eq!(printed(&site.call("DEL")), "");
    assert_eq!(site.services(), 1);
    assert_eq!(site.refused("ADD")["code"], 4);
}

/// The reference runtime of CNI.
#[test]
fn cnitool_makes_checks_and_ends_an_attachment() {
    need_node!(
        cxi_test_kit::root("keep cnitool's results off the machine"),
        cxi_test_kit::has("cnitool")
    );
    let mut site = Site::start();
    let networks = site.directory.join("networks");
    fs::create_dir(&networks).expect("a directory");
    let plugin = json!({"type": PLUGIN, "cxi": site.config()["cxi"]});
    let network = json!({"cniVersion": "1.0.0", "name": "blue", "plugins": [plugin]});
    fs::write(format!("{networks}/blue.conflist"), network.to_string()).expect("a file");
    let plugins = Path::new(CNI).parent().expect("a directory");
    let kept = site.directory.join("kept");
    fs::create_dir(&kept).expect("a directory");
    let netns = site.netns();
    let call = |site: &Site, what: &str| {
        let script = "mount --bind \"$0\" /var/lib && exec cnitool \"$@\"";
        let program = ["unshare", "--mount", "sh", "-c", script, &kept];
        let mut call = site.command(&[&program[..], &[what, "blue", &netns]].concat());
        call.env("CNI_PATH", plugins).env("NETCONFPATH", &networks);
        call.run()
    };
    let result: Value = serde_json::from_str(&printed(&call(&site, "add"))).expect("JSON");
    assert_eq!(result["cniVersion"], "1.0.0");
    assert_eq!(site.services(), 2);
    printed(&call(&site, "check"));
    site.end_pod();
    let gone = call(&site, "check");
    assert!(!gone.status.success(), "{gone:?}");
    printed(&call(&site, "del"));
    assert_eq!(site.services(), 1);
}

#[test]
fn a_plugin_that_is_killed_leaves_what_del_finds() {
    need_node!();
    let site = Site::start();
    for opcode in ["SVC_SET_NETNS", "SVC_ENABLE", "SVC_ALLOC"] {
        site.node.order(&["fault", &format!("{opcode}:delay=500ms")]);
        let mut call = site.start_call("ADD");
        let state = site.directory.path().join("state");
        let start = Instant::now();
        while !fs::read_dir(&state).is_ok_and(|mut entries| {
            entries.any(|entry| {
                let name = entry.expect("an entry").file_name();
                name.to_string_lossy().ends_with(".json")
            })
        }) {
            assert!(start.elapsed() < Duration::from_secs(20));
            sleep(Duration::from_millis(5));
        }
        sleep(Duration::from_millis(100));
        call.kill().expect("a signal");
        call.wait().expect("it ends");
        site.node.order(&["clear-faults"]);
        assert_eq!(printed(&site.call("DEL")), "", "{opcode}");
        assert_eq!(site.services(), 1, "{opcode}");
    }
}

/// Commands for the container runtime, in the mount namespace of the node: nothing of it stays on
/// the machine.
const PODMAN: &str = r#"
    mount -t tmpfs none /run
    mount -t tmpfs none /var/lib
    if ! [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup
    fi
    cd "$SITE"
    mkdir -p root/dev root/etc root/proc root/run root/sys root/tmp root/usr root/var /run/cdi
    for name in bin lib lib64 sbin; do ln -s "usr/$name" "root/$name"; done
    "$CXI" cdi --output=/run/cdi/hpe.com-cxi.json > /dev/null
    container() {
        timeout 60 podman --runtime crun --cgroup-manager cgroupfs --storage-driver vfs \
            --root "$SITE/storage" --runroot "$SITE/runroot" run --rm --cgroups disabled \
            --ulimit host --env CXI --volume /usr:/usr:ro --volume "${CXI%/*}:${CXI%/*}:ro" "$@"
    }
    if ! container --network host --rootfs "$SITE/root" true 2> complaint; then
        echo "podman cannot run a container here: $(tail -n 1 complaint)" && exit
    fi
    container --network blue --device hpe.com/cxi=all --rootfs "$SITE/root" \
        sh -c '"$CXI" devices > /dev/null; exec "$CXI" explain open 2'
    ls state
    exec "$CXI" --json service list
"#;

#[test]
fn a_container_of_podman_has_the_nics_and_the_service_of_its_network() {
    need_node!(
        cxi_test_kit::root("make the network of a container"),
        cxi_test_kit::has("podman"),
        cxi_test_kit::has("crun")
    );
    let plugins = "/usr/lib/cni";
    if !fs::exists(format!("{plugins}/ptp")).is_ok_and(|there| there) {
        return skip("there is no /usr/lib/cni/ptp");
    }
    let site = Directory::new();
    let own = Path::new(CNI).parent().expect("a directory").display();
    fs::create_dir(site.path().join("net.d")).expect("a directory");
    let containers = format!(
        "[containers]\ndefault_ulimits = []\n[network]\nnetwork_backend = \"cni\"\n\
         cni_plugin_dirs = [\"{plugins}\", \"{own}\"]\nnetwork_config_dir = \"{}\"\n",
        site.join("net.d")
    );
    fs::write(site.path().join("containers.conf"), containers).expect("a file");
    let network = json!({
        "cniVersion": "1.0.0",
        "name": "blue",
        "plugins": [
            {"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.99.0.0/24"}},
            {"type": PLUGIN, "cxi": {
                "vnis": {"source": "static", "vnis": [1024]},
                "stateDir": site.join("state"),
            }},
        ],
    });
    fs::write(site.path().join("net.d/blue.conflist"), network.to_string()).expect("a file");
    let output = node::server(["run", "--nics", "2", "--", "sh", "-euc", PODMAN])
        .env("CXI", CXI)
        .env("SITE", site.path())
        .env("CXI_LOCK", site.path().join("node.lock"))
        .env("CONTAINERS_CONF", site.path().join("containers.conf"))
        .run();
    let said = printed(&output);
    if said.starts_with("podman cannot run") {
        return skip(&said);
    }
    // Used inside, and gone with the container: only the default services are left.
    let (inside, after) = said.split_once("lock\n").expect("only the lock is left");
    assert_eq!(inside, "cxi0-1: you can use service 2: an LNI was allocated, and freed again\n");
    let after: Value = serde_json::from_str(after).expect("the list is JSON");
    assert_eq!(after["services"].as_array().map(Vec::len), Some(2));
}
