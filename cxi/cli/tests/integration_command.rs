//! `cxi integration`: what it writes, keeps, refuses and removes.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use common::slurm::site_of_slurm;
use common::{MockNode, Said, assert_contains};
use tempfile::TempDir;

#[test]
fn an_installation_names_absolute_paths_and_keeps_settings() {
    let site = site_of_slurm();
    let prefix = site.directory.path().display().to_string();
    let kept = format!("Kept {prefix}/cxi.toml\n");
    assert_contains(&site.install(), &kept);
    let this = env!("CARGO_BIN_EXE_cxi");
    for (file, line) in [
        ("slurm/prolog.sh", format!("cxi={this}")),
        ("slurm/functions.sh", format!("scontrol={prefix}/bin/scontrol")),
        ("slurm/slurm.conf", format!("Prolog={prefix}/slurm/prolog.sh")),
        (
            "slurm/systemd/slurmd.service.d/cxi.conf",
            format!("ExecStartPre=-{prefix}/slurm/health-check.sh"),
        ),
    ] {
        let text = fs::read_to_string(site.path(file)).unwrap();
        assert!(text.lines().any(|found| found == line), "{file}: {text}");
    }
    for scheduler in ["slurm", "flux"] {
        // The installed settings file is valid.
        let fresh = TempDir::new().unwrap();
        let prefix = fresh.path().display().to_string();
        common::cxi(&["integration", "install", scheduler, "--prefix", &prefix]).done();
        let settings = format!("{prefix}/cxi.toml");
        common::cxi(&["--config", &settings, "config", "check"]).done();
    }
    let odd = site.path("a b").display().to_string();
    let said = common::cxi(&["integration", "install", "slurm", "--prefix", &odd]);
    assert_eq!(said.code, 2);
    assert!(!Path::new(&odd).exists());
}

/// All files below a directory, with what is in them.
fn tree(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(tree(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn an_edited_script_is_kept_until_its_replacement_is_ordered() {
    let site = site_of_slurm();
    let (script, text) = (site.path("slurm/epilog.sh"), "#!/bin/sh\n# of this site\n");
    fs::write(&script, text).unwrap();
    assert_contains(&site.install(), &format!("Kept {}\n", script.display()));
    assert_eq!(fs::read_to_string(&script).unwrap(), text);
    let prefix = site.directory.path().display().to_string();
    let status = common::cxi(&["integration", "status", "slurm", "--prefix", &prefix]).done();
    assert_contains(&status, &format!("Edited {}\n", script.display()));
    common::cxi(&["integration", "install", "slurm", "--force", "--prefix", &prefix]).done();
    assert_contains(&fs::read_to_string(&script).unwrap(), "job epilog");
    // A script that is as it was written is replaced by that of another version.
    let record = site.path("slurm/.placed.json");
    let old = fs::read_to_string(&record).unwrap().replace("job epilog", "job Epilog");
    fs::write(&record, old).unwrap();
    let before = fs::read_to_string(&script).unwrap();
    fs::write(&script, before.replace("job epilog", "job Epilog")).unwrap();
    site.install();
    assert_contains(&fs::read_to_string(&script).unwrap(), "job epilog");
}

#[test]
fn what_was_enabled_is_disabled_without_a_trace() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (prefix, systemd) =
        (path("cxi").display().to_string(), path("system").display().to_string());
    let mock = MockNode::new();
    let mocked = mock.option();
    fs::create_dir(path("system")).unwrap();
    let before = tree(directory.path());
    let run = |scheduler: &str, words: &[&str]| {
        let mut all = vec![&*mocked, "integration", words[0], scheduler, "--prefix", &prefix];
        if words[0] == "enable" {
            all.extend(["--systemd", &systemd]);
        }
        all.extend(&words[1..]);
        common::cxi(&all)
    };
    let nothing = "Nothing was changed: --yes does it\n";
    let shown = run("slurm", &["enable"]).done();
    assert!(shown.ends_with(nothing), "{shown}");
    let unit = format!("{systemd}/slurmd.service.d/cxi.conf");
    let difference = format!(
        "--- /dev/null\n+++ {unit}\n@@ -0,0 +1,3 @@\n+[Service]\n+# A node that was reset during a job \
         says so.\n+ExecStartPre=-{prefix}/slurm/health-check.sh\n"
    );
    assert_contains(&shown, &difference);
    assert_contains(&shown, &format!("Would write {unit}\n"));
    assert_eq!(tree(directory.path()), before);
    run("slurm", &["enable", "--role", "node", "--yes"]).done();
    assert!(path("system/slurmd.service.d/cxi.conf").exists());
    assert!(!path("system/cxi-slurm-sweep.timer").exists());
    run("slurm", &["enable", "--role", "controller", "--yes"]).done();
    assert!(path("system/cxi-slurm-sweep.timer").exists());
    // Settings that both use go with the last of them.
    run("flux", &["enable", "--yes"]).done();
    assert_contains(&run("slurm", &["disable"]).done(), nothing);
    assert!(path("cxi/slurm/prolog.sh").exists());
    run("slurm", &["disable", "--yes"]).done();
    assert!(path("cxi/cxi.toml").exists() && !path("cxi/slurm").exists());
    run("flux", &["disable", "--yes"]).done();
    assert_eq!(tree(directory.path()), before);
    // What somebody has edited is left to them.
    run("slurm", &["enable", "--yes"]).done();
    fs::write(path("cxi/cxi.toml"), "# of this site\n").unwrap();
    assert_contains(&run("slurm", &["disable", "--yes"]).done(), "because it was edited:");
    assert_eq!(tree(&path("cxi")).len(), 1);
}

/// As on a node whose jobs another scheduler runs.
#[test]
fn scripts_are_not_enabled_where_services_are_of_unknown_origin() {
    let directory = TempDir::new().unwrap();
    let prefix = directory.path().join("cxi").display().to_string();
    let systemd = directory.path().join("system").display().to_string();
    let mock = MockNode::new();
    mock.cxi("service create --device=cxi0 --uid=1001 --vni=1025").done();
    // Without its record, nobody knows whose it is.
    fs::remove_dir_all(mock.directory().join("state.json.d/services")).unwrap();
    let mocked = mock.option();
    let enable = |more: &[&str]| {
        let mut all = vec![&*mocked, "integration", "enable", "slurm", "--yes"];
        all.extend(["--prefix", &prefix, "--systemd", &systemd]);
        all.extend(more);
        common::cxi(&all)
    };
    let said = enable(&[]);
    assert_eq!(said.code, 4);
    assert_contains(&said.err, "no record says who made cxi0 service 2");
    assert!(!Path::new(&prefix).exists());
    enable(&["--role", "controller"]).done();
    enable(&["--despite-services"]).done();
    assert_eq!(mock.services(), 1);
}

/// Without the included file, every command of Slurm fails, and without a script every job.
#[test]
fn what_slurm_uses_is_not_removed() {
    let site = site_of_slurm();
    let prefix = site.directory.path().display().to_string();
    let conf = site.path("etc/slurm.conf");
    fs::create_dir(site.path("etc")).unwrap();
    let disable = |text: &str| {
        fs::write(&conf, text.replace("PREFIX", &prefix)).unwrap();
        let mut command =
            common::command(&["integration", "disable", "slurm", "--yes", "--prefix", &prefix]);
        Said::from(command.env("SLURM_CONF", &conf).output().unwrap())
    };
    fs::write(site.path("etc/more.conf"), format!("Epilog={prefix}/slurm/epilog.sh\n")).unwrap();
    for used in [
        "ClusterName=x\n Include  PREFIX/slurm/slurm.conf\n",
        "include ../slurm/slurm.conf # of cxi\n",
        "Prolog=PREFIX/slurm/prolog.sh\n",
        "INCLUDE more.conf\n",
    ] {
        let said = disable(used);
        assert_eq!(said.code, 4, "{used}: {said:?}");
        assert_contains(&said.err, &format!("{prefix}/etc/"));
        assert!(site.path("slurm/slurm.conf").exists());
    }
    // A file that includes itself is Slurm's problem.
    disable(
        "#include PREFIX/slurm/slurm.conf\nClusterName=x # PREFIX/slurm/\ninclude slurm.conf\n",
    )
    .done();
    assert!(!site.path("slurm").exists());
}

/// The image of a node, which is not this machine.
#[test]
fn the_image_of_a_machine_has_its_own_paths() {
    let directory = TempDir::new().unwrap();
    let root = directory.path().display().to_string();
    let path = |name: &str| directory.path().join(name);
    for directory in ["usr/sbin", "etc/slurm", "etc/systemd/system"] {
        fs::create_dir_all(path(directory)).unwrap();
    }
    fs::write(path("usr/sbin/scontrol"), "").unwrap();
    let before = tree(directory.path());
    let run = |words: &[&str]| {
        let mut command = common::command(
            &[&["integration", words[0], "slurm", "--root", &root], &words[1..]].concat(),
        );
        Said::from(command.env("PATH", "/usr/sbin").output().unwrap())
    };
    run(&["enable", "--yes"]).done();
    let script = fs::read_to_string(path("etc/cxi/slurm/functions.sh")).unwrap();
    assert_contains(&script, "\nscontrol=/usr/sbin/scontrol\n");
    let unit = "etc/systemd/system/slurmd.service.d/cxi.conf";
    let unit = fs::read_to_string(path(unit)).unwrap();
    assert_contains(&unit, "ExecStartPre=-/etc/cxi/slurm/health-check.sh\n");
    assert!(!unit.contains(&root), "{unit}");
    assert!(!run(&["status"]).done().contains("Edited"));
    fs::write(path("etc/slurm/slurm.conf"), "include /etc/cxi/slurm/slurm.conf\n").unwrap();
    assert_eq!(run(&["disable", "--yes"]).code, 4);
    fs::remove_file(path("etc/slurm/slurm.conf")).unwrap();
    run(&["disable", "--yes"]).done();
    assert_eq!(tree(directory.path()), before);
    // Nothing is left of what an earlier call has begun, either.
    assert_eq!(run(&["disable", "--yes"]).code, 8);
}

/// As with a plugin that was built: cxi removes only files of its own.
#[test]
fn flux_files_that_are_linked_or_built_are_not_lost() {
    let directory = TempDir::new().unwrap();
    let root = directory.path().display().to_string();
    let path = |name: &str| directory.path().join(name);
    let run = |words: &[&str]| {
        common::cxi(&[&["integration", words[0], "flux", "--root", &root], &words[1..]].concat())
    };
    run(&["enable", "--yes"]).done();
    fs::write(path("etc/cxi/flux/cxi.so"), "").unwrap();
    fs::create_dir_all(path("etc/flux/system/prolog.d")).unwrap();
    let link = path("etc/flux/system/prolog.d/50-slingshot.sh");
    symlink("/etc/cxi/flux/prolog.sh", &link).unwrap();
    let said = run(&["disable", "--yes"]);
    assert_eq!(said.code, 4);
    assert_contains(&said.err, "/etc/flux/system/prolog.d/50-slingshot.sh uses /etc/cxi/flux");
    fs::remove_file(&link).unwrap();
    fs::create_dir_all(path("etc/flux/system/conf.d")).unwrap();
    let settings = path("etc/flux/system/conf.d/system.toml");
    fs::write(&settings, "plugins = [{ load = \"/etc/cxi/flux/cxi.so\" }]\n").unwrap();
    assert_eq!(run(&["disable", "--yes"]).code, 4);
    fs::write(&settings, "# plugins = [{ load = \"/etc/cxi/flux/cxi.so\" }]\n").unwrap();
    let kept = "Kept, because it was not written by cxi: /etc/cxi/flux/cxi.so\n";
    assert_contains(&run(&["disable", "--yes"]).done(), kept);
    assert_eq!(tree(&path("etc/cxi")).len(), 2);
}

/// As after an upgrade.
#[test]
fn scripts_of_another_version_are_named_and_replaced() {
    let site = site_of_slurm();
    let prefix = site.directory.path().display().to_string();
    let (script, record) = (site.path("slurm/epilog.sh"), site.path("slurm/.placed.json"));
    for file in [&script, &record] {
        let old = fs::read_to_string(file).unwrap().replace("job epilog", "job Epilog");
        fs::write(file, old).unwrap();
    }
    let status = || common::cxi(&["integration", "status", "slurm", "--prefix", &prefix]).done();
    assert_contains(&status(), &format!("Of another version: {}\n", script.display()));
    let systemd = site.path("system").display().to_string();
    let enable = ["integration", "enable", "slurm", "--prefix", &prefix, "--systemd", &systemd];
    let shown = common::cxi(&[&enable[..], &["--role=controller"]].concat()).done();
    assert_contains(&shown, "\n-    why=$(\"$cxi\" job Epilog ");
    assert_contains(&shown, "\n+    why=$(\"$cxi\" job epilog ");
    assert!(!shown.contains(&format!("+++ {prefix}/slurm/prolog.sh")), "{shown}");
    common::cxi(&[&enable[..], &["--role=controller", "--yes"]].concat()).done();
    assert!(!status().contains("another"), "{}", status());
}
