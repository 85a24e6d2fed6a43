//! A controller's pool of VNIs in a file: a job gets one, and the next job gets it only when every
//! node has destroyed the first one's services.
#![allow(clippy::print_stdout)]

use std::slice;

use cxi_site::pool::log::{FileLog, SharedPool};
use cxi_site::pool::{PoolConfig, Timestamp, VniRequest};
use cxi_site::{JobId, NodeName};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let log = FileLog::new(&directory.path().join("pool"));
    let at = Timestamp::from_millis;
    // Each change is in the file before its result is returned.
    let mut pool = SharedPool::open(log, PoolConfig::new("1024-1025".parse()?), "", 0, at(0))?;
    let node = NodeName::new("node1")?;
    let (first, second) = (JobId::new("1001")?, JobId::new("1002")?);
    let one = VniRequest::vnis(1);
    println!("{first}: {}", pool.reserve(&first, &one, at(0))?);
    println!("{second}: {}", pool.reserve(&second, &one, at(10))?);

    let third = JobId::new("1003")?;
    pool.release(&first, slice::from_ref(&node), at(60_000))?;
    let refused = pool.reserve(&third, &one, at(60_010)).unwrap_err();
    println!("{third}: {refused}");
    pool.confirm(&first, &node, at(60_020))?;
    let rested = at(600_000);
    println!("{third}: {}", pool.reserve(&third, &one, rested)?);
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
