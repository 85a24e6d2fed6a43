//! A plugin that is killed leaves nothing that its record does not lead to.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cxi_ioctl::{Intercept, Transport as _};
use cxi_job::Node;
use cxi_mock::Credentials;

use crate::pod;
use crate::support::Site;

/// So many commands go through on all NICs together; at the next one the process ends.
fn mortal(site: &Site, commands: u64) -> Node {
    let left = Arc::new(AtomicU64::new(u64::MAX));
    let files = site.mock.devices(&Credentials::root()).unwrap().into_iter();
    let node = Node::from_transports(files.map(|(number, file)| {
        let left = Arc::clone(&left);
        let file = Intercept::new(file, move |file, request| {
            let one_less = |left: u64| left.checked_sub(1);
            let spent = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
            // Unwinding gives up locks as a kill does, and writes no files.
            assert!(spent.is_ok(), "killed");
            file.submit(request)
        });
        (number, file)
    }));
    left.store(commands, Ordering::SeqCst);
    node
}

/// Kills a command after every number of commands to the NICs; how often it was.
fn kill(site: &Site, command: &str, netns: &str, after: impl Fn(&Site, u64)) -> u64 {
    let variables = [
        ("CNI_COMMAND", command),
        ("CNI_CONTAINERID", "one"),
        ("CNI_IFNAME", "eth0"),
        ("CNI_NETNS", netns),
    ];
    for commands in 0.. {
        assert!(commands < 1000, "it never ends");
        let node = mortal(site, commands);
        let call = AssertUnwindSafe(|| site.call_on(node, &variables));
        match catch_unwind(call) {
            Ok(answer) => {
                answer.unwrap();
                return commands;
            }
            Err(_) => after(site, commands),
        }
    }
    unreachable!()
}

#[test]
fn add_can_be_killed_at_any_command() {
    let pod = pod!();
    let site = Site::new();
    let netns = pod.netns().display().to_string();
    let kills = kill(&site, "ADD", &netns, |site, commands| {
        // As often by DEL as by the next ADD.
        if commands % 2 == 0 {
            site.del("one").unwrap();
            assert_eq!(site.services().len(), 0, "after {commands} commands");
            assert_eq!(site.records().len(), 0, "after {commands} commands");
        }
    });
    assert!(kills > 8, "{kills}");
    site.check("one", &pod).unwrap();
    assert_eq!((site.services().len(), site.records().len()), (2, 1));
}

#[test]
fn del_can_be_killed_at_any_command() {
    let pod = pod!();
    let site = Site::new();
    site.add("one", &pod).unwrap();
    let kills = kill(&site, "DEL", "", |site, commands| {
        let left = site.services().len();
        assert!(left == 0 || site.records().len() == 1, "after {commands}");
    });
    assert!(kills > 2, "{kills}");
    assert_eq!((site.services().len(), site.records().len()), (0, 0));
}
