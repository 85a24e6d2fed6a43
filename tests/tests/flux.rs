//! The plugin and the scripts for Flux in a real Flux, that of `CXI_TEST_FLUX_PREFIX`, on two mock nodes.
//!
//! Each test has its own instance, which `tests/flux/cluster` sets up.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use cxi_fabric_manager::model::TreeRequest;
use cxi_test_kit::{Directory, FabricManager, is_root, skip};
use cxi_tests::node::{self, Run, printed};

const CXI: &str = env!("CARGO_BIN_EXE_test-cxi");
const PREFIX: &str = "CXI_TEST_FLUX_PREFIX";
const CLUSTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/flux/cluster");

/// Functions that the commands of a test call.
const FUNCTIONS: &str = r#"
# How many services the first NIC of a node has beside the default one.
services() { echo $(($("$DIR/on" "$1" "$CXI" --json -d cxi0 service list | grep -c '"enable"') - 1)); }
has() { until [ "$(services "$1")" = "$2" ]; do sleep 0.2; done; }
state() { flux jobs -no '{state}' "$1"; }
free() { "$CXI" vni show | grep -c "$1 free"; }
ctl() { "$CXI_MOCK_SERVER" ctl --dir "$DIR/cluster" --node "$@" > /dev/null; }
# Until both brokers are there.
online() { until [ "$(timeout 5 flux resource status -s online -no '{nnodes}' 2> /dev/null)" = 2 ]; do sleep 0.2; done; }
# As its timer does.
sweep() { setpriv --reuid "$OWNER" --clear-groups "$DIR/flux/sweep.sh" > /dev/null; }
# What an administrator sees: no drained node, and nothing left of any job.
nothing_is_left() {
    sweep
    for node in n1 n2; do "$DIR/on" "$node" "$DIR/flux/clean.sh" > /dev/null; done
    has n1 0
    has n2 0
    sweep
    "$CXI" job list --controller | sed 1d
    flux resource drain -no 'drained: {reason}'
    echo nothing is left
}
"#;

/// Returns the directory in which the Flux in the `PATH` is installed.
fn installed() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let flux = env::split_paths(&path).find(|place| place.join("flux").is_file())?;
    Some(flux.parent()?.to_owned())
}

/// The Flux to test with; `None`, and a message, where it cannot run.
fn prefix() -> Option<PathBuf> {
    let Some(prefix) = env::var_os(PREFIX).map(PathBuf::from).or_else(installed) else {
        skip(format_args!("there is no flux, and {PREFIX} does not name one"));
        return None;
    };
    if !is_root() || !node::possible() {
        skip("prologs need root and served nodes");
        return None;
    }
    if !["cc", "pkg-config"].iter().all(|program| cxi_test_kit::has(program)) {
        return None;
    }
    Some(prefix)
}

/// Returns the output of commands in an instance that this user owns, with VNIs and more settings.
fn in_instance(owner: &str, vnis: &str, settings: &str, commands: &str) -> Option<String> {
    let prefix = prefix()?;
    let directory = Directory::new();
    // Jobs of other users find what is below.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let commands = directory.write("commands", &format!("set -eu\n{FUNCTIONS}{commands}"));
    let output = Command::new("timeout")
        .args(["400", CLUSTER, "sh", &commands])
        .env(PREFIX, prefix)
        .env("DIR", directory.join("site"))
        .env("CXI", CXI)
        .env("CXI_MOCK_SERVER", node::cxi_mock())
        .env("CXI_FLUX_VNIS", vnis)
        .env("CXI_FLUX_SETTINGS", settings)
        .env("CXI_FLUX_USER", owner)
        .env_remove("FLUX_URI")
        .run();
    Some(printed(&output))
}

fn flux(vnis: &str, settings: &str, commands: &str) -> Option<String> {
    in_instance("root", vnis, settings, commands)
}

fn count(said: &str, line: &str) -> usize {
    said.lines().filter(|found| *found == line).count()
}

/// With the shell plugin of flux-coral2, too, where it is installed.
#[test]
fn a_job_has_services_and_its_tasks_an_environment() {
    let commands = r"
flux run -N2 sh -c 'env | grep ^SLINGSHOT_'
flux run -N2 -o cray-slingshot.vnicount=4 printenv SLINGSHOT_VNIS
flux run -o cray-slingshot.vnicount=5 true 2>&1 | grep -o 'type=slingshot severity=0 .*' || true
SLINGSHOT_VNIS=9 flux run -o cray-slingshot=off sh -c 'echo none: $SLINGSHOT_VNIS'
nothing_is_left
";
    let Some(said) = flux("1024-1028", "", commands) else { return };
    for line in [
        "SLINGSHOT_VNIS=1024",
        "SLINGSHOT_SVC_IDS=2,2",
        "SLINGSHOT_DEVICES=cxi0,cxi1",
        "SLINGSHOT_TCS=0xa",
        "1025,1026,1027,1028",
    ] {
        assert_eq!(count(&said, line), 2, "{said}");
    }
    assert!(said.contains(" 1 to 4 VNIs "), "{said}");
    assert!(said.ends_with("none:\nnothing is left"), "{said}");
}

/// A job within a job has the services of the outer one, on each node those of that node.
#[test]
fn jobs_within_a_job_inherit_its_environment() {
    let commands = r#"
"$DIR/on" n2 "$CXI" service create --uid=9 --vni=9 > /dev/null
cat > "$DIR/inner" << 'END'
#!/bin/sh
flux run -N2 sh -c 'echo "$SLINGSHOT_VNIS on $(uname -n) $SLINGSHOT_SVC_IDS"'
flux batch --quiet -N2 --output="$DIR/deep" --wrap flux run -N2 printenv SLINGSHOT_VNIS
flux queue drain
END
flux batch --quiet -N2 --output="$DIR/out" "$DIR/inner"
flux queue drain
cat "$DIR/out" "$DIR/deep"
"#;
    let Some(said) = flux("1024-1025", "", commands) else { return };
    assert_eq!(count(&said, "1024 on n1 2,2"), 1, "{said}");
    assert_eq!(count(&said, "1024 on n2 3,3"), 1, "{said}");
    assert_eq!(count(&said, "1024"), 2, "{said}");
}

/// Three jobs with TLEs fit a NIC.
#[test]
fn forty_jobs_with_tles_share_two_nodes() {
    let commands = r#"
flux submit --quiet --cc=1-40 -n1 sh -c 'sleep 3; echo "has less: $SLINGSHOT_CXI_SCALED_BACK"'
flux queue drain
flux jobs -ano '{status} {returncode}'
for job in $(flux jobs -ano '{id}'); do flux job attach "$job" 2>&1; done
nothing_is_left
"#;
    let Some(said) = flux("1024-1099", "[job]\ntles = true\n", commands) else { return };
    assert_eq!(count(&said, "COMPLETED 0"), 40, "{said}");
    // The user is told in the output, and the program in its environment.
    let told = said.matches("slingshot: less than the job asks for of TLEs").count();
    assert!(told > 0 && told == count(&said, "has less: TLEs"), "{said}");
    assert!(said.ends_with("\nnothing is left") && !said.contains("drained"), "{said}");
}

#[test]
fn what_cannot_be_scaled_back_fails_the_job_and_not_the_node() {
    let commands = r#"
"$DIR/on" n2 "$CXI" service create -d all --uid=9 --vni=9 --limit=txqs=1023:1023 > /dev/null
flux submit -N2 true > /dev/null
flux queue drain
flux job eventlog "$(flux job last)" | grep -o 'exception type="slingshot" severity=0 .*'
flux resource drain -no 'drained: {reason}'
services n1
flux run --requires=host:n1 printenv SLINGSHOT_VNIS
"#;
    let Some(said) = flux("1024-1025", "[job]\nmode = \"strict\"\n", commands) else { return };
    assert!(said.contains("note=\"n2: error: cxi0-1: SVC_ALLOC: not enough TXQs"), "{said}");
    assert!(said.ends_with("\n0\n1025"), "{said}");
}

/// As for a NIC that is broken.
#[test]
fn a_prolog_that_fails_drains_the_node_and_says_why() {
    let commands = r#"
ctl n2 fault SVC_ALLOC:EIO
flux submit -N2 true > /dev/null
flux queue drain
flux job eventlog "$(flux job last)" | grep -o 'exception type="slingshot" severity=1 .*'
flux resource drain -no '{nodelist} {reason}'
"#;
    let Some(said) = flux("1024-1025", "", commands) else { return };
    let drained = said.lines().last().unwrap_or_default();
    assert!(drained.starts_with("n2 slingshot: n2: error: "), "{said}");
    assert!(said.contains("note=\"n2: error: "), "{said}");
}

/// Without systemd, Flux only logs that housekeeping has failed.
#[test]
fn no_vni_is_used_again_before_it_is_destroyed_everywhere() {
    let commands = r#"
ctl n2 fault SVC_DESTROY:EBUSY
flux run -N2 printenv SLINGSHOT_VNIS
until flux dmesg | grep -q "housekeeping: .*nonzero exit code"; do sleep 0.2; done
"$CXI" job list --controller | sed 1d | grep -o 'ended .*'
flux run --requires=host:n1 true 2>&1 | grep -o 'failed to reserve.*' || true
ctl n2 clear-faults
"$DIR/on" n2 "$DIR/flux/clean.sh" > /dev/null
flux run -N2 printenv SLINGSHOT_VNIS
nothing_is_left
"#;
    let Some(said) = flux("1024", "", commands) else { return };
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[..3], ["1024", "1024", "ended  1024  waits for n2"], "{said}");
    assert!(lines[3].starts_with("failed to reserve 1 VNI: 0 available"), "{said}");
    assert_eq!(lines[4..], ["1024", "1024", "nothing is left"], "{said}");
}

/// Without systemd, jobs end with the broker of their node.
#[test]
fn a_broker_that_is_killed_ends_its_jobs_and_no_others() {
    let commands = r#"
here=$(flux submit -n1 --requires=host:n1 sleep 1000)
there=$(flux submit -n1 --requires=host:n2 sleep 1000)
both=$(flux submit -n33 sleep 1000)
has n1 2
has n2 2
"$DIR/crash" n2
until [ "$(state "$there") $(state "$both")" = "INACTIVE INACTIVE" ]; do sleep 0.2; done
flux run --requires=host:n1 true 2>&1 | grep -o 'failed to reserve.*' || true
"$DIR/start" n2
online
echo "here: $(state "$here") with $(services n1), n2 has $(services n2)"
flux run -N2 -n2 printenv SLINGSHOT_VNIS
flux run --requires=host:n2 printenv SLINGSHOT_VNIS
flux cancel "$here"
flux job wait-event "$here" clean > /dev/null
nothing_is_left
"#;
    let Some(said) = flux("1024-1026", "", commands) else { return };
    let lines: Vec<_> = said.lines().collect();
    assert!(lines[0].starts_with("failed to reserve 1 VNI: 0 available"), "{said}");
    assert_eq!(
        lines[1..],
        ["here: RUN with 1, n2 has 0", "1025", "1025", "1026", "nothing is left"],
        "{said}"
    );
}

/// Jobs are kept alive by systemd, which is not here: Flux ends them when it has started again, and
/// until then they have what they had.
#[test]
fn jobs_have_what_they_had_until_a_restarted_flux_ends_them() {
    let commands = r#"
job=$(flux submit -n1 --requires=host:n1 sleep 1000)
other=$(flux submit -n1 --requires=host:n2 sleep 1000)
has n1 1
has n2 1
sleep 1
"$DIR/crash" n1
"$DIR/crash" n2 2> /dev/null || true
for node in n1 n2; do "$DIR/on" "$node" "$DIR/flux/clean.sh" > /dev/null; done
echo "$(services n1) $(services n2)"
"$CXI" job list --controller | sed 1d | grep -c running
"$DIR/start" n1
"$DIR/start" n2
online
flux job wait-event "$job" clean > /dev/null
flux job wait-event "$other" clean > /dev/null
flux run -N2 printenv SLINGSHOT_VNIS
nothing_is_left
"#;
    let Some(said) = flux("1024-1026", "", commands) else { return };
    assert_eq!(said, "1 1\n2\n1026\n1026\nnothing is left");
}

/// As after the loss of its disk.
#[test]
fn jobs_that_flux_has_forgotten_are_swept() {
    let commands = r#"
flux submit --quiet -n33 sleep 1000
has n1 1
has n2 1
"$DIR/crash" n1
"$DIR/crash" n2 2> /dev/null || true
rm -r "$DIR"/state/*
"$DIR/start" n1
"$DIR/start" n2
online
echo "$(services n1) $(services n2)"
nothing_is_left
"#;
    let Some(said) = flux("1024-1026", "", commands) else { return };
    assert_eq!(said, "1 1\nnothing is left");
}

/// A fabric manager, and settings with which jobs of two nodes get one tree.
fn fabric_manager() -> (FabricManager, String) {
    let manager = FabricManager::start();
    let settings = manager.settings("5s");
    let settings = format!("[collectives]\ntrees = 1\nmin-nodes = 2\n{settings}");
    (manager, settings)
}

/// Programs of jobs make trees and leave them, as after an abort.
#[test]
fn a_job_has_trees_and_each_job_within_it_frees_its_own() {
    let (manager, settings) = fabric_manager();
    let body = TreeRequest::of_libfabric("JOB", "STEP", &[0x14433, 0x14434], 1024);
    let body = serde_json::to_string(&body).expect("it is JSON");
    let commands = r#"
cat > "$DIR/tree" << END
import json, os, urllib.request
coll = lambda name: os.environ["FI_CXI_COLL_" + name]
body = json.loads('BODY')
body = {name: {"JOB": coll("JOB_ID"), "STEP": coll("JOB_STEP_ID")}.get(str(value), value) for name, value in body.items()}
headers = {"Authorization": "Bearer " + coll("MCAST_TOKEN"), "Content-Type": "application/json"}
request = urllib.request.Request(coll("FABRIC_MGR_URL"), json.dumps(body).encode(), headers)
print("tree:", urllib.request.urlopen(request).status, coll("JOB_STEP_ID").count("/"), os.environ["FI_CXI_HWCOLL_ADDRS_PER_JOB"])
END
cat > "$DIR/inner" << 'END'
#!/bin/sh
for job in 1 2; do flux run -N2 sh -c '[ "$(uname -n)" = n2 ] || python3 "$DIR/tree"'; done
END
flux batch --quiet -N2 --output="$DIR/out" "$DIR/inner"
flux queue drain
cat "$DIR/out"
flux run -n1 printenv FI_CXI_COLL_JOB_ID || echo none for small jobs
flux run -n1 -o cray-slingshot.hwcoll sh -c 'echo "unless they ask: ${FI_CXI_COLL_JOB_ID:+a reservation}"'
nothing_is_left
"#;
    let commands = commands.replace("BODY", &body);
    let Some(said) = flux("1024-1026", &settings, &commands) else { return };
    assert_eq!(
        said,
        "tree: 200 1 1\ntree: 200 1 1\nnone for small jobs\nunless they ask: a reservation\nnothing is left"
    );
    manager.assert_quiet();
}

#[test]
fn without_a_fabric_manager_a_job_starts_and_its_eventlog_says_so() {
    let (manager, settings) = fabric_manager();
    manager.set_listening(false).expect("it listens");
    let commands = r#"
flux run -N2 sh -c 'env | grep ^FI_CXI_ || echo "$SLINGSHOT_VNIS"'
flux job eventlog "$(flux job last)" | grep -o 'severity=4 note="the job starts without hardware collectives'
nothing_is_left
"#;
    let Some(said) = flux("1024-1026", &settings, commands) else { return };
    assert_eq!(
        said,
        "1024\n1024\nseverity=4 note=\"the job starts without hardware collectives\nnothing is left"
    );
}

/// With flux-security: the brokers run as one user, and the job as another one.
#[test]
fn an_instance_of_many_users_gives_each_job_to_its_user() {
    let Some(prefix) = prefix() else { return };
    let imp = prefix.join("libexec/flux/flux-imp");
    if fs::metadata(&imp).map_or(0, |imp| imp.permissions().mode()) & 0o4000 == 0 {
        return skip(format_args!("{} is not there, or not setuid", imp.display()));
    }
    if !cxi_test_kit::has("munged") {
        return;
    }
    let commands = r#"
as_nobody() { "$DIR/on" n1 setpriv --reuid nobody --clear-groups env HOME=/ FLUX_URI="$FLUX_URI" "$@"; }
as_nobody flux run -N2 -n2 sh -c 'echo "$(id -un) has $SLINGSHOT_VNIS"; "$CXI" service list | grep -c "uid $(id -u)"'
job=$(as_nobody flux submit -n33 sleep 1000)
has n1 1
has n2 1
"$DIR/crash" n2
flux job wait-event "$job" clean > /dev/null
"$DIR/start" n2
online
as_nobody flux run -N2 -n2 printenv SLINGSHOT_VNIS
nothing_is_left
"#;
    let Some(said) = in_instance("daemon", "1024-1026", "", commands) else { return };
    let lines: Vec<_> = said.lines().collect();
    let first = ["1", "1", "nobody has 1024", "nobody has 1024"];
    let mut told = lines[..4].to_vec();
    told.sort_unstable();
    assert_eq!(told, first, "{said}");
    assert_eq!(lines[4..], ["1026", "1026", "nothing is left"], "{said}");
}
