//! Errors on the command line and in specifications have plain messages.

mod common;

use common::{MockNode, assert_contains, cxi, refusals};

const HELP: &str = "\n\nFor more information, try '--help'.";

const OPTIONS: &str = r"service create --vni=65536
  2: invalid value '65536' for '--vni <VNI>': invalid VNI '65536': expected 1 to 65535
service create --vni-range=1030-1045
  2: invalid value '1030-1045' for '--vni-range <MIN-MAX>': VNI range of 16 from 1030: expected a start that is a multiple of 16, such as 1024 or 1040
service create --vni=1 --lnis-per-rgid=9
  2: invalid value '9' for '--lnis-per-rgid <N>': invalid LNIs per RGID 9: expected 0 to 8
service create --vni=1 --limit=txqs=9:8
  2: invalid value 'txqs=9:8' for '--limit <RESOURCE=RESERVED:MAX>': TXQs: 9 reserved but at most 8: expected a maximum no lower than the reservation
service destroy 0
  2: invalid value '0' for '<ID>...': invalid service ID '0': expected 1 to 4294967295
devices -d eth0
  2: invalid value 'eth0' for '--device <NICS>': invalid NIC 'eth0': expected all, cxi0, cxi0-3 or a list of them
--mock --mock-release=15 devices
  2: invalid value '15' for '--mock-release <RELEASE>'\n  [possible values: shs-12.0, shs-13.0, shs-13.1, shs-14.0.0, shs-14.0.1, main-2026-07, main-2026-11]
--mock --mock-nics=0 devices
  2: invalid value '0' for '--mock-nics <N>': 0 is not in 1..=16";

#[test]
fn options_are_checked() {
    for (arguments, code, error) in refusals(OPTIONS) {
        cxi(arguments).refused(code, &(error + HELP));
    }
}

const SPECIFICATIONS: &str = "--vni=1,2,3,4,5
  2: 5 VNIs: a service can list at most 4; more need a VNI range
--vni=1 --uid=1 --uid=2 --gid=3
  2: 3 members: a service can name at most 2
--uid=1
  2: no VNIs: expected --vni, or --vni-range for a block
--vni=1 --limit=txqs=1:2,txq=1:3
  2: --limit names TXQs twice: expected each resource once
--vni=1 --from=x.yaml
  2: --from cannot be combined with options that describe the service: the file describes it completely";

#[test]
fn specifications_by_option_are_checked_before_a_device_is_looked_for() {
    for (options, code, error) in refusals(SPECIFICATIONS) {
        cxi(&format!("service create {options}")).refused(code, &error);
    }
}

#[test]
fn specification_files_are_checked() {
    let node = MockNode::new();
    let file = node.write("c.yaml", "vnis:\n  - 65536\n");
    node.cxi(&["service", "create", "--from", &file]).refused(
        2,
        &format!(
            "error: {file}: line 2, column 5: invalid VNI 65536: expected 1 to 65535\n  \
             2 |   - 65536\n    |     ^"
        ),
    );
    // Programs and the journal get the message without the line.
    for format in ["--json", "--log-format=journal"] {
        let said = node.cxi(&["service", "create", "--from", &file, format]);
        assert_contains(&said.err, "expected 1 to 65535");
        assert!(!said.err.contains(" | "), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
    let unknown = node.write("e.yaml", "vnis: [1]\nvlan: 3\n");
    let said = node.cxi(&["service", "create", "--from", &unknown]);
    said.failed(
        2,
        &format!("error: {unknown}: line 2, column 1: unknown field `vlan`, expected one of"),
    );
    let missing = node.directory().join("none.yaml").display().to_string();
    node.cxi(&["service", "create", "--from", &missing]).refused(
        2,
        &format!("error: {missing}: cannot be read: No such file or directory (os error 2)"),
    );
}

const NOT_THERE: &str = r"service show 9
  5: no service 9 on cxi0-1\n  cxi service list shows the services.
service usage 9
  5: no service 9 on cxi0-1\n  cxi service list shows the services.
service enable 9
  5: no service 9 on cxi0-1\n  cxi service list shows the services.
service disable 9
  5: no service 9 on cxi0-1\n  cxi service list shows the services.
service enable 9 -d cxi0
  5: cxi0: SVC_ENABLE: there is no service 9
service list -d cxi7
  3: cxi7: no such NIC; this node has cxi0, cxi1\n  Choose with --device, such as --device cxi0 or --device all.
service create --vni=1 --limit=txqs=1:2000
  2: cxi0: SVC_ALLOC: TXQs: the requested maximum, 2000, exceeds the NIC's total, 1024
service destroy 1 -d cxi0
  2: cxi0: SVC_DESTROY: the default service (1) cannot be destroyed; it can be disabled";

#[test]
fn what_is_not_there_is_named() {
    let node = MockNode::new();
    for (arguments, code, error) in refusals(NOT_THERE) {
        node.cxi(arguments).refused(code, &error);
    }
}

#[test]
fn errors_are_json_on_request() {
    let said = cxi("--json service create --vni=0");
    let error: serde_json::Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(said.code, 2);
    assert_eq!(error["error"]["kind"], "bad_input");
    assert_eq!(error["error"]["exit_code"], 2);
    assert_eq!(
        error["error"]["message"],
        "invalid value '0' for '--vni <VNI>': invalid VNI '0': expected 1 to 65535"
    );
}

#[test]
fn options_of_a_mock_need_one() {
    cxi("--mock-nics=3 devices").refused(2, "error: --mock-nics describes a mock node: add --mock");
}

#[test]
fn without_a_device_both_ways_out_are_named() {
    if std::path::Path::new("/dev/cxi0").exists() {
        cxi_test_kit::skip("this machine has a CXI device");
        return;
    }
    cxi("devices").refused(
        3,
        "error: no CXI device on this machine: expected /dev/cxi0 or another /dev/cxiN\n  \
         On a node with a Slingshot NIC: load its driver (modprobe cxi_ss1).\n  \
         Without a NIC: add --mock to work on a mock node, such as cxi --mock devices.",
    );
}

/// A script sets the variable for all commands that it runs.
#[test]
fn faults_by_variable_are_for_mock_nodes() {
    let said = |faults: &str, arguments: &str| -> common::Said {
        let mut command = common::command(arguments);
        command.env("CXI_MOCK_FAULT", faults).output().unwrap().into()
    };
    said("", "--mock service list").done();
    said("SVC_LIST_GET:EIO", "--mock service list")
        .refused(3, "error: cxi0: SVC_LIST_GET: the device has been removed");
    let unknown = "error: CXI_MOCK_FAULT: unknown word 'nonsense': expected a device such as cxi0, \
                   a command such as SVC_ALLOC, read=FILE, after=N, times=N, an errno such as EBUSY, \
                   short=TXQ:96, delay=20ms, flap, unplug or plug";
    said("nonsense", "--mock service list").refused(2, unknown);
    // It is ignored for real NICs, and for commands that use no NIC.
    for faults in ["", "nonsense", "SVC_LIST_GET:EIO"] {
        said(faults, "completions bash").done();
        assert!(!said(faults, "service list").err.contains("mock-fault"));
    }
}

/// A script that requests JSON gets nothing but JSON.
#[test]
fn everything_is_json_on_request() {
    let error = |said: common::Said, code: i32, kind: &str| {
        assert_eq!((said.code, said.out.as_str()), (code, ""), "{}", said.err);
        for line in said.err.lines() {
            let error: serde_json::Value = serde_json::from_str(line).expect(line);
            assert_eq!(error["error"]["kind"], kind, "{line}");
        }
    };
    let run = |options: &[&str], program: &[&str]| {
        let fixed = ["--json", "--mock", "job", "run", "--cores=1"];
        cxi(&[&fixed[..], options, &["--"], program].concat())
    };
    error(run(&[], &["/nosuch"]), 127, "program_not_found");
    error(run(&[], &["/"]), 126, "program_not_started");
    error(run(&["--uid=4242421"], &["true"]), 2, "bad_input");
    let script = cxi("completions bash --json").json();
    assert_eq!(script["shell"], "bash");
    assert!(script["script"].as_str().unwrap().contains("_cxi"));
    // Everything after -- belongs to the program.
    let said = cxi("job run -- program --json");
    assert!(said.err.starts_with("error: "), "{}", said.err);
}

/// A named pipe to which nobody writes, and a device that never ends, wherever root's command reads a
/// file.
#[test]
fn a_file_that_is_none_is_not_waited_for() {
    let node = MockNode::new();
    let pipe = node.directory().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let pipe = pipe.display().to_string();
    let others = [
        ("/dev/zero", "a character device: expected a regular file"),
        ("/", "a directory: expected a regular file"),
        ("/nonexistent", "No such file or directory (os error 2)"),
    ];
    let readers: [&[&str]; 4] = [
        &["service", "create", "--from"],
        &["explain", "--env"],
        &["config", "check", "--config"],
        &["service", "list", "--config"],
    ];
    std::thread::scope(|scope| {
        for reader in readers {
            let (node, pipe) = (&node, &*pipe);
            let run = move |path: &str| {
                let mut arguments = reader.to_vec();
                arguments.push(path);
                node.cxi(&arguments)
            };
            scope.spawn(move || {
                let said = run(pipe);
                let why = "cannot be read: nothing was written to it within 10 s";
                said.failed(2, &format!("error: {pipe}: {why}"));
            });
            for (path, why) in others {
                run(path).failed(2, &format!("error: {path}: cannot be read: {why}"));
            }
        }
    });
    node.cxi("service create --from /dev/null").mentions(2, "/dev/null");
    node.cxi("config check --config /dev/null").done();
    // One that somebody does write to is read.
    let written = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, "vnis: {vni: 900}\nmembers: {uid: 1000}\n")
    });
    let said = node.cxi(&format!("service create --from {pipe}"));
    written.join().unwrap().unwrap();
    assert!(!said.err.contains("cannot be read"), "{said:?}");
}

/// Whoever runs a command of root may choose a part of what it prints.
#[test]
fn a_terminal_shows_what_others_chose_and_obeys_none_of_it() {
    let node = MockNode::new();
    let evil = common::EVIL;
    let is_evil = |letter: char| !letter.is_ascii_graphic() && evil.contains(letter);
    let file = |name: &str, text: &str| {
        let path = format!("{name}{evil}");
        node.write(&path, text)
    };
    let escaped = common::escaped_evil();
    let settings = file("cxi.toml", &format!("\"{escaped}\" = 1\n"));
    let value = node.write("v.toml", &format!("wait = 'x{}'\n", &evil[12..]));
    let spec = file("s.yaml", &format!("vnis: [1024]\nvl{evil}an: \"{evil}\"\n"));
    let json = file("s.json", &format!("{{\"vnis\": [\"{evil}\"]}}"));
    let environment =
        node.write("job.env", &format!("SLINGSHOT_VNIS={evil}\nSLINGSHOT_DEVICES={evil}\n"));
    let message = node.write("message", &format!("libfabric: {evil} ret: -{evil}\n"));
    let list = node.write("live", &format!("1\n{evil}\n"));
    let missing = node.directory().join(format!("none{evil}")).display().to_string();
    let commands: [&[&str]; 15] = [
        &["config", "check", "--config", &settings],
        &["config", "check", "--config", &value],
        &["config", "show", "--config", &value],
        &["service", "create", "--from", &spec],
        &["service", "create", "--from", &json],
        &["service", "create", "--from", &missing],
        &["service", "show", evil],
        &["service", "create", "--uid", evil, "--vni", "1024"],
        &["job", "prolog", "--job", evil, "--uid", "0", "--vni", "1024", "--cores", "1"],
        &["job", "prolog", "--job", "1", "--uid", evil, "--vni", "1024", "--cores", "1"],
        &["job", "run", "--uid", "0", "--cores", "1", "--", evil],
        &["explain", "--env", &environment],
        &["explain", "env", "--env", &environment],
        &["explain", &message],
        &["collectives", "sweep", "--live-from", &list],
    ];
    for command in commands {
        for form in
            [&[][..], &["--json"], &["--output=yaml"], &["--output=csv"], &["--log-format=journal"]]
        {
            let mut all = form.to_vec();
            all.extend(command);
            let said = node.cxi(&all);
            for text in [&said.out, &said.err] {
                assert!(!text.contains(is_evil), "{all:?}: {text:?}");
            }
            assert!(!said.out.is_empty() || !said.err.is_empty(), "{all:?}");
        }
    }
    // A style is not forged, even where there are colors.
    let mut colored =
        common::command(&["--mock", "service", "create", "--from", "\u{1b}[8mhidden"]);
    let said: common::Said = colored.env("CLICOLOR_FORCE", "1").output().unwrap().into();
    assert!(said.err.contains("\u{fffd}[8mhidden"), "{said:?}");
    assert!(said.err.starts_with("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m "), "{said:?}");
}
