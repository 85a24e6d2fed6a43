//! `cxi-mock mpi`: a cluster on which a launcher starts processes as on one with a scheduler.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use cxi_test_kit::{Directory, skip};
use cxi_tests::node::{
    self, DEVICE, OPEN, Run, Served, client, errors, eventually, kill, need_node, printed, refused,
    server, with_argument,
};

/// Runs a shell script as the launcher.
fn mpi(options: &[&str], script: &str) -> Output {
    server(["mpi"]).args(options).args(["--", "sh", "-euc", script]).env("CLIENT", client()).run()
}

#[test]
fn a_launcher_finds_a_job_on_every_node() {
    let script = "hostname; echo $SLINGSHOT_VNIS $SLINGSHOT_DEVICES $SLINGSHOT_SVC_IDS; \
                  for node in $(cat $HYDRA_HOST_FILE); do ssh $node 'cxi-mock ctl state'; done | \
                  grep -c '\"svc_count\": 2'; echo $CXI_MOCK_DIR; exit 3";
    for door in node::doors() {
        let output = mpi(&["--nodes", "3", "--nics", "2", "--door", door], script);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..3], ["n1", "1024,1025 cxi0,cxi1 2,2", "6"]);
        assert!(!fs::exists(lines[3]).unwrap(), "{} is left", lines[3]);
        let said = errors(&output);
        assert!(said.contains("cxi0: nothing; cxi1: nothing"), "{said}");
        assert!(said.contains("WARNING: no NIC was used"), "{said}");
    }
}

#[test]
fn what_the_user_has_set_stays() {
    need_node!();
    let script = "echo $FI_PROVIDER $HYDRA_LAUNCHER";
    let output = server(["mpi", "--", "sh", "-c", script]).env("FI_PROVIDER", "tcp").run();
    assert_eq!(printed(&output).trim(), "tcp ssh");
}

/// Reason for which no NIC was used: the launcher failed, the user has chosen another provider, or another reason.
#[test]
fn a_warning_says_why_no_nic_was_used() {
    if !node::copies() {
        return;
    }
    let job = |provider: &str, script: &str| {
        let mut command = server(["mpi", "--door", "socket", "--", "sh", "-c", script]);
        command.env_remove("FI_PROVIDER");
        if !provider.is_empty() {
            command.env("FI_PROVIDER", provider);
        }
        errors(&command.run())
    };
    for (provider, script, why) in [
        ("", "exit 3", "The launcher ended with status 3 before anything was sent: "),
        ("tcp", "exit 3", "The launcher ended with status 3 before anything was sent: "),
        ("tcp", "true", "FI_PROVIDER is set to tcp: unset it, so that it is cxi"),
        ("", "true", "Processes on one node use shared memory: use more --nodes."),
        ("cxi", "true", "Processes on one node use shared memory: use more --nodes."),
    ] {
        let said = job(provider, script);
        let warning = format!("WARNING: no NIC was used, so Slingshot was not tested. {why}");
        assert!(said.contains(&warning), "{provider} {script}: {said}");
    }
}

#[test]
fn a_launcher_that_is_not_there_is_named() {
    if !node::copies() {
        return;
    }
    // A directory in PATH that the user may not search would be a reason of its own.
    let output = server(["mpi", "--door", "socket", "--", "no-such-launcher", "-n", "2"])
        .env("PATH", "/usr/bin:/bin")
        .run();
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    let said = errors(&output);
    let named = "cxi-mock: cannot run no-such-launcher: No such file or directory (os error 2)\n";
    assert!(said.starts_with(named), "{said}");
}

/// Needs of a job are said, or the job refused, before its launcher starts.
#[test]
fn what_is_missing_is_said_before_the_launcher_starts() {
    if !node::copies() {
        return;
    }
    let directory = Directory::new();
    std::os::unix::fs::symlink("/bin/sh", directory.join("sh")).expect("a link");
    let launcher = directory.write("mpiexec", "#!/bin/sh\n: HYDRA_LAUNCHER\necho started\n");
    fs::set_permissions(&launcher, Permissions::from_mode(0o755)).expect("it is ours");
    let job = || {
        let mut command = server(["mpi", "--door", "socket", "--", &launcher]);
        command.env("PATH", directory.path()).env("LD_LIBRARY_PATH", directory.path());
        command.env_remove("HWLOC_XMLFILE").run()
    };
    let output = job();
    assert_eq!(printed(&output), "started");
    let said = errors(&output);
    assert!(said.contains("there is no lstopo-no-graphics, without which MPICH"), "{said}");
    assert!(said.contains("install hwloc-nox on Debian"), "{said}");

    directory.write("libfabric.so.1", "needs libcxi.so");
    directory.write("libcxi.so.1", "knows CXI_NODE");
    assert_eq!(printed(&job()), "started");
    directory.write("libcxi.so.1", "knows files only");
    let refused = job();
    assert_eq!(refused.status.code(), Some(77), "{refused:?}");
    assert!(refused.stdout.is_empty(), "{refused:?}");
    let said = errors(&refused);
    assert!(said.contains("/libcxi.so.1 is not this project's libcxi, and no other"), "{said}");
}

/// Libfabric, where the kernel passes no windows through, would fail with an error that does not say so.
#[test]
fn a_job_without_windows_is_refused() {
    need_node!(node::copies());
    let job = |door: &[&str]| {
        let mut command = std::process::Command::new("unshare");
        command.args(["--user", "--map-root-user", node::cxi_mock(), "mpi"]);
        command.args(door).args(["--", "echo", "started"]).env_remove("CXI_NODE");
        let directory = Directory::new();
        command.env("TMPDIR", directory.path()).env_remove("XDG_RUNTIME_DIR").run()
    };
    let refused = job(&["--door", "fuse"]);
    if errors(&refused).starts_with("unshare: ") {
        return skip(errors(&refused));
    }
    assert_eq!(refused.status.code(), Some(77), "{refused:?}");
    assert!(refused.stdout.is_empty(), "{refused:?}");
    let said = errors(&refused);
    assert!(said.contains("programs could not map windows of the NICs: "), "{said}");
    assert!(said.contains("use --door socket"), "{said}");
    assert_eq!(printed(&job(&[])), "started");
}

/// Leftovers of a job that was killed are removed by the next one.
#[test]
fn a_killed_job_leaves_no_directory_to_the_next() {
    if !node::copies() {
        return;
    }
    let directory = Directory::new();
    let job = |script: &str| {
        let mut command = server(["mpi", "--door", "socket", "--", "sh", "-c", script]);
        command.env("TMPDIR", directory.path()).env_remove("XDG_RUNTIME_DIR");
        command
    };
    let left = || {
        let entries = fs::read_dir(directory.path()).expect("a directory").flatten();
        let names = entries.map(|entry| entry.file_name().into_string().expect("text"));
        // The directory of sockets stays.
        names.filter(|name| !name.starts_with(&format!("cxi-mock-{}", user()))).count()
    };
    let mut killed = job("echo ready; sleep 60").start();
    node::wait_ready(&mut killed);
    let mut running = job("echo ready; sleep 60").start();
    node::wait_ready(&mut running);
    kill("KILL", killed.id());
    killed.wait().expect("it ends");
    assert_eq!(left(), 2);
    printed(&job("true").run());
    assert_eq!(left(), 1, "that of the job which is running");
    kill("TERM", running.id());
    running.wait().expect("it ends");
    assert_eq!(left(), 0);
}

fn user() -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").expect("proc is mounted").uid()
}

#[test]
fn a_job_leaves_nothing_and_the_users_files_alone() {
    need_node!();
    let directory = Directory::new();
    let (dir, state) = (directory.join("."), directory.join("state.json"));
    let hosts = directory.write("hosts", "the user's");
    let script = format!("grep -q 1025 {state}; dirname $HYDRA_HOST_FILE; cat $HYDRA_HOST_FILE");
    let output = mpi(&["--dir", &dir, "--state", &state], &script);
    let text = printed(&output);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[1..], ["n1", "n2"]);
    assert!(!fs::exists(lines[0]).unwrap(), "{} is left", lines[0]);
    assert_eq!(fs::read_to_string(hosts).unwrap(), "the user's");
    assert!(!fs::exists(directory.join("bin")).unwrap());
    assert!(!fs::read_to_string(state).unwrap().contains("1025"));
}

#[test]
fn a_job_has_what_hardware_collectives_need() {
    need_node!();
    let output = mpi(&["--fabric-manager"], "echo $FI_CXI_COLL_JOB_ID");
    assert_eq!(printed(&output).trim(), "mock-1");
}

#[test]
fn it_ends_with_what_has_moved() {
    let script = "nid() { ssh $1 $CLIENT nid cxi1; }; one=$(nid n1); two=$(nid n2); \
                  ssh n2 $CLIENT exchange cxi1 4 $one 3 50 & $CLIENT exchange cxi1 3 $two 4 50; wait; \
                  cxi-mock ctl --node n2 kill";
    for door in node::doors() {
        let output = mpi(&[OPEN[0], OPEN[1], "--nics", "2", "--door", door], script);
        assert_eq!(printed(&output), "ok\nok");
        let said = errors(&output);
        // Each sends 50 messages of 512 bytes, and the first ones may find nobody.
        assert!(said.contains("cxi0: nothing; cxi1: 100 messages, 51.2 kB"), "{said}");
        assert!(!said.contains("WARNING"), "{said}");
    }
}

#[test]
fn lost_packets_are_sent_again() {
    need_node!(node::windows());
    let script = "one=$($CLIENT nid cxi0); two=$(ssh n2 $CLIENT nid cxi0); \
                  ssh n2 $CLIENT exchange cxi0 4 $one 3 50 & $CLIENT exchange cxi0 3 $two 4 50; wait; \
                  cut -d@ -f1 /sys/class/cxi/cxi0/device/telemetry/pct_retry_srb_requests";
    for (loss, lost) in [("0", false), ("20%", true)] {
        let output = mpi(&[OPEN[0], OPEN[1], "--loss", loss], script);
        let text = printed(&output);
        let retries = text.strip_prefix("ok\nok\n").expect("all arrive");
        assert_eq!(retries != "0", lost, "--loss {loss}: {retries}");
    }
    let output = mpi(&["--loss", "101%"], "true");
    assert!(errors(&output).contains("expected a share such as 0.01 or 1%"));
}

#[test]
fn a_graph_shows_who_has_sent_to_whom() {
    need_node!(node::windows());
    let script = "one=$($CLIENT nid cxi0); two=$(ssh n2 $CLIENT nid cxi0); \
                  { ssh n2 $CLIENT exchange cxi0 4 $one 3 50 & $CLIENT exchange cxi0 3 $two 4 50; \
                  wait; } > /dev/null; cxi-mock ctl --node n2 link down; cxi-mock ctl graph";
    let output = mpi(&OPEN, script);
    let graph = printed(&output);
    for line in [
        "n1_cxi0 [label=\"cxi0\\n0x100\"];",
        "n2_cxi0 [label=\"cxi0\\n0x101\\nlink down\", style=dashed];",
        "label=\"n2 receives\";",
        "to_n2_cxi0 [label=\"cxi0\\n0x101\"];",
        "n1_cxi0 -> to_n2_cxi0 [label=\"50 messages, 25.6 kB\"];",
        "n2_cxi0 -> to_n1_cxi0 [label=\"50 messages, 25.6 kB\"];",
    ] {
        assert!(graph.contains(line), "{line}\n{graph}");
    }
    let lines = graph.lines();
    assert_eq!((lines.clone().next(), lines.last()), (Some("digraph fabric {"), Some("}")));
}

#[test]
fn ssh_starts_programs_on_other_nodes() {
    need_node!();
    let script = r"
        ssh n2 'echo $CXI_MOCK_NODE on $(hostname)'
        ssh -x -o StrictHostKeyChecking=no -p22 -l me me@n2 exit 7 || echo $?
        echo through | ssh n2 cat
        echo left | { ssh -n n2 cat; cat; }
        cd /usr; VARIABLE=value ssh n2 'pwd; echo $VARIABLE; echo to stderr >&2' 2> /dev/null
        ssh n2 'kill -KILL $$' || echo $?
        touch $TMPDIR/mine; ssh n2 'ls $TMPDIR; test $TMPDIR -ef '$TMPDIR || echo another
        cxi-mock rsh n2 hostname
        ssh n2 ssh n1 hostname
        ssh n9 true || echo $?
        ssh ../../n9 true || echo $?; ls $CXI_MOCK_DIR/tmp";
    let output = mpi(&["--nodes", "2"], script);
    let expected = [
        "n2 on n2", "7", "through", "left", "/usr", "value", "137", "another", "n2", "n1", "255",
        "255", "n1", "n2",
    ];
    assert_eq!(printed(&output).lines().collect::<Vec<_>>(), expected);
    assert!(errors(&output).contains("no node n9: expected n1 to n2"));
}

#[test]
fn what_ssh_started_ends_with_it() {
    need_node!();
    let word = format!("5{}", std::process::id());
    let cluster = Served::cluster(&["--nodes", "2"]);
    let dir = cluster.dir();
    let start = || {
        // As below nohup.
        let script = format!("trap '' HUP; echo ready; sleep {word}; true");
        let mut ssh = server(["rsh", "n2", &script]);
        let mut ssh = ssh.env("CXI_MOCK_DIR", &dir).start();
        node::wait_ready(&mut ssh);
        ssh
    };
    let mut killed = start();
    kill("KILL", killed.id());
    killed.wait().expect("it ends");
    eventually("a program is left", || with_argument(&word).is_empty());
    let mut lost = start();
    cluster.order(&["--node", "n2", "kill"]);
    assert_eq!(lost.wait().expect("it ends").code(), Some(255));
    let alone = server(["rsh", "n2", "true"]).env_remove("CXI_MOCK_DIR").run();
    assert!(errors(&alone).contains("CXI_MOCK_DIR is not set"));
}

/// Without privileges, programs started by `ssh` have none either.
#[test]
fn ssh_gives_nobody_a_capability() {
    need_node!(!cxi_test_kit::is_root() || skip_as_root());
    let script = "ssh n2 'id -u; grep CapEff /proc/self/status'; grep CapEff /proc/self/status";
    let output = printed(&mpi(&["--as-user"], script));
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines[1], lines[2]);
    assert!(lines[1].ends_with("0000000000000000"), "{output}");
}

fn skip_as_root() -> bool {
    skip("root has all capabilities on a node");
    false
}

#[test]
fn lines_have_labels_on_request() {
    need_node!();
    let script = "echo out $CXI_MOCK_RANK; echo error >&2; printf 'no end'";
    let run = ["cluster", "--nodes", "2", "run", "--label", "--", "sh", "-c"];
    let output = server(run).arg(script).run();
    let text = printed(&output);
    for line in ["[0] out 0\n", "[1] out 1\n", "[0] no end"] {
        assert!(text.contains(line), "{text}");
    }
    assert!(errors(&output).contains("[1] error\n"), "{output:?}");
    let output = mpi(&["--label"], "true");
    refused(&output, "no launcher of MPICH, Intel MPI or Open MPI");
}

/// As long as a library says which release it is written for, the driver is of that one.
#[test]
fn the_driver_is_of_the_release_that_programs_are_written_for() {
    need_node!(cxi_test_kit::has("python3"));
    let client = client();
    // LNI_ALLOC of both kinds, for the service after the default one.
    let lnis = r"
import ctypes, os, struct, sys
answer = ctypes.create_string_buffer(8)
at = ctypes.addressof(answer)
short, long = struct.pack('=IIQ', 1, 2, at), struct.pack('=IIQII', 1, 0, at, 2, 0)
def alloc(file, command):
    try: return 'ok' if os.write(file, command) else 'nothing'
    except OSError as error: return error.strerror
";
    let on = |command: &[&str], options: &[&str], then: &str| {
        let program = format!("{lnis}{then}");
        let allocate = format!("{client} allocate /dev/cxi0 55 0 > /dev/null; exec \"$@\"");
        let mut run = server(command);
        run.args(options);
        // What `cluster` is about comes before what is to be done there.
        run.args((command == ["cluster"]).then_some("run"));
        run.args(["--", "sh", "-c", &allocate, "sh", "python3", "-c", &program]);
        run.run()
    };
    let long = "print(alloc(os.open('/dev/cxi0', os.O_RDWR), long))";
    // Whoever opens the device a thousand times does not fill the log.
    let often = "for file in [os.open('/dev/cxi0', os.O_RDWR) for _ in range(4)]: alloc(file, long)\n\
                 print(alloc(file, long))";
    let mut commands: Vec<&[&str]> = vec![&["run"], &["cluster"]];
    // A job that could not map windows is refused.
    commands.extend(node::windows().then_some(&["mpi"][..]));
    for command in commands {
        let nodes: &[&str] = if command == ["run"] { &[] } else { &["--nodes", "1"] };
        assert_eq!(printed(&on(command, nodes, long)), "ok", "{command:?}");
        let old = [nodes, &["--release", "shs-14.0.1"]].concat();
        let old = on(command, &old, often);
        assert_eq!(printed(&old), "Invalid argument", "{command:?}");
        let said = errors(&old);
        let mismatch = said.lines().filter(|line| line.contains("the driver is shs-14.0.1"));
        assert_eq!(mismatch.count(), 1, "{command:?}: {said}");
    }
    let served = Served::start(&[]);
    served.enter(&[client, "allocate", DEVICE, "55", "0"]);
    let program = format!("{lnis}{long}");
    assert_eq!(printed(&served.enter(&["python3", "-c", &program])), "ok");

    let run = |options: &[&str], then: &str| on(&["run"], options, then);
    let first_long = "file = os.open('/dev/cxi0', os.O_RDWR)\n\
                      print(alloc(file, long), alloc(os.open('/dev/cxi0', os.O_RDWR), short))\n\
                      os.close(file)\n\
                      print(alloc(os.open('/dev/cxi0', os.O_RDWR), short))";
    for auto in [&[] as &[&str], &["--release", "auto"]] {
        let output = run(auto, first_long);
        assert_eq!(printed(&output), "ok Invalid argument\nok");
        assert!(errors(&output).contains("different releases"), "{output:?}");
    }
    // A program that tries both forms works with the driver, which is kept.
    let both = "file = os.open('/dev/cxi0', 2); print(alloc(file, long), alloc(file, short))";
    let both = run(&["--release", "shs-13.0"], both);
    assert_eq!(printed(&both), "Invalid argument ok");
    assert!(!errors(&both).contains("different releases"), "{both:?}");
    let short_first = "file = os.open('/dev/cxi0', 2)\n\
                       no_service = struct.pack('=IIQ', 1, 77, at)\n\
                       print(alloc(file, no_service), alloc(file, long), alloc(file, short))";
    let short_first = run(&[], short_first);
    assert_eq!(printed(&short_first), "Invalid argument Invalid argument ok");
    assert_eq!(errors(&short_first), "");
    let unknown = server(["run", "--release", "shs-99", "--", "true"]).run();
    let values = "[possible values: auto, shs-12.0, ";
    assert!(errors(&unknown).contains(values), "{unknown:?}");
}

/// A program is one of MPI if it names the library.
#[test]
fn ranks_alone_are_warned_of() {
    need_node!();
    let directory = Directory::new();
    for (text, warned) in [("libmpi.so.12", true), ("libm.so.6", false)] {
        let program = directory.write("program", &format!("#!/bin/sh\n: {text}\n"));
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is ours");
        let output = server(["cluster", "--nodes", "2", "run", "--", &program]).run();
        printed(&output);
        let said = errors(&output);
        let warning = "each process is a job of one rank. One job on all nodes: cxi-mock mpi";
        assert_eq!(said.contains(warning), warned, "{said}");
    }
}

/// A launcher and a program of an MPI, with arguments, such as
/// `/opt/mpich/bin/mpiexec -n 4 ./allreduce`. It has to use the NICs of two nodes.
#[test]
fn an_mpi_program_uses_the_nics() {
    need_node!(node::windows());
    let Ok(command) = env::var("CXI_TEST_MPI") else {
        return skip("CXI_TEST_MPI names no launcher and program of an MPI");
    };
    let directory = Directory::new();
    let dir = directory.join("job");
    for nics in ["1", "2"] {
        let options = ["mpi", "--nodes", "2", "--nics", nics, "--dir", &dir, "--"];
        let output = server(options).args(command.split_whitespace()).run();
        printed(&output);
        let said = errors(&output);
        assert!(said.contains(" messages, "), "{said}");
    }
}
