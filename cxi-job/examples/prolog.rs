//! Makes a job's services on all NICs and prints its environment: `prolog UID VNI CORES`, as root.
#![allow(clippy::print_stdout, clippy::print_stderr)]
use cxi_job::limits::{LimitPolicy, Mode, Multiplier};
use cxi_job::{JobLimits, JobRequest, Node};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("usage: prolog UID VNI CORES");
    let (uid, vni, cores) = (next()?.parse()?, next()?.parse()?, next()?.parse()?);
    let (policy, mode) = (LimitPolicy::hpe_recommended(), Mode::ScaleBack { floor: 1 });
    let limits = JobLimits::planned(policy, Multiplier::Cores(cores), mode);
    let request = JobRequest::builder().uid(uid).vni(vni).limits(limits);
    let node = Node::discover(&cxi::Host::system())?;
    let grant = node.allocate(&request.build()?);
    let grant = grant.map_err(|e| eprintln!("{e}")).or(Err("no job"))?;
    grant.cuts().for_each(|cut| eprintln!("{cut}"));
    let print = |(name, value)| println!("{name}={value}");
    grant.env()?.vars().into_iter().for_each(print);
    Ok(())
}
