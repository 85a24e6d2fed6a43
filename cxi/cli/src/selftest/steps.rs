//! Questions of `cxi selftest` that change nothing, and their answers.

use std::fmt::{Debug, Display};

use cxi::driver::Answer;
use cxi::{Device, Errno, ErrorKind, ServiceId};
use serde::{Deserialize, Serialize};

use crate::devices::link;

/// A question and its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) answer: String,
    /// Answer that was expected; `None` where each site has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expected: Option<String>,
    /// `true` if the mock of the release is asked for what is expected.
    #[serde(default)]
    pub(crate) compared: bool,
}

impl Step {
    pub(crate) fn is_finding(&self) -> bool {
        let expected = self.expected.as_ref();
        expected.is_some_and(|expected| *expected != self.answer)
    }
}

/// The steps so far.
#[derive(Debug, Default)]
pub(crate) struct Steps(pub(crate) Vec<Step>);

impl Steps {
    fn add(&mut self, name: &str, answer: String, expected: Option<String>, compared: bool) {
        self.0.push(Step { name: name.to_owned(), answer, expected, compared });
    }

    /// An answer that depends on the driver alone.
    pub(crate) fn compare(&mut self, name: &str, answer: impl Display) {
        self.add(name, answer.to_string(), None, true);
    }

    /// An answer that has to be this one on every NIC.
    pub(crate) fn must(&mut self, name: &str, answer: impl Display, expected: &str) {
        let expected = Some(expected.to_owned());
        self.add(name, answer.to_string(), expected, false);
    }

    /// An answer that is the site's own.
    pub(crate) fn note(&mut self, name: &str, answer: impl Display) {
        self.add(name, answer.to_string(), None, false);
    }

    /// As [`compare`](Self::compare), for a command about a service that does not exist.
    fn of_none<T: Debug>(&mut self, command: &str, result: cxi::Result<T>) {
        let said = answer(result.map(|value| format!("{value:?}")));
        self.compare(&format!("{command} of no service"), said);
    }

    /// Takes what is expected from the steps of a mock; returns how many differ.
    pub(crate) fn expect(&mut self, mock: &Self) -> usize {
        for step in self.0.iter_mut().filter(|step| step.compared) {
            let same = mock.0.iter().find(|other| other.name == step.name);
            step.expected = Some(same.map_or_else(|| "nothing".to_owned(), |it| it.answer.clone()));
        }
        self.0.iter().filter(|step| step.is_finding()).count()
    }
}

/// Returns the text of an error, as far as it depends on the driver alone.
pub(crate) fn refusal(error: &cxi::Error) -> String {
    match error.kind() {
        // The text names the release, which is known less exactly without sysfs.
        ErrorKind::Unsupported { .. } => "not supported by this driver".to_owned(),
        _ => error.clone().without_device().to_string(),
    }
}

pub(crate) fn answer<T: Display>(result: cxi::Result<T>) -> String {
    result.map_or_else(|error| refusal(&error), |value| value.to_string())
}

/// An id that no service has: drivers count up from 1.
const NO_SERVICE: u32 = 4_000_000_001;

/// Asks a NIC everything that changes nothing, whoever asks.
pub(crate) fn read(device: &Device) -> cxi::Result<Steps> {
    let mut steps = Steps::default();
    driver(device, &mut steps)?;
    properties(device, &mut steps)?;
    refusals(device, &mut steps)?;
    services(device, &mut steps);
    sysfs(device, &mut steps);
    Ok(steps)
}

fn driver(device: &Device, steps: &mut Steps) -> cxi::Result<()> {
    let driver = device.driver()?;
    let evidence = driver.evidence();
    steps.note("driver", driver);
    steps.note("evidence", format_args!("{evidence:?}"));
    let known = |answer| match answer {
        Answer::Refused(Errno::EINVAL) => "not known",
        Answer::Malformed => "of an unknown form",
        _ => "known",
    };
    // What else they answer depends on the default service, which administrators change.
    steps.compare("SVC_GET_EXCLUSIVE_CP", known(evidence.exclusive_cp));
    steps.compare("SVC_SET_NETNS", known(evidence.set_netns));
    let unknown = format!("{:?}", evidence.unknown_command);
    steps.compare("a command that no driver has", unknown);
    let form = format!("{:?}", evidence.properties);
    steps.compare("form of GET_DEV_PROPERTIES", form);
    let usage = format!("{:?}", evidence.le_usage_not_applicable);
    steps.compare("LEs of the default service not applicable", usage);
    Ok(())
}

fn properties(device: &Device, steps: &mut Steps) -> cxi::Result<()> {
    for (resource, total) in device.totals()?.iter() {
        steps.compare(&format!("{resource} in all"), total);
    }
    let info = device.info()?;
    for (name, number) in [
        ("bits of a PID", info.pid_bits),
        ("number of PIDs", info.pid_count),
        ("portal indices of a PID", info.pid_granule),
        ("shift of the least free space", info.min_free_shift),
        ("portal index of rendezvous gets", info.rdzv_get_idx),
    ] {
        steps.compare(name, number);
    }
    steps.note("NIC", info.cassini_version);
    steps.note("platform", info.platform);
    let link = format_args!("{}, MTU {}", link(&info), info.link_mtu);
    steps.note("link", link);
    Ok(())
}

/// Commands about a service that does not exist.
fn refusals(device: &Device, steps: &mut Steps) -> cxi::Result<()> {
    let (services, none) = (device.services(), ServiceId::new(NO_SERVICE)?);
    steps.of_none("SVC_GET", services.get(none));
    steps.of_none("SVC_RSRC_GET", services.usage(none));
    steps.of_none("SVC_GET_LPR", services.lnis_per_rgid(none));
    steps.of_none("SVC_GET_VNI_RANGE", services.vni_range(none));
    steps.of_none("SVC_GET_EXCLUSIVE_CP", services.exclusive_cp(none));
    steps.of_none("SVC_GET_NETNS", services.netns(none));
    steps.of_none("LNI_ALLOC", device.alloc_lni(none).map(|lni| lni.id()));
    Ok(())
}

/// Returns whether different ways of asking agree. Services may come and go meanwhile: one that is
/// gone is left out.
fn services(device: &Device, steps: &mut Steps) {
    let services = device.services();
    let listed = match services.list() {
        Ok(listed) => listed,
        Err(error) => return steps.must("list of services", refusal(&error), "a list"),
    };
    steps.note("services", listed.len());
    let gone = |error: &cxi::Error| matches!(error.kind(), ErrorKind::NoSuchService { .. });
    let differs = listed.iter().find_map(|service| match services.get(service.id()) {
        Ok(read) => (read != *service).then(|| "not as it is listed".to_owned()),
        Err(error) if gone(&error) => None,
        Err(error) => Some(refusal(&error)),
    });
    let told = differs.as_deref().unwrap_or("as it is listed");
    steps.must("each service, read", told, "as it is listed");
    let room = device.availability().map(|room| {
        let mut levels = room.resources.iter();
        levels.find(|(_, level)| level.reserved > level.total).map_or_else(
            || "within what the NIC has".to_owned(),
            |(resource, level)| format!("{} of {} {resource}", level.reserved, level.total),
        )
    });
    steps.must("reservations", answer(room), "within what the NIC has");
}

/// Asks for the attributes in sysfs, without those that identify the card.
fn sysfs(device: &Device, steps: &mut Steps) {
    let card = device.hardware();
    for (name, value) in [
        ("part number", card.part_number),
        ("firmware", card.firmware),
        ("PCI Express speed", card.pcie_speed),
        ("link state", card.link_state),
        ("link speed", card.link_speed),
        ("link media", card.link_media),
    ] {
        if let Some(value) = value {
            steps.note(name, value);
        }
    }
    let Ok(counters) = device.telemetry_counters() else {
        return steps.note("telemetry", "not shown");
    };
    steps.note("telemetry", format_args!("{} counters", counters.len()));
    let bad = counters.iter().find_map(|counter| device.telemetry(counter).err());
    let said = bad.map_or_else(|| "a number with a time".to_owned(), |error| error.to_string());
    steps.must("each counter, read", said, "a number with a time");
}
