//! The command `cxi` on the NICs of a served node.

use std::process::Stdio;
use std::time::{Duration, Instant};

use cxi_test_kit::{Directory, skip};
use cxi_tests::node::{self, Run as _, Served, need_node, printed, run};
use serde_json::Value;

const CXI: &str = env!("CARGO_BIN_EXE_test-cxi");
const CNI: &str = env!("CARGO_BIN_EXE_test-cxi-cni");

/// Only the selected NICs are queried, and only for what is printed.
#[test]
fn a_list_is_one_command_on_each_nic_that_is_asked_for() {
    need_node!();
    let commands = |arguments: &[&str]| -> Vec<(String, String)> {
        let directory = Directory::new();
        let trace = directory.join("trace");
        let node = ["--nics", "3", "--trace", &trace, "--", CXI];
        printed(&run(&[&node, arguments].concat()));
        let lines = node::json_lines(&trace).into_iter().map(|line| {
            let word = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            (word("device"), word("command"))
        });
        lines.collect()
    };
    let list = |device: &str| (device.to_owned(), "SVC_LIST_GET".to_owned());
    assert_eq!(commands(&["service", "list", "-d", "cxi1"]), [list("cxi1")]);
    assert_eq!(commands(&["service", "list"]), ["cxi0", "cxi1", "cxi2"].map(list));
}

/// From the device on: what the dynamic linker and the standard library do first is not ours.
#[test]
fn a_list_of_one_nic_opens_asks_closes_and_prints() {
    need_node!(cxi_test_kit::has("strace"));
    let directory = Directory::new();
    let log = directory.join("calls");
    let node = ["--nics", "8", "--", "strace", "-f", "-o", &log];
    let output = run(&[&node[..], &[CXI, "service", "list", "-d", "cxi0"]].concat());
    if !output.status.success() {
        return skip("ptrace(2) is not possible on a served node here");
    }
    let text = std::fs::read_to_string(&log).expect("the log is there");
    let calls = text
        .lines()
        .filter_map(|line| line.split_once(' ')?.1.trim_start().split_once('('))
        .skip_while(|(_, arguments)| !arguments.contains("\"/dev/cxi0\""))
        .map(|(name, _)| name)
        // The standard library's, in a build with assertions; and the mark of this process's styles.
        .filter(|name| !["fcntl", "getrandom"].contains(name));
    let calls: Vec<_> = calls.take_while(|name| *name != "sigaltstack").collect();
    // Whether standard output is a terminal matters for the width of the table and for colors.
    assert_eq!(calls, ["openat", "write", "ioctl", "close", "ioctl", "write"]);
}

/// Whoever asks about an open file of a file system whose server is stopped waits for ever, and not
/// even SIGKILL helps. Nothing asks: neither to find who has a NIC open, nor to end a job.
#[test]
fn a_file_system_that_is_dead_keeps_nobody_waiting() {
    need_node!(cxi_test_kit::root("see what others have open"));
    let dead = Served::start(&[]);
    let hold = "exec 3<>/dev/cxi0; echo ready; exec sleep 600";
    let mut holder = dead.command(&["sh", "-c", hold]).start();
    node::wait_ready(&mut holder);
    node::kill("STOP", dead.pid());
    let script = "
        exec 4<>/dev/cxi0
        timeout -s KILL 60 $CXI explain busy 1
        timeout -s KILL 60 $CXI job prolog --job 1 --uid 0 --vni 1024 --cores 1 >&2
        timeout -s KILL 60 $CXI job clean --node n1 >&2 || [ $? = 8 ]
        timeout -s KILL 60 $CXI job epilog --job 1 >&2";
    let output = node::server(["run", "--", "sh", "-euc", script]).env("CXI", CXI).run();
    node::kill("CONT", dead.pid());
    node::kill("KILL", holder.id());
    let _ = holder.wait();
    let text = printed(&output);
    assert!(text.contains("the NIC open"), "{text}");
}

/// Every path that a command is given, or that a setting names, may be on a file system whose server is
/// stopped: the command says so and ends.
#[test]
fn a_path_on_a_dead_file_system_is_an_error() {
    need_node!(cxi_test_kit::root("see what others have open"));
    let dead = Served::start(&[]);
    // NICs, lock and records are somewhere else, unless a command is told otherwise.
    let script = r#"
        dead=$(awk '/ - fuse/ { print $5; exit }' /proc/self/mountinfo)
        ln -s "$dead" "$WORK/link"
        echo ready
        read -r go || :
        try() {
            name=$1; shift
            (
                export CXI_MOCK=$WORK/$name.json
                set +e
                timeout -s KILL 30 "$@" >"$WORK/$name.out" 2>&1 </dev/null
                echo "$name $? $(tr '\n' ' ' <"$WORK/$name.out")" >>"$WORK/said"
            ) &
        }
        job='--job 1 --uid 0 --vni 1024 --cores 1'
        try config env CXI_CONFIG="$dead/cxi.toml" "$CXI" devices
        try config-option "$CXI" --config "$WORK/link/cxi.toml" service list
        try specification "$CXI" service create --from "$dead/service.yaml"
        try records env CXI_RECORDS="$dead/jobs" "$CXI" job prolog $job
        try records-of-link env CXI_RECORDS="$WORK/link/jobs" "$CXI" job list
        try epilog env CXI_RECORDS="$dead/jobs" "$CXI" job epilog --job 1
        try clean env CXI_RECORDS="$dead/jobs" "$CXI" job clean --none-live
        try makers env CXI_SERVICES="$dead/services" "$CXI" service create --uid 0 --vni 1024
        try makers-of-others env CXI_SERVICES="$dead/services" "$CXI" job clean --none-live
        try decisions env CXI_CONTROLLER_RECORDS="$dead/decisions" "$CXI" job prolog --job 1 --node n1 --cores 1
        try pool env CXI_POOL_FILE="$dead/pool.json" "$CXI" vni list
        try environment "$CXI" explain --env "$dead/environment"
        try message "$CXI" explain "$dead/message"
        export CNI_COMMAND=DEL CNI_CONTAINERID=one CNI_IFNAME=eth0 CNI_NETNS=
        printf '{"cniVersion": "1.1.0", "name": "blue", "type": "cxi-cni", "cxi": {"stateDir": "%s",
            "vnis": {"source": "static", "vnis": [1024]}}}' "$dead/cni" >"$WORK/network"
        # It knows no other NICs than those that do not answer: here it has none.
        try cni unshare -m sh -c 'mount -t tmpfs none /sys/class; mount -t tmpfs none /dev; "$CNI" <"$WORK/network"'
        wait"#;
    let work = Directory::new();
    let mut command = dead.command(&["sh", "-euc", script]);
    let named = [("WORK", work.join("")), ("CXI", CXI.to_owned()), ("CNI", CNI.to_owned())];
    let mut shell = command.envs(named).stdin(Stdio::piped()).start();
    node::wait_ready(&mut shell);
    node::kill("STOP", dead.pid());
    let start = Instant::now();
    drop(shell.stdin.take());
    let status = shell.wait().expect("the shell ends");
    node::kill("CONT", dead.pid());
    assert!(status.success(), "{status}");
    let text = std::fs::read_to_string(work.join("said")).expect("the commands said something");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 14, "{text}");
    for line in lines {
        let is_said = line.contains("does not answer");
        assert!(is_said && !line.contains(" 137 ") && !line.contains(" 0 "), "{text}");
    }
    assert!(start.elapsed() < Duration::from_secs(25), "{:?}: {text}", start.elapsed());
}

/// As HPE's guide to SR-IOV has it: the service first, then the functions.
#[test]
fn a_virtual_function_gets_its_parent_service_first() {
    need_node!();
    let node = Served::start(&["--release", "main-2026-11"]);
    let steps = "cd /sys/class/cxi/cxi0/device
        ! echo 1 > sriov_numvfs
        $CXI service create --vni 1024 --parent >&2
        echo 2 > cxi/cxi0/vf/0/svc_id
        echo 1 > sriov_numvfs
        cat cxi/cxi0/vf/0/svc_id sriov_numvfs
        ! echo 1 > cxi/cxi0/vf/0/svc_id
        ! $CXI service destroy 2 >&2
        $CXI service show 2 | grep Parent";
    let seen = printed(&node.command(&["sh", "-uc", steps]).env("CXI", CXI).run());
    assert_eq!(seen, "2\n1\nParent service   yes");
}

/// An administrator who has made virtual functions goes on as before: they have no services of their
/// own, and before the development branch they do not answer for any.
#[test]
fn virtual_functions_are_in_nobodys_way() {
    need_node!();
    for release in ["shs-12.0", "shs-14.0.1", "main"] {
        let node = Served::start(&["--release", release]);
        let inside = |script: &str| {
            let mut command = node.command(&["sh", "-euc", script]);
            printed(&command.env("CXI", CXI).run())
        };
        inside("echo 2 > /sys/class/cxi/cxi0/device/sriov_numvfs");
        let shown: Value = serde_json::from_str(&inside("$CXI devices --json")).expect("JSON");
        let shown = shown["devices"].as_array().expect("a list");
        let functions: Vec<_> = shown.iter().map(|it| it["virtual_function"].as_bool()).collect();
        assert_eq!(functions, [Some(false), Some(true), Some(true)], "{release}");
        assert!(shown[0]["resources"].is_object());
        let all = "$CXI service create --vni 99 > /dev/null; $CXI service list | awk '{ print $1 }'
            $CXI metrics | grep -c 'cxi_service_info{device=\"cxi0' ; $CXI service destroy 2 > /dev/null
            $CXI cdi | grep -c '\"name\": \"cxi'";
        assert_eq!(inside(all), "NICs\ncxi0\ncxi0\n2\n3", "{release}");
    }
}

/// Jobs that an earlier version started, in the directory and in the words that it had, end as they
/// should; and until the node reboots, others start beside them.
#[test]
fn jobs_of_an_earlier_version_end_on_a_node_that_is_upgraded() {
    need_node!(cxi_test_kit::root("keep records of jobs"));
    let node = Served::start(&[]);
    let sh = |script: &str, record: &str| {
        let mut command = node.command(&["sh", "-euc", script]);
        printed(&command.env("CXI", CXI).env("RECORD", record).run())
    };
    let start = "$CXI job prolog --job 17 --uid 1000 --vni 1024 --cores 1 >&2";
    let now = sh(&format!("{start}; cat /run/cxi-node/jobs/17.json; rm -r /run/cxi-node"), "");
    let mut earlier: Value = serde_json::from_str(&now).expect("a record");
    let record = earlier["record"].as_object_mut().expect("a record");
    record.retain(|key, _| !["made", "before", "sizes", "boot"].contains(&key.as_str()));
    assert_eq!(record.len(), 6, "{record:?}");
    let script = "
        mkdir -p /run/cxi/jobs
        echo \"$RECORD\" > /run/cxi/jobs/17.json
        $CXI service create --uid 1000 --vni 1024 >&2
        $CXI job clean --node n1 >&2 || [ $? = 8 ]
        $CXI job prolog --job 17 --uid 1000 --vni 1024 --cores 1 >&2
        $CXI job prolog --job 18 --uid 1000 --vni 1025 --cores 1 >&2
        $CXI job list
        $CXI job epilog --job 17 >&2
        $CXI job epilog --job 18 >&2
        ls /run/cxi/jobs /run/cxi-node 2>/dev/null || true";
    let text = sh(script, &earlier.to_string());
    let jobs: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(jobs, ["Job", "17", "18", "/run/cxi/jobs:"]);
    let left: Value = serde_json::from_str(&sh("$CXI --json service list", "")).expect("a list");
    let left = left["services"].as_array().expect("a list").iter();
    let left = left.filter(|service| service["id"] != 1);
    // The administrator's.
    assert_eq!(left.count(), node.nics().len());
}

/// HPE's `cxi_stat` shows the card and the link of a NIC that is there and up.
#[test]
fn a_nic_is_shown_with_its_card_and_its_link() {
    need_node!();
    let text = printed(&run(&["--", CXI, "devices", "-v", "--json"]));
    let shown: Value = serde_json::from_str(&text).expect("it is JSON");
    let hardware = &shown["devices"][0]["hardware"];
    for key in [
        "part_number",
        "serial_number",
        "firmware",
        "network_device",
        "mac_address",
        "pcie_speed",
        "link_state",
        "link_speed",
        "link_media",
        "link_layer_retry",
        "loopback",
        "pause",
    ] {
        assert!(hardware[key].is_string(), "{key}: {hardware}");
    }
    assert_eq!(hardware["network_device"], "hsn0");
    assert_eq!(hardware["pcie_width"], 16);
    let rates = printed(&run(&["--", CXI, "devices", "--rates=10ms", "--json"]));
    let shown: Value = serde_json::from_str(&rates).expect("it is JSON");
    assert!(shown["devices"][0]["codewords_per_second"]["good"].is_number());
}

/// Options of Slurm's `--network` that change more than a service, with two jobs on a node.
#[test]
fn what_users_say_of_rendezvous_and_rgids_reaches_the_nics() {
    need_node!();
    let text = node::script(
        &["--nics", "2"],
        &format!(
            "d=$(mktemp -d); trap 'rm -r $d' EXIT; export CXI_RECORDS=$d/jobs CXI_POOL_FILE=$d/pool \
             CXI_CONTROLLER_RECORDS=$d/shared CXI_LOCK=$d/lock CXI_POLICY=slurm CXI_TLES=false\n\
             cxi() {{ {CXI} \"$@\"; }}\n\
             rdzv() {{ cat /sys/class/cxi_user/cxi?/device/properties/rdzv_get_en | tr '\\n' ' '; echo $1; }}\n\
             cxi vni configure 1024-1027 > $d/out\n\
             network=disable_rdzv_get,depth=2\n\
             for job in 1 2; do\n\
             cxi job reserve $job --uid 7 --nodes n1 --network $network >> $d/out\n\
             cxi job prolog --job $job --cpus-per-node 300 --nodes n1 --node n1 >> $d/out\n\
             cxi --json service show -d cxi0 $((job + 1)) | grep -o 'lnis_per_rgid.*[0-9]'; rdzv $job\n\
             network=$network,nic_distribution_count=1\n\
             done\n\
             for job in 1 2; do cxi job epilog --job $job --node n1 >> $d/out; rdzv $job; done"
        ),
    );
    let shared = |count: u8| format!("lnis_per_rgid\": {count}");
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        [&shared(1), "0 0 1", &shared(2), "0 0 2", "0 0 1", "1 1 2"]
    );
}

#[test]
fn a_link_that_restarts_is_noticed() {
    need_node!();
    let node = Served::start(&["--nics", "2", "--fault", "cxi0:flap=20000s"]);
    let cxi = |arguments: &[&str]| node.enter(&[&[CXI], arguments].concat());
    let line = |text: &str, start: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(start));
        line.map(|value| value.trim().to_owned()).unwrap_or_default()
    };
    let metrics = || printed(&cxi(&["metrics"]));
    let counts = |text: &str, nic: &str| {
        let within = |time| format!("cxi_nic_link_restarts{{device=\"{nic}\",within=\"{time}\"}}");
        let losses = format!("cxi_nic_carrier_losses_total{{device=\"{nic}\"}}");
        [within("1h"), within("10h"), losses].map(|name| line(text, &name))
    };
    let text = metrics();
    assert_eq!(counts(&text, "cxi0"), ["0", "1", "1"], "{text}");
    assert_eq!(counts(&text, "cxi1"), ["0", "0", "0"], "{text}");
    let last = "cxi_nic_last_link_restart_timestamp_seconds{device=\"cxi1\"}";
    assert_eq!(line(&text, last), "0");
    for overflow in 0..4 {
        let name = format!("counter=\"lpe_net_match_overflow_{overflow}\",device=\"cxi0\"");
        assert!(text.contains(&name), "{name} in {text}");
    }
    assert_eq!(cxi(&["audit", "--preflight"]).status.code(), Some(0));
    for _ in 0..5 {
        node.order(&["link", "restart", "0"]);
    }
    assert_eq!(counts(&metrics(), "cxi0"), ["5", "6", "6"]);
    let audit = cxi(&["audit", "--preflight"]);
    assert_eq!(audit.status.code(), Some(9), "{audit:?}");
    let text = String::from_utf8_lossy(&audit.stdout).into_owned();
    assert!(text.contains("cxi0: the link restarted 5 times within the last hour"), "{text}");
    let top: Value = serde_json::from_str(&printed(&cxi(&["--json", "top"]))).expect("JSON");
    assert_eq!(
        (&top["nics"][0]["link_restarts"], &top["nics"][1]["link_restarts"]),
        (&5.into(), &0.into())
    );
}

/// The hardware's counters are in sysfs, which only a served NIC has.
#[test]
fn metrics_have_the_counters_of_a_nic_and_prometheus_accepts_them() {
    need_node!();
    let directory = Directory::new();
    let file = directory.join("cxi.prom");
    let metrics = [CXI, "metrics", "--output", &file];
    printed(&run(&[&["--nics", "2", "--"], &metrics[..]].concat()));
    let text = std::fs::read_to_string(&file).expect("metrics");
    for device in ["cxi0", "cxi1"] {
        for sample in [
            format!("cxi_nic_link_up{{device=\"{device}\"}} 1\n"),
            format!(
                "cxi_nic_telemetry_total{{counter=\"hni_sts_tx_ok_octets\",device=\"{device}\"}} "
            ),
            format!("cxi_nic_telemetry_total{{counter=\"pct_spt_timeouts\",device=\"{device}\"}} "),
        ] {
            assert!(text.contains(&sample), "{sample} in {text}");
        }
    }
    let mut promtool = std::process::Command::new("promtool");
    let input = std::fs::File::open(&file).expect("metrics");
    promtool.args(["check", "metrics"]).stdin(input);
    let Ok(output) = promtool.output() else {
        return skip("there is no promtool (apt-get install prometheus)");
    };
    assert!(output.status.success(), "{}", node::errors(&output));
}
