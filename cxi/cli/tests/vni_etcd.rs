//! A pool in etcd, with two controllers of which one takes over.

mod common;
#[path = "../../vni-etcd/tests/server/mod.rs"]
mod server;

use std::fs;
use std::process::Command;

use common::{Arguments, Said, assert_contains, clean, command};
use server::Etcd;
use tempfile::TempDir;

/// The things that two controllers share: settings, decisions and etcd.
struct Site {
    directory: TempDir,
}

impl Site {
    fn new(urls: &[String], more: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().display();
        let settings = format!(
            "[pool]\nstore = \"etcd\"\n[controller]\nrecords = \"{path}/decisions\"\nwait = \
             \"300ms\"\n[etcd]\nendpoints = {urls:?}\ntimeout = \"5s\"\n{more}"
        );
        fs::write(directory.path().join("cxi.toml"), settings).unwrap();
        Self { directory }
    }

    /// Runs a command on a controller.
    fn on(&self, controller: &str, arguments: &(impl Arguments + ?Sized)) -> Said {
        self.command(controller, arguments).output().unwrap().into()
    }

    fn command(&self, controller: &str, arguments: &(impl Arguments + ?Sized)) -> Command {
        let path = self.directory.path();
        let mut command = command(&[]);
        clean(&mut command).env("CXI_CONFIG", path.join("cxi.toml"));
        command.env("CXI_VNI_EPOCH", path.join(controller).join("epoch"));
        command.args(arguments.words());
        command
    }

    fn reserve(&self, controller: &str, job: &str) -> Said {
        self.on(
            controller,
            &["job", "reserve", job, "--uid=1000", "--nodes=n1"],
        )
    }
}

#[test]
fn a_controller_takes_over_and_the_one_before_is_refused() {
    let Some(mut etcd) = Etcd::members(3, "http", &[]) else {
        return;
    };
    let urls: Vec<String> = etcd.iter().map(Etcd::url).collect();
    let site = Site::new(&urls, "");
    assert_eq!(site.on("a", "vni show").code, 2, "there is no pool");
    site.on("a", "vni configure 1024-1026").done();
    // A machine that has never led does not query etcd for metrics.
    let metrics = || site.on("a", "metrics --mock").out;
    assert!(!metrics().contains("cxi_vni_pool"), "{}", metrics());
    site.on("a", "vni lead")
        .prints("This controller leads cxi/vni in etcd: epoch 1\n");
    assert_contains(&metrics(), "cxi_vni_pool_vnis{state=\"free\"} 3");
    site.reserve("a", "1").prints("1024\n");
    // The next endpoint responds.
    etcd[0].kill();
    site.reserve("a", "2").prints("1025\n");
    let other = site.reserve("b", "3");
    other.mentions(1, "a leader of epoch 1 has taken the log of the pool over");
    assert_contains(&other.err, "cxi vni lead");
    site.on("b", "vni lead")
        .prints("This controller leads cxi/vni in etcd: epoch 2\n");
    site.reserve("b", "2").prints("1025\n");
    site.reserve("b", "3").prints("1026\n");
    assert_contains(&site.reserve("a", "4").err, "a leader of epoch 2");
    site.on("b", "job release 1").done();
    site.on("b", "job confirm 1 --node n1").done();
    site.on("b", "job sweep -- echo 2 3")
        .ended(8, "Nothing to do: no such job is running\n");
    let pool = site.on("b", "--json vni show").json();
    assert_eq!(
        (pool["free"].as_u64(), pool["reserved"].as_u64()),
        (Some(1), Some(2))
    );
    // One of three members is not a majority.
    etcd[1].kill();
    let mut alone = site.command("b", "vni show");
    let alone: Said = alone.env("CXI_WAIT", "1s").output().unwrap().into();
    alone.mentions(1, "cannot read the log of the pool: etcd at http://");
}

#[test]
fn what_is_wrong_with_the_settings_is_named() {
    let one = ["https://127.0.0.1:9".to_owned()];
    for (urls, more, why) in [
        (
            &[][..],
            "",
            "pool.store is etcd: expected the setting etcd.endpoints",
        ),
        (
            &one,
            "user = \"cxi\"",
            "expected both etcd.user and etcd.password-file, or neither",
        ),
        (
            &one,
            "client-key = \"/k\"",
            "expected both etcd.client-certificate and etcd.client-key, or neither",
        ),
        (
            &one,
            "certificate = \"/nowhere/ca\"",
            "no certificate authority of /nowhere/ca",
        ),
        (
            &one,
            "certificate = \"no\"\nuser = \"cxi\"\npassword-file = \"/nowhere/password\"",
            "/nowhere/password: cannot be read",
        ),
    ] {
        let said = Site::new(urls, more).on("a", "vni show");
        said.mentions(2, why);
    }
}
