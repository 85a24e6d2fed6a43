//! Network namespaces of pods.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cxi::Member;

/// A process in its own network namespace.
#[derive(Debug)]
pub(crate) struct Pod(Child);

impl Pod {
    /// `None` where this user cannot make a namespace.
    pub(crate) fn start() -> Option<Self> {
        let own = Member::own_netns().ok()?;
        let mut command = Command::new("unshare");
        command.args(["--net", "sleep", "infinity"]).stderr(Stdio::null());
        let mut pod = Self(command.spawn().ok()?);
        let start = Instant::now();
        while Member::netns_at(pod.netns()).is_ok_and(|netns| netns == own) {
            if pod.0.try_wait().ok()?.is_some() || start.elapsed() > Duration::from_secs(20) {
                return None;
            }
            sleep(Duration::from_millis(2));
        }
        pod.0.try_wait().ok()?.is_none().then_some(pod)
    }

    pub(crate) fn netns(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.0.id()).into()
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
