//! `cxi metrics` and `cxi top`.

mod common;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::cluster::Cluster;
use common::screen::Screen;
use common::{MockNode, Said, assert_contains, command};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// A node with a job of user 1000, which is job 4711 in a pool.
fn node_with_a_job() -> MockNode {
    let node = MockNode::new();
    node.cxi("vni configure 1024-2047").done();
    node.cxi("vni reserve 4711").done();
    node.cxi("job prolog --job=4711 --uid=1000 --vni=1024 --cores=4").done();
    node
}

/// A sample: its name and labels, and its value.
fn samples(text: &str) -> Vec<(&str, u32)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let split = |line| str::rsplit_once(line, ' ').unwrap();
    lines.map(split).map(|(name, value)| (name, value.parse().unwrap())).collect()
}

#[test]
fn numbers_say_what_the_other_commands_say() {
    let node = node_with_a_job();
    let text = node.cxi("metrics").done();
    let wanted = [
        ("cxi_nic_usable{device=\"cxi0\"}", 1),
        ("cxi_nic_link_up{device=\"cxi0\"}", 1),
        ("cxi_resource_capacity{device=\"cxi1\",resource=\"txqs\"}", 1024),
        ("cxi_resource_reserved{device=\"cxi1\",resource=\"txqs\"}", 8),
        (
            "cxi_service_info{device=\"cxi0\",members=\"uid 1000\",service=\"2\",system=\"false\",\
             vnis=\"1024\"}",
            1,
        ),
        ("cxi_service_reserved{device=\"cxi0\",resource=\"txqs\",service=\"2\"}", 8),
        ("cxi_service_in_use{device=\"cxi0\",resource=\"txqs\",service=\"2\"}", 0),
        ("cxi_service_enabled{device=\"cxi0\",service=\"1\"}", 0),
        ("cxi_vni_pool_vnis{state=\"free\"}", 1023),
        ("cxi_vni_pool_vnis{state=\"reserved\"}", 1),
        ("cxi_vni_pool_jobs", 1),
    ];
    has(&text, &wanted);
    // Each name is described once, and its samples are together.
    let described = text.lines().filter(|line| line.starts_with("# TYPE "));
    let mut described: Vec<_> = described.collect();
    let count = described.len();
    described.dedup();
    described.sort_unstable();
    described.dedup();
    assert_eq!(described.len(), count);

    node.cxi("service create --uid=1001 --vni=500").done();
    let text = node.cxi("metrics").done();
    let left = "cxi_findings{code=\"outside_pool\",device=\"cxi0\",severity=\"warning\"} 1";
    assert_contains(&text, left);
    let without = MockNode::new().cxi("metrics").done();
    assert!(!without.contains("cxi_vni_pool"));
}

/// Prometheus's own program accepts the names and labels.
#[test]
fn prometheus_accepts_the_metrics() {
    let node = node_with_a_job();
    let text = node.cxi("metrics").done();
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped());
    let Ok(mut promtool) = promtool.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() else {
        return cxi_test_kit::skip("there is no promtool (apt-get install prometheus)");
    };
    let mut stdin = promtool.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, text.as_bytes()).unwrap();
    drop(stdin);
    let output = promtool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

/// Dashboards and alerts use only metrics that exist.
#[test]
fn the_dashboard_shows_metrics_that_there_are() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("integration/grafana.json");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let source = fs::read_to_string("src/metrics.rs").unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() > 5);
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for name in words.filter(|word| word.starts_with("cxi_") || word.starts_with("hni_")) {
                assert!(source.contains(&format!("\"{name}\"")), "{name} in {query}");
            }
        }
    }
}

#[track_caller]
fn has(text: &str, wanted: &[(&str, u32)]) {
    let samples = samples(text);
    for wanted in wanted {
        assert!(samples.contains(wanted), "{wanted:?} in\n{text}");
    }
}

#[test]
fn jobs_are_counted_where_their_records_are() {
    let cluster = Cluster::new("1024-1027");
    let node = cluster.node("n1");
    for job in ["1", "2"] {
        cluster.reserve(job, "n1").done();
        node.prolog(job).done();
    }
    // The pool is on another machine.
    let elsewhere = ("CXI_POOL_FILE", "/nowhere");
    let top = node.with(elsewhere, "--json top").json();
    let mut jobs = [0, 1].map(|user| top["users"][user]["job"].as_str().unwrap());
    jobs.sort_unstable();
    assert_eq!(jobs, ["1", "2"]);
    let on_node = || node.with(elsewhere, "metrics --node=n1").done();
    let text = on_node();
    has(
        &text,
        &[
            ("cxi_jobs{state=\"running\"}", 2),
            ("cxi_jobs{state=\"ended\"}", 0),
            ("cxi_job_info{cxi_job=\"1\",state=\"running\",vnis=\"1024\"}", 1),
            ("cxi_job_scaled_back{cxi_job=\"2\"}", 0),
            ("cxi_services_left{device=\"cxi1\"}", 0),
        ],
    );
    assert!(!text.contains("cxi_controller"), "{text}");

    cluster.cxi("job release 1").done();
    has(&on_node(), &[("cxi_services_left{device=\"cxi1\"}", 1)]);
    let epilog = ["job", "epilog", "--job=1", "--node=n1"];
    assert_eq!(node.faulty("SVC_DESTROY:EBUSY", &epilog).code, 4);
    let ended = [
        ("cxi_jobs{state=\"running\"}", 1),
        ("cxi_jobs{state=\"ended\"}", 1),
        ("cxi_services_left{device=\"cxi0\"}", 1),
    ];
    has(&on_node(), &ended);
    let waits = |nodes| {
        if Path::new("/sys/class/cxi_user").exists() {
            return cxi_test_kit::skip("this machine has CXI devices, as a controller has not");
        }
        let text = cluster.cxi("metrics").done();
        let missing = ("cxi_controller_confirmations_missing", nodes);
        let running = ("cxi_controller_jobs{state=\"running\"}", 1);
        has(&text, &[missing, running, ("cxi_vni_pool_jobs", 2)]);
        assert!(!text.contains("cxi_nic_usable"), "{text}");
    };
    waits(1);
    node.clean().done();
    waits(0);
    let clean = [("cxi_jobs{state=\"ended\"}", 0), ("cxi_services_left{device=\"cxi0\"}", 0)];
    has(&on_node(), &clean);
}

#[test]
fn a_collector_reads_a_whole_file() {
    let node = node_with_a_job();
    let path = node.directory().join("cxi.prom");
    let output = format!("--output={}", path.display());
    node.cxi(&["metrics", &output]).prints("");
    let file = fs::read_to_string(&path).unwrap();
    assert_eq!(file, node.cxi("metrics").done());
}

#[test]
fn who_uses_most_stands_first() {
    let node = node_with_a_job();
    let text = node.cxi("top").done();
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..5], ["Share", "Job", "Who", "VNIs", "NICs"]);
    // It has reserved what nobody uses.
    assert_eq!(lines[1][..6], ["1.2%", "4711", "uid", "1000", "1024", "cxi0-1"]);
    let json: Value = node.cxi("--json top").json();
    assert_eq!(json["users"][0]["job"], "4711");
    assert_eq!(json["users"][0]["members"], json!([{"type": "uid", "id": 1000}]));
    assert_eq!(json["users"][0]["vnis"], json!([1024]));
    assert!(json["users"][0]["reserved"]["TXQs"].as_u64() > Some(0), "{json}");
    let users = json["users"].as_array().unwrap();
    assert_eq!(users.len(), 1, "disabled services use nothing");
}

/// `cxi top` on its own pseudoterminal.
fn top(mock: &str, interval: &str, scratch: &Path) -> (Child, File) {
    let size = Winsize { ws_row: 24, ws_col: 160, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(Some(&size), None).unwrap();
    // The terminal cannot end while this process also has its other side open.
    fcntl(&terminal.master, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
    let top = command(&[mock, "top", "--interval", interval])
        .env("TMPDIR", scratch)
        .stdin(terminal.slave.try_clone().unwrap())
        .stdout(terminal.slave)
        .spawn()
        .unwrap();
    (top, File::from(terminal.master))
}

fn ended(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return status,
            None if Instant::now() < deadline => sleep(Duration::from_millis(10)),
            None => {
                child.kill().unwrap();
                panic!("it does not end");
            }
        }
    }
}

#[test]
fn the_last_picture_stays_while_nothing_can_be_read() {
    let node = node_with_a_job();
    let mock = node.option();
    let (mut top, mut terminal) = top(&mock, "10ms", node.directory());
    let mut screen = Screen::default();
    let mut until = |shows: &dyn Fn(&str) -> bool| screen.until(&mut terminal, shows);
    let readable = fs::read(node.file()).unwrap();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    // An error would be between them.
    let title = format!("{}  by share", host.trim());
    until(&|text| text.contains(&title));
    fs::write(node.file(), "unreadable").unwrap();
    until(&|text| text.contains("  error: ") && text.contains("uid 1000"));
    fs::write(node.file(), readable).unwrap();
    until(&|text| text.contains(&title));
    terminal.write_all(b"q").unwrap();
    while terminal.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
    assert_eq!(top.wait().unwrap().code(), Some(0));
}

/// It ends at a key or a signal, restores the terminal, and leaves nothing behind.
#[test]
fn a_terminal_is_shown_it_until_a_key_or_a_signal_or_its_end() {
    for end in ["q", "SIGTERM", "end"] {
        let scratch = tempfile::tempdir().unwrap();
        // A command that redraws notices by itself that its terminal is gone.
        let interval = if end == "end" { "1h" } else { "10ms" };
        let (mut top, mut screen) = top("--mock", interval, scratch.path());
        Screen::default().until(&mut screen, |text| text.contains("cxi top  "));
        assert!(fs::read_dir(scratch.path()).unwrap().next().is_some());
        match end {
            "q" => screen.write_all(b"q").unwrap(),
            "SIGTERM" => {
                kill(Pid::from_raw(top.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
            }
            _ => {}
        }
        // Reading from a closed terminal gives an error.
        while end != "end"
            && let Ok(count) = screen.read(&mut [0; 4096])
        {
            assert!(count > 0);
        }
        drop(screen);
        let status = ended(&mut top);
        // It may still write to a terminal that is gone.
        assert!(status.success() || end == "end" && status.code() == Some(1), "{end}: {status}");
        assert!(fs::read_dir(scratch.path()).unwrap().next().is_none(), "{end}");
    }
}

/// With three of four NICs, everything else is fine.
#[test]
fn a_dead_nic_is_noticed() {
    let node = MockNode::new();
    let options = ["--mock-nics", "3"];
    let run = |nics: &str, arguments: &[&str]| {
        let mut command = command(&[&[&*node.option()], &options[..], arguments].concat());
        Said::from(command.env("CXI_NICS", nics).output().unwrap())
    };
    let preflight = ["audit", "--preflight", "--cores=4"];
    for nics in ["", "3"] {
        run(nics, &["audit"]).prints("No problems found.\n");
        run(nics, &preflight).prints("This node is fit for a job.\n");
    }
    let missing = "error: cxi3: the NIC is not there (3 of 4 expected): look at the PCI bus (lspci) \
                   and at dmesg";
    let said = run("4", &["audit"]);
    assert_eq!(said.code, 9);
    assert_contains(&said.out.replace("\n  ", " "), missing);
    let said = run("4", &preflight);
    assert_eq!(said.code, 9);
    assert!(said.out.starts_with("This node is not fit for a job:\nerror: cxi3: "), "{said:?}");
    let json = run("4", &["--json", "audit", "--preflight"]).out;
    assert!(!json.contains("\"fit\": true"), "{json}");
    let finding = "cxi_findings{code=\"nic_missing\",device=\"cxi3\",severity=\"error\"} 1\n";
    assert_contains(&run("4", &["metrics"]).done(), finding);
    let prolog = ["job", "prolog", "--job=1", "--uid=1000", "--vni=1024", "--cores=1"];
    let many = run("4000000000", &["audit"]).out;
    assert!(many.starts_with("error: cxi3-66: the NIC is not there (3 of 4000000000 expected)"));
    let before = node.services();
    run("4", &prolog).mentions(3, "error: this node has 3 of 4 usable NICs");
    assert_eq!(node.services(), before);
    assert_eq!(run("4", &["job", "list"]).done().lines().count(), 1);
    run("3", &prolog).done();
    // A service that nobody may destroy, of the user whose job is to start.
    fs::remove_dir_all(node.directory().join("state.json.d/jobs")).unwrap();
    let run = |arguments: &[&str]| run("3", &[&preflight[..], arguments].concat());
    run(&["--uid=1001", "--vni-pool=2000-2999"]).ended(
        0,
        "This node is fit for a job.\ninfo: cxi0-2: no record says who made service 2 (uid 1000, VNI \
         1024): another scheduler, another tool, or a record is lost; cxi job clean leaves it\n",
    );
    // Of the job's user, or with a VNI that a job may get.
    for more in [&["--uid=1000", "--vni-pool=2000-2999"][..], &["--uid=1001"], &[]] {
        assert_eq!(run(more).code, 9);
    }
}

#[test]
fn a_preflight_judges_by_what_the_site_wants() {
    let node = MockNode::new();
    let run = |variable: &str, value: &str, arguments: &[&str]| {
        let mock = node.option();
        let mut command = command(&[&[&*mock], arguments].concat());
        Said::from(command.env(variable, value).output().unwrap())
    };
    let preflight = ["audit", "--preflight"];
    for (wanted, code) in [("disabled", 0), ("any", 0), ("enabled", 9)] {
        assert_eq!(run("CXI_DEFAULT_SERVICE", wanted, &preflight).code, code, "{wanted}");
    }
    let said = run("CXI_DEFAULT_SERVICE", "enabled", &preflight);
    assert_contains(
        &said.out.replace("\n  ", " "),
        "the default service is disabled: programs without",
    );
    node.cxi("service enable 1").done();
    for (wanted, code) in [("disabled", 9), ("any", 0), ("enabled", 0)] {
        assert_eq!(run("CXI_DEFAULT_SERVICE", wanted, &preflight).code, code, "{wanted}");
    }
    run("CXI_DEFAULT_SERVICE", "on", &preflight).refused(
        2,
        "error: CXI_DEFAULT_SERVICE: invalid value 'on': expected disabled or enabled or any",
    );
    node.cxi("service disable 1").done();

    let never = "warning: no cxi job clean since this node started: expected one within 1h \
                 (node.cleaned-within)";
    let said = run("CXI_CLEANED_WITHIN", "1h", &preflight);
    assert_eq!(said.code, 9);
    assert_contains(&said.out.replace("\n  ", " "), never);
    node.cxi("job prolog --job=1 --uid=1000 --vni=1024 --cores=1").done();
    assert_eq!(node.cxi("job clean").code, 8);
    run("CXI_CLEANED_WITHIN", "1h", &preflight).prints("This node is fit for a job.\n");
    assert_eq!(run("CXI_CLEANED_WITHIN", "0s", &preflight).code, 9);

    // A service on one NIC alone is not the next job's.
    node.cxi("service create --device=cxi1 --uid=7 --vni=6 --limit=txqs=1:1").done();
    assert_eq!(node.cxi("audit").code, 9);
    assert_eq!(node.cxi("audit --preflight").code, 0);

    // A job that is scaled back starts where only the smallest one fits.
    node.cxi("service create --uid=7 --vni=5 --limit=txqs=1000:1000").done();
    run("CXI_MODE", "scale-back", &[&preflight[..], &["--cores=64"]].concat()).done();
    let said = run("CXI_MODE", "strict", &[&preflight[..], &["--cores=64"]].concat());
    assert_eq!(said.code, 9, "{said:?}");
    assert_contains(&said.out, "no more such job fits");
    // A node in use is unfit because of what keeps jobs from running, and not because they run.
    let in_use = [&preflight[..], &["--in-use", "--cores=64"]].concat();
    let said = run("CXI_MODE", "strict", &in_use).done();
    assert_contains(&said, "\nwarning: cxi0: no more such job fits");
    assert_eq!(run("CXI_NICS", "3", &in_use).code, 9);
    run("CXI_CLEANED_WITHIN", "0s", &in_use).done();
}
