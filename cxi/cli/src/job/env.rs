//! `cxi job env`.

use super::cli::EnvArgs;
use super::node::SiteNode;
use crate::exit::Failure;
use crate::node::Intent;
use crate::options::Common;
use crate::output::Report;

pub(super) fn run(arguments: &EnvArgs, common: &Common) -> Result<Report, Failure> {
    let here = SiteNode::new(common, Intent::Read)?;
    let found = here.node(None)?.environment(&arguments.job, arguments.step.as_ref())?;
    Ok(Report::environment(found.set, &found.clear))
}
