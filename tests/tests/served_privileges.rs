//! Privileges for serving a node, and the reports where something is missing.

use std::process::{Command, Output};

use cxi_test_kit::skip;
use cxi_tests::node::{DEVICE, client, cxi_mock, errors, need_node, printed, run};

/// Report of the client; nodes that share standard error may put their lines into each other's.
const REFUSED: &str = "allocate: SVC_ALLOC: EPERM";
const BECOME: &str = "become an ordinary user, whom all other tests are about here";

/// Runs the server as an ordinary user, in a mount namespace in which `/dev/fuse` has that mode
/// and all users can read the programs.
fn as_user(mode: &str, script: &str) -> Option<Output> {
    let prepare = format!(
        "mount -t tmpfs -o mode=755 none /mnt && mknod -m {mode} /mnt/fuse c 10 229 && \
         cp \"$1\" /mnt/server && cp \"$2\" /mnt/client && mount --bind /mnt/fuse /dev/fuse && \
         cd / && exec /mnt/client as 54321 sh -euc \"$3\""
    );
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", &prepare, "sh", cxi_mock(), client(), script])
        .env_remove("CXI_MOCK_DIR")
        .envs(profile())
        .output();
    match output {
        Ok(output) => Some(output),
        Err(error) => {
            skip(format_args!("there is no unshare(1): {error}"));
            None
        }
    }
}

/// Returns the file in which to count lines. Process IDs in a node repeat, and this user may not
/// add to a profile that root has written under the same one.
fn profile() -> Option<(&'static str, String)> {
    let name = "LLVM_PROFILE_FILE";
    let pattern = std::env::var(name).ok()?;
    let unique = format!("{}-%p", std::process::id());
    Some((name, pattern.replace("%p", &unique)))
}

#[test]
fn an_ordinary_user_is_root_inside() {
    need_node!(cxi_test_kit::root(BECOME));
    let script = format!(
        "/mnt/server run --door fuse --nics 2 --network -- sh -euc 'id -u; grep -c hsn /proc/net/dev; ls /dev/cxi*; /mnt/client cycle {DEVICE}; \
         /mnt/client windows {DEVICE}; \
         cat /sys/class/cxi_user/cxi1/device/vendor'"
    );
    let Some(output) = as_user("666", &script) else { return };
    if output.status.code() == Some(77) {
        return skip(errors(&output));
    }
    let text = printed(&output);
    assert_eq!(text, "0\n2\n/dev/cxi0\n/dev/cxi1\nok\nENODEV\n0x1590");
    let said = errors(&output);
    assert_eq!(said.matches("it needs root").count(), 1, "{said}");
}

#[test]
fn an_ordinary_user_has_a_cluster() {
    need_node!(cxi_test_kit::root(BECOME));
    let script = format!(
        "/mnt/server cluster --nodes 2 --network run -- \
         sh -euc 'echo $(hostname) $(id -u) $(grep -c eth0 /proc/net/dev); \
         /mnt/client cycle {DEVICE}' | sort"
    );
    let Some(output) = as_user("666", &script) else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    if text.is_empty() {
        return skip(errors(&output));
    }
    assert_eq!(text, "n1 0 1\nn2 0 1\nok\nok\n", "{output:?}");
    let script = format!(
        "/mnt/server cluster --nodes 2 --as-user run -- \
         sh -uc 'echo $(hostname) $(id -u) $(/mnt/client count {DEVICE}); \
         /mnt/client allocate {DEVICE} 55 54321 || true' | sort"
    );
    let Some(output) = as_user("666", &script) else { return };
    assert_eq!(printed(&output), "n1 54321 1\nn2 54321 1", "{output:?}");
    assert_eq!(errors(&output).matches(REFUSED).count(), 2, "{output:?}");
}

#[test]
fn an_ordinary_user_may_stay_one() {
    need_node!(cxi_test_kit::root(BECOME));
    let script = format!(
        "/mnt/server run --door fuse --as-user -- sh -uc 'id -u; /mnt/client count {DEVICE}; \
         /mnt/client allocate {DEVICE} 55 54321' || true; \
         /mnt/server run --door fuse --strict-admin -- sh -uc '/mnt/client allocate {DEVICE} 55 0' || true"
    );
    let Some(output) = as_user("666", &script) else { return };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.is_empty() {
        return skip(errors(&output));
    }
    assert_eq!(text, "54321\n1\n", "{output:?}");
    assert_eq!(errors(&output).matches(REFUSED).count(), 2, "{output:?}");
}

#[test]
fn missing_fuse_is_said() {
    need_node!(cxi_test_kit::root("take FUSE away"));
    let Some(output) = as_user("600", "/mnt/server run --door fuse -- true") else { return };
    assert_eq!(output.status.code(), Some(77), "{output:?}");
    let text = errors(&output);
    assert!(text.contains("chmod 666 /dev/fuse"), "{text}");
}

#[test]
fn capabilities_count_where_the_node_says() {
    need_node!();
    // As root in the initial namespace the strict rule changes nothing.
    if cxi_test_kit::is_root() {
        let output = run(&["--strict-admin", "--", client(), "cycle", DEVICE]);
        assert_eq!(printed(&output), "ok");
    } else {
        skip("the strict rule refuses everything to an ordinary user");
    }
}
