//! A controller's pool of VNIs: a job gets one, and the next job gets it only when every node has
//! destroyed the first one's services.
#![allow(clippy::print_stdout)]

use cxi_job::pool::{PoolConfig, Timestamp, VniPool, VniRequest};
use cxi_job::{JobId, NodeName};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut pool = VniPool::new(PoolConfig::new("1024-1025".parse()?))?;
    let node = NodeName::new("node1")?;
    let (first, second) = (JobId::new("1001")?, JobId::new("1002")?);

    // Each change is an event, to be logged before anything is done with it.
    let at = Timestamp::from_millis;
    println!(
        "{}: {}",
        first,
        pool.reserve(&first, &VniRequest::vnis(1), at(0))?.vnis
    );
    println!(
        "{}: {}",
        second,
        pool.reserve(&second, &VniRequest::vnis(1), at(10))?.vnis
    );

    let third = JobId::new("1003")?;
    pool.release(&first, std::slice::from_ref(&node), at(60_000))?;
    let refused = pool
        .reserve(&third, &VniRequest::vnis(1), at(60_010))
        .unwrap_err();
    println!("{third}: {refused}");
    pool.confirm(&first, &node, at(60_020))?;
    let rested = at(600_000);
    println!(
        "{third}: {}",
        pool.reserve(&third, &VniRequest::vnis(1), rested)?.vnis
    );
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
