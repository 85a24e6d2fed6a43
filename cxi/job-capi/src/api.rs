//! The functions that C calls; `include/cxi_job.h` describes each of them.

#![allow(unsafe_code, reason = "exported names")]
#![allow(
    clippy::needless_pass_by_value,
    reason = "C passes pointers; their types here cannot be copied"
)]

use std::ffi::{c_char, c_int};
use std::time::Duration;

use cxi::Host;
use cxi_ioctl::Errno;
use cxi_job::cluster::SiteError;
use cxi_job::{Grant, Node, ReleaseOptions, ReleaseReport};
use cxi_site::FileLock;
use cxi_site::pool::{PoolConfig, Timestamp};
use cxi_vni_etcd::SitePool;
use serde::Serialize;

use crate::failure::{self, Failure, Result};
use crate::ffi::{Handle, Out, Text, status};
use crate::{controller, json, nodes};

// SAFETY: each name is this library's own; the version script exports it.

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_node_open(options: Text, node: Out<Handle>) -> c_int {
    status(|| {
        let node = node.required("node")?;
        let text = options.optional("options")?;
        let options: json::Open = json::read("options", text.unwrap_or("{}"))?;
        let found = Node::discover(&Host::system())
            .map_err(|error| Failure::new(error.errno(), error.to_string()))?;
        if found.nics().is_empty() {
            return Err(Failure::new(Errno::ENODEV, "this node has no CXI NIC"));
        }
        let wait = options.wait();
        let found = match options.lock.map(FileLock::new) {
            None => found,
            Some(lock) => found.with_lock(match wait {
                None => lock,
                Some(wait) => lock.wait(wait),
            }),
        };
        node.set_number(nodes::add(found));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_node_close(node: Handle) -> c_int {
    status(|| nodes::close(node))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_allocate(
    node: Handle,
    request: Text,
    granted: Out<*mut c_char>,
) -> c_int {
    #[derive(Serialize)]
    struct Granted<'a> {
        grant: &'a Grant,
    }
    status(|| {
        let granted = granted.required("granted")?;
        let node = nodes::get(node)?;
        let request: json::Request = json::read("request", request.required("request")?)?;
        let grant = node.allocate(&request.build()?)?;
        let told = json::write(&Granted { grant: &grant }).and_then(|text| granted.set_text(&text));
        if told.is_err() {
            // Without a grant, the caller could not release these services.
            let _ = node.undo(&grant);
        }
        told
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_environment(
    granted: Text,
    variables: Out<*mut *mut c_char>,
) -> c_int {
    status(|| {
        let variables = variables.required("variables")?;
        let granted: json::Granted = json::read("granted", granted.required("granted")?)?;
        let environment =
            granted.grant.env().map_err(|error| Failure::invalid("granted", &error))?;
        let set = environment.vars().into_iter();
        let set: Vec<String> = set.map(|(name, value)| format!("{name}={value}")).collect();
        variables.set_list(&set)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_release(
    node: Handle,
    job: Text,
    deadline_ms: u64,
    report: Out<*mut c_char>,
) -> c_int {
    status(|| {
        let node = nodes::get(node)?;
        let job: json::Job = json::read("job", job.required("job")?)?;
        let release = node.release(&job.filter()?, &until(deadline_ms));
        report.set_text(&json::write(&release)?)?;
        done(&release)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_prolog(
    node: Handle,
    job: Text,
    granted: Out<*mut c_char>,
) -> c_int {
    status(|| {
        let granted = granted.required("granted")?;
        let node = nodes::get(node)?;
        let job: json::Starting = json::read("job", job.required("job")?)?;
        let site = job.place.site()?;
        let here = job.place.node(&site, &node)?;
        let starting = job.starting();
        let started = here.prolog(&starting)?;
        let told = json::write(&json::Recorded {
            grant: started.grant.as_ref(),
            warnings: started.warnings,
        });
        let told = told.and_then(|text| granted.set_text(&text));
        if let (Err(_), Some(grant)) = (&told, &started.grant) {
            // A caller that gets an error does not call the epilog.
            here.undo(&starting.job, starting.component.as_ref(), grant)?;
        }
        told
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_epilog(
    node: Handle,
    job: Text,
    deadline_ms: u64,
    report: Out<*mut c_char>,
) -> c_int {
    status(|| {
        let node = nodes::get(node)?;
        let place: json::Place = json::read("job", job.required("job")?)?;
        let site = place.site()?;
        let here = place.node(&site, &node)?;
        let release = here.epilog(&place.job, place.component.as_ref(), &until(deadline_ms))?;
        report.set_text(&json::write(&release)?)?;
        done(&release)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_step(step: Text, variables: Out<*mut c_char>) -> c_int {
    status(|| {
        let variables = variables.required("variables")?;
        let step: json::Step = json::read("step", step.required("step")?)?;
        let site = step.place.site()?;
        let here = site.node(step.place.node.clone())?;
        let found = here.environment(&step.place.job, step.id()?.as_ref())?;
        variables.set_text(&json::write(&json::Variables {
            set: found.set.into_iter().collect(),
            clear: found.clear,
        })?)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_pool(options: Text, report: Out<*mut c_char>) -> c_int {
    status(|| {
        let options = options.optional("options")?.unwrap_or("{}");
        let options: json::Pool = json::read("options", options)?;
        let site = controller::site(options.settings.as_deref())?;
        let pool = SitePool::of(site.settings())?;
        if let Some(vnis) = options.vnis {
            let rest = Duration::from_millis(options.rest_ms);
            pool.configure(&PoolConfig::new(vnis).rest(rest))?;
        }
        if options.lead {
            pool.lead()?;
        }
        report.set_text(&json::write(&pool.look()?.metrics(Timestamp::now()))?)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_reserve(job: Text, decision: Out<*mut c_char>) -> c_int {
    status(|| {
        let decision = decision.required("decision")?;
        let job: json::Reserve = json::read("job", job.required("job")?)?;
        let site = controller::site(job.settings.as_deref())?;
        let done = controller::open(&site)?.reserve(&job.request())?;
        decision.set_text(&json::write(&json::Reserved {
            decision: done.result,
            warnings: done.warnings.iter().map(ToString::to_string).collect(),
        })?)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_end(ending: Text, report: Out<*mut c_char>) -> c_int {
    status(|| {
        let ending: json::Ending = json::read("ending", ending.required("ending")?)?;
        let site = controller::site(ending.settings())?;
        let controller = controller::open(&site)?;
        let done = match ending {
            json::Ending::Job { job, component, .. } => {
                controller.release(&job, component.as_ref())?
            }
            json::Ending::Live { live, .. } => controller.sweep(|| Ok::<_, SiteError>(live))?,
        };
        report.set_text(&json::write(&json::Ended {
            ended: done.result,
            warnings: done.warnings.iter().map(ToString::to_string).collect(),
        })?)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_confirm(place: Text) -> c_int {
    status(|| {
        let place: json::Place = json::read("place", place.required("place")?)?;
        let site = place.site()?;
        Ok(controller::open(&site)?.confirm(&place.job, &place.node)?)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_clean(
    node: Handle,
    policy: Text,
    deadline_ms: u64,
    report: Out<*mut c_char>,
) -> c_int {
    status(|| {
        let node = nodes::get(node)?;
        let policy: json::Clean = json::read("policy", policy.required("policy")?)?;
        let site = policy.place.site()?;
        let here = policy.place.node(&site, &node)?;
        let cleaned = here.clean(&policy.cleaning(&site)?, &until(deadline_ms))?;
        report.set_text(&json::write(&cleaned)?)?;
        cleaned.clean.release.as_ref().map_or(Ok(()), done)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_list(place: Text, jobs: Out<*mut c_char>) -> c_int {
    status(|| {
        let jobs = jobs.required("jobs")?;
        let place: json::NodePlace = json::read("place", place.optional("place")?.unwrap_or("{}"))?;
        let site = place.site()?;
        let (records, broken) = site.node(place.name()?)?.list()?;
        jobs.set_text(&json::write(&json::Listed {
            jobs: records.iter().map(json::ListedJob::of).collect(),
            broken: broken.iter().map(ToString::to_string).collect(),
        })?)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_audit(
    node: Handle,
    options: Text,
    report: Out<*mut c_char>,
) -> c_int {
    status(|| {
        let report = report.required("report")?;
        let node = nodes::get(node)?;
        let options: json::Audit =
            json::read("options", options.optional("options")?.unwrap_or("{}"))?;
        report.set_text(&json::write(&node.audit(&options.options(&node)?))?)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_explain(explanation: Out<*mut c_char>) -> c_int {
    status(|| explanation.required("explanation")?.set_text(&failure::explain()?))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cxi_job_last_error() -> *const c_char {
    std::panic::catch_unwind(failure::text).unwrap_or(c"".as_ptr())
}

fn until(deadline_ms: u64) -> ReleaseOptions<'static> {
    ReleaseOptions::until(Duration::from_millis(deadline_ms))
}

/// EBUSY or EIO if a service is left behind.
fn done(release: &ReleaseReport) -> Result<()> {
    let Some(code) = release.code() else { return Ok(()) };
    let left = release.left().map(ToString::to_string);
    let nics = release.nics.iter().map(|nic| nic.reason.clone());
    let left: Vec<String> = left.chain(nics).collect();
    Err(Failure::new(code.errno(), left.join("\n")))
}
