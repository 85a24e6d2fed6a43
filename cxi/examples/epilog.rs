//! Destroys a job's services on all NICs. `epilog UID VNI`, as root; fails if any is left.

use std::time::Duration;

use cxi::job::{Filter, Node, ReleaseOptions, ReleaseStatus};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("usage: epilog UID VNI");
    let filter = Filter::member(cxi::Member::Uid(next()?.parse()?)).and_vnis([next()?.parse()?]);
    let tell = |waiting: &_| eprintln!("{waiting}");
    let options = ReleaseOptions::until(Duration::from_secs(5)).progress(&tell);
    let release = Node::discover(&cxi::Host::system())?.release(&filter, &options);
    println!("{release}");
    match release.status() {
        ReleaseStatus::Done | ReleaseStatus::NothingToDo => Ok(()),
        _ => Err("the job's VNI must not be used again yet".into()),
    }
}
