//! Destroys a job's services on all NICs: `epilog UID VNI`, as root. Fails if any is left.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use cxi_job::{Filter, Node, ReleaseOptions, ReleaseStatus};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("usage: epilog UID VNI");
    let (uid, vni) = (next()?.parse()?, next()?.parse()?);
    let tell = |waiting: &_| eprintln!("{waiting}");
    let options = ReleaseOptions::until(std::time::Duration::from_secs(5)).progress(&tell);
    let node = Node::discover(&cxi::Host::system())?;
    let release = node.release(&Filter::vnis([vni]).uid(uid), &options);
    println!("{release}");
    match release.status() {
        ReleaseStatus::Done | ReleaseStatus::NothingToDo => Ok(()),
        _ => Err("a service is left: its VNI must not be used again yet".into()),
    }
}
