//! Programs that are linked with HPE's library, if `CXI_TEST_LIBCXI_BIN` names a directory of them.
//! Each is run on this library, and on HPE's if `CXI_TEST_LIBCXI_LIB` says where that is.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::need_bench;
use cxi_test_kit::skip;
use cxi_tests::node::{cxi_mock, possible};

const PROGRAMS: &str = "CXI_TEST_LIBCXI_BIN";
const THEIRS: &str = "CXI_TEST_LIBCXI_LIB";

/// Commands of a shell, run one after the other on one node: `$BIN` is the directory.
const SCRIPT: &str = r#"
run() {
    [ -x "$BIN/$1" ] || return 0
    echo "\$ $*"
    program=$BIN/$1
    shift
    "$program" "$@" 2>&1
    echo "[exit status $?]"
}
run cxi_stat -l
run cxi_stat -a
run cxi_service list
run cxi_service create
run cxi_service list -v
run cxi_service enable -s 2
run cxi_service delete -s 2
run cxi_service delete -s 2
run cxi_service list -v
run cxi_device_list
run fi_info -p cxi
run fi_info -l
"#;

#[test]
fn programs_of_others_do_the_same_on_this_library() {
    let bench = need_bench!();
    let Some(programs) = env::var_os(PROGRAMS) else {
        return skip(format_args!("{PROGRAMS} names no directory of programs"));
    };
    if !possible() {
        return;
    }
    let on = |library: &Path| {
        let output = Command::new(cxi_mock())
            .args(["run", "--release", "main", "--set", "disable_default_svc=0"])
            .args(["--", "sh", "-c", SCRIPT])
            .env("BIN", &programs)
            .env("LD_LIBRARY_PATH", library)
            .output()
            .expect("the server runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let ours = on(bench.libraries());
    assert!(ours.contains("$ "), "no known program in {programs:?}");
    let broken =
        |text: &str| text.contains("error while loading") || text.contains("symbol lookup");
    assert!(!broken(&ours), "{ours}");
    match env::var_os(THEIRS) {
        Some(theirs) => assert_eq!(ours, on(Path::new(&theirs))),
        None => skip(format_args!("{THEIRS} does not say where HPE's library is")),
    }
}
