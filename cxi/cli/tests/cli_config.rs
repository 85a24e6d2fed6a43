//! Settings: from the file, overridden by the environment, overridden by options.

mod common;

use common::{Arguments, MockNode, Said, clean, command};

fn cxi(variables: &[(&str, &str)], arguments: &(impl Arguments + ?Sized)) -> Said {
    let mut command = command(arguments);
    clean(&mut command).envs(variables.iter().copied());
    command.output().unwrap().into()
}

fn from(checked: &serde_json::Value, name: &str) -> (String, String) {
    let settings = checked["settings"].as_array().unwrap();
    let setting = settings.iter().find(|one| one["name"] == name).unwrap();
    let value = setting["value"].as_str().unwrap().to_owned();
    (value, setting["from"].to_string())
}

#[test]
fn check_says_what_is_used_and_where_it_comes_from() {
    let node = MockNode::new();
    let file = node.write(
        "cxi.toml",
        "wait = \"5s\"\n[node]\nlock = \"/run/site.lock\"\n\n[job]\ntles = false\nfloor = 4\n\
         traffic-classes = [\"low-latency\", \"bulk-data\"]\n",
    );
    let variables = [("CXI_CONFIG", file.as_str()), ("CXI_WAIT", "7s"), ("CXI_LOCK", "")];
    let checked = cxi(&variables, "--json config check").json();
    assert_eq!(checked["file"], file.as_str());
    let expected = [
        ("wait", "7s", "{\"variable\":\"CXI_WAIT\"}"),
        ("node.lock", "/run/site.lock", "{\"line\":3}"),
        ("job.tles", "false", "{\"line\":6}"),
        ("job.floor", "4", "{\"line\":7}"),
        ("job.traffic-classes", "low-latency,bulk-data", "{\"line\":8}"),
        ("pool.vnis", "1024-65535", "\"default\""),
    ];
    for (name, value, place) in expected {
        assert_eq!(from(&checked, name), (value.to_owned(), place.to_owned()), "{name}");
    }
    let text = cxi(&[], &["--config", &file, "config", "check"]).done();
    assert!(text.starts_with(&format!("Settings from {file}\n")), "{text}");
    assert!(
        text.lines()
            .any(|line| line.split_whitespace().eq("node.lock /run/site.lock line 3".split(' '))),
        "{text}"
    );
}

#[test]
fn a_wrong_file_is_refused_with_its_line() {
    let node = MockNode::new();
    let names = "  Expected one of node.lock, wait, node.records, node.services, node.nics, node.default-service, node.cleaned-within, node.retry-busy, \
                 pool.store, pool.file, pool.epoch, pool.vnis, controller.records, controller.wait, controller.single-node-vni, \
                 controller.job-vni, job.policy, job.mode, \
                 job.floor, job.tles, job.traffic-classes, job.allow-default-vnis, \
                 job.nic-distribution-count, collectives.trees, collectives.min-nodes, \
                 collectives.required, collectives.wait, \
                 fabric-manager.url, fabric-manager.cluster, fabric-manager.auth, \
                 fabric-manager.auth-dir, fabric-manager.allow-clear-secrets, fabric-manager.certificate, \
                 fabric-manager.client-certificate, fabric-manager.client-key, \
                 fabric-manager.deadline, etcd.endpoints, etcd.prefix, etcd.user, \
                 etcd.password-file, etcd.allow-clear-password, etcd.certificate, etcd.client-certificate, etcd.client-key, \
                 etcd.timeout.";
    let cases = [
        ("wait = \"1m\"\nwiat = \"2m\"\n", format!("line 2: there is no setting wiat\n  2 | wiat = \"2m\"\n    | ^\n{names}")),
        ("[node]\n\nvnis = 4\n", format!("line 3: there is no setting node.vnis\n  3 | vnis = 4\n    | ^\n{names}")),
        (
            "[node]\nretry-busy = \"soon\"\n",
            "line 2: node.retry-busy: expected number at 0: expected a time such as 500ms, 30s or 5m\n  \
             2 | retry-busy = \"soon\"\n    | ^"
                .to_owned(),
        ),
        (
            "[job]\nmode = \"lenient\"\n",
            "line 2: job.mode: invalid value 'lenient': expected strict or scale-back or \
             best-effort\n  2 | mode = \"lenient\"\n    | ^"
                .to_owned(),
        ),
        (
            "wait = 1979-05-27\n",
            "line 1: wait: expected a text, a number, true or false, or a list of these\n  \
             1 | wait = 1979-05-27\n    | ^"
                .to_owned(),
        ),
        (
            "wait = \"1m\nfloor = 2\n",
            "line 1: invalid basic string, expected `\"`\n  1 | wait = \"1m\n    |           ^".to_owned(),
        ),
        (
            "wait = \"1m\"\nwait = \"2m\"\n",
            "line 2: duplicate key\n  2 | wait = \"2m\"\n    | ^".to_owned(),
        ),
        (
            "\"node.lock\" = \"/a\"\n[node]\nlock = \"/b\"\n",
            "line 1: node.lock is also set on line 3\n  1 | \"node.lock\" = \"/a\"\n    | ^".to_owned(),
        ),
    ];
    for (text, message) in cases {
        let file = node.write("cxi.toml", text);
        cxi(&[], &["--config", &file, "config", "check"])
            .refused(2, &format!("error: {file}: {message}"));
    }
    let missing = node.directory().join("none.toml").display().to_string();
    cxi(&[("CXI_CONFIG", missing.as_str())], &["devices"]).refused(
        2,
        &format!("error: {missing}: cannot be read: No such file or directory (os error 2)"),
    );
    cxi(&[("CXI_FLOOR", "few")], &["config", "check"])
        .refused(2, "error: CXI_FLOOR: invalid number 'few': expected 0 to 4294967295");
}

#[test]
fn commands_use_the_settings_and_options_override_them() {
    let node = MockNode::new();
    let pool = node.directory().join("pool.json").display().to_string();
    let file = node.write(
        "cxi.toml",
        &format!(
            "[pool]\nfile = \"{pool}\"\n[job]\ntles = false\npolicy = \"slurm\"\n\
             traffic-classes = [\"bulk-data\"]\n"
        ),
    );
    let with = ["--config", file.as_str()];
    cxi(&[], &[&with[..], &["vni", "configure", "1024"]].concat()).done();
    cxi(&[], &[&with[..], &["vni", "reserve", "1"]].concat()).prints("1024\n");
    let missing = format!("{pool}.other");
    // The variable goes before the file; its earlier name is still read.
    for variable in ["CXI_POOL_FILE", "CXI_VNI_POOL"] {
        let other = [(variable, missing.as_str())];
        assert_eq!(cxi(&other, &[&with[..], &["vni", "show"]].concat()).code, 2);
    }
    let both = [("CXI_POOL_FILE", pool.as_str()), ("CXI_VNI_POOL", missing.as_str())];
    cxi(&both, &["vni", "show"]).done();

    let prolog = ["job", "prolog", "--job=1", "--uid=7", "--vni=1024", "--cores=4"];
    let made = |arguments: &[&str]| {
        let node = MockNode::new();
        let mock = node.option();
        let all = [&["--json", &mock], arguments, &prolog[..]].concat();
        let grant = cxi(&[], &all).json();
        let service = &grant["grant"]["services"][0];
        let mut limits = service["granted"].as_array().unwrap().iter();
        let tles = limits.find(|limit| limit["name"] == "TLEs").unwrap();
        (tles["max"].to_string(), service["tcs"].to_string())
    };
    assert_eq!(made(&[]), ("8".to_owned(), "[\"LOW_LATENCY\",\"BEST_EFFORT\"]".to_owned()));
    assert_eq!(made(&with), ("0".to_owned(), "[\"BULK_DATA\"]".to_owned()));
}

/// Whoever calls a setuid program must not choose what it does as its owner.
#[test]
fn a_program_with_rights_of_others_ignores_the_environment() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt as _;
    if !cxi_test_kit::root("make a setuid program of another user") {
        return;
    }
    let node = MockNode::new();
    let program = node.directory().join("cxi");
    std::fs::copy(env!("CARGO_BIN_EXE_cxi"), &program).unwrap();
    std::fs::set_permissions(node.directory(), PermissionsExt::from_mode(0o755)).unwrap();
    let said = |mode| {
        std::fs::set_permissions(&program, PermissionsExt::from_mode(mode)).unwrap();
        let mut command = std::process::Command::new(&program);
        command.args(["config", "check"]).env("CXI_FLOOR", "few").uid(12345).gid(12345);
        Said::from(command.output().unwrap())
    };
    said(0o755).mentions(2, "CXI_FLOOR");
    // Where set-user-ID has no effect, as on a file system without it, this says the same.
    let secure = said(0o4755);
    assert!(!secure.err.contains("CXI_FLOOR"), "{secure:?}");
}
