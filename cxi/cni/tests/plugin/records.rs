//! Records that must not be trusted, or waited for.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
use std::path::Path;
use std::process::Command;

use cxi_cni::Code;
use cxi_test_kit::skip;
use serde_json::{Value, json};

use crate::pod;
use crate::support::{Site, refused};

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[test]
fn a_record_that_names_another_file_removes_nothing() {
    let pod = pod!();
    let site = Site::new();
    site.add("one", &pod).unwrap();
    let victim = site.directory.path().join("victim:one:eth0.json");
    fs::write(&victim, "precious").unwrap();
    let path = &site.records()[0];
    let mut record: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    record["record"]["attachment"]["network"] = json!("../victim");
    for boot in [record["record"]["boot"].clone(), json!("an earlier one")] {
        record["record"]["boot"] = boot;
        fs::write(path, record.to_string()).unwrap();
        let said = refused(site.del("one"), Code::Decoding);
        assert!(said.contains("it names another attachment"), "{said}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!((site.services().len(), site.records().len()), (2, 1));
    }
}

/// A temporary file that `durable::replace` left, because the process was killed before the rename,
/// is removed.
#[test]
fn what_a_killed_call_left_of_a_record_is_removed() {
    let pod = pod!();
    let site = Site::new();
    site.add("one", &pod).unwrap();
    let record = site.records().remove(0);
    let name = record.file_name().unwrap().to_str().unwrap();
    let unfinished = record.with_file_name(format!(".{name}.a1b2c3.new"));
    fs::write(&unfinished, "{").unwrap();
    site.del("one").unwrap();
    assert!(!unfinished.exists());
}

#[test]
fn a_record_that_is_no_file_is_an_error_at_once() {
    let pod = pod!();
    let site = Site::new();
    site.add("one", &pod).unwrap();
    let path = &site.records()[0];
    let no_file: [fn(&Path); 3] =
        [pipe, |path| symlink("/dev/zero", path).unwrap(), |path| fs::create_dir(path).unwrap()];
    fs::remove_file(path).unwrap();
    for make in no_file {
        make(path);
        site.del("one").unwrap_err();
        assert_eq!(site.services().len(), 2);
        fs::remove_file(path).or_else(|_| fs::remove_dir(path)).unwrap();
    }
}

#[test]
fn a_pipe_in_place_of_a_pods_vnis_is_not_waited_for() {
    let pod = pod!();
    let site = Site::new();
    let path = site.directory.path().join("vnis");
    pipe(&path);
    let source = json!({"source": "file", "path": path});
    refused(site.set_cxi("vnis", source).add("one", &pod), Code::Io);
}

#[test]
fn a_state_directory_behind_a_link_of_another_user_is_refused() {
    let site = Site::new();
    let path = |name| site.directory.path().join(name);
    let (own, elsewhere) = (path("run"), path("elsewhere"));
    symlink("second", &own).unwrap();
    symlink(&elsewhere, path("second")).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    site.del("one").unwrap();
    for link in ["run", "second"] {
        if let Err(error) = lchown(path(link), Some(4711), None) {
            skip(format_args!("a link cannot be given away: {error}"));
            return;
        }
        fs::remove_dir_all(elsewhere.join("cni")).ok();
        let said = refused(site.del("one"), Code::Io);
        let named = format!("symbolic link {} of another user", path(link).display());
        assert!(said.contains(&named), "{said}");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        lchown(path(link), Some(0), None).unwrap();
    }
    // Links that lead in a circle end.
    fs::remove_file(path("second")).unwrap();
    symlink("run", path("second")).unwrap();
    refused(site.del("one"), Code::Io);
}

#[test]
fn records_that_others_can_write_are_not_believed() {
    let pod = pod!();
    let site = Site::new();
    site.add("one", &pod).unwrap();
    let state = site.state();
    for mode in [0o777, 0o770, 0o1777] {
        fs::set_permissions(&state, fs::Permissions::from_mode(mode)).unwrap();
        let said = refused(site.del("one"), Code::Io);
        assert!(said.contains("other users can write to it"), "{said}");
    }
    assert_eq!(site.services().len(), 2);
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    site.del("one").unwrap();
    assert_eq!(site.services().len(), 0);
}
