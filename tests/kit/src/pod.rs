//! Network namespaces of pods.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cxi::Member;

/// A process in its own network namespace.
#[derive(Debug)]
pub struct Pod(Child);

impl Pod {
    /// Starts one; `None` where this user cannot make a namespace.
    pub fn start() -> Option<Self> {
        let unshare = |arguments: &[&str]| {
            let mut command = Command::new("unshare");
            command.args(arguments).stderr(Stdio::null());
            command
        };
        let possible = |way: &&[&str]| {
            let status = unshare(&[way, &["true"][..]].concat()).status();
            status.is_ok_and(|status| status.success())
        };
        let way = [&["--net"][..], &["--user", "--net"]].into_iter().find(possible)?;
        let child = unshare(&[way, &["sleep", "86400"][..]].concat()).spawn();
        let pod = Self(child.expect("it has just run"));
        let start = Instant::now();
        let own = Member::own_netns().expect("a namespace");
        while Member::netns_at(pod.netns()).expect("it runs") == own {
            assert!(start.elapsed() < Duration::from_secs(20), "it stays in our namespace");
            sleep(Duration::from_millis(2));
        }
        Some(pod)
    }

    /// The file of its namespace.
    pub fn netns(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.0.id()).into()
    }

    /// The member of a service that it is.
    pub fn member(&self) -> Member {
        Member::netns_at(self.netns()).expect("it runs")
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
