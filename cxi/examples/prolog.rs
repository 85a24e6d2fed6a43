//! A job's services on all NICs; prints its environment. `prolog UID VNI CORES`, as root.

use cxi::job::limits::{LimitPolicy, Mode, Multiplier};
use cxi::job::{JobLimits, JobRequest, NicPolicy, Node};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("usage: prolog UID VNI CORES");
    let (uid, vni, cores) = (next()?.parse()?, next()?.parse()?, next()?.parse()?);
    let (policy, size) = (LimitPolicy::hpe_recommended(), Multiplier::Cores(cores));
    let limits = JobLimits::Planned { policy, size, mode: Mode::ScaleBack { floor: 1 } };
    let nics = NicPolicy::AnyUsable(1);
    let request = JobRequest::builder().uid(uid).vni(vni).limits(limits).nics(nics).build()?;
    let grant = Node::discover(&cxi::Host::system())?.allocate(&request)?;
    grant.cuts().for_each(|cut| eprintln!("{cut}"));
    grant.env()?.vars().iter().for_each(|(name, value)| println!("{name}={value}"));
    Ok(())
}
