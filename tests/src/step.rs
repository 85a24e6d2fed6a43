//! Executes a step of a scenario on a device, without checking the outcome.

use std::collections::BTreeMap;

use cxi_ioctl::{DriverRelease, Errno};
use cxi_mock::Credentials;
use serde_json::{Map, Value, json};

use crate::device::{Buffers, Device, Report};
use crate::report::Failure;
use crate::scenario::{Expect, Step};
use crate::{decode, encode, uapi};

/// Operations of the runner itself.
const RUNNER_OPERATIONS: [&str; 10] =
    ["OPEN", "CLOSE", "STATE", "TICK", "HW_SET", "REPEAT", "FILL", "DRAIN", "RAW", "VF_KERNEL_API"];

/// The outcome of a step.
pub(crate) struct Done {
    pub(crate) errno: Option<Errno>,
    /// `None`: nothing was written.
    pub(crate) response: Option<Value>,
}

impl Done {
    pub(crate) fn errno(&self) -> String {
        self.errno.map_or_else(|| "OK".to_owned(), |errno| errno.to_string())
    }

    fn with(response: Value) -> Self {
        Self { errno: None, response: Some(response) }
    }
}

impl From<Result<(), Errno>> for Done {
    fn from(result: Result<(), Errno>) -> Self {
        Self { errno: result.err(), response: None }
    }
}

pub(crate) struct Replay<'a, D: Device> {
    pub(crate) device: &'a D,
    pub(crate) release: DriverRelease,
    pub(crate) files: BTreeMap<String, D::File>,
    pub(crate) saved: BTreeMap<String, Value>,
    pub(crate) lists: BTreeMap<String, Vec<Value>>,
    pub(crate) failures: Vec<Failure>,
}

impl<'a, D: Device> Replay<'a, D> {
    pub(crate) fn new(device: &'a D, release: DriverRelease) -> Self {
        Self {
            device,
            release,
            files: BTreeMap::new(),
            saved: BTreeMap::new(),
            lists: BTreeMap::new(),
            failures: Vec::new(),
        }
    }

    /// Executes a step that has no steps of its own, and saves the values that the scenario names.
    pub(crate) fn perform(&mut self, step: &Step) -> Result<Done, String> {
        let cmd = self.resolve(&step.cmd)?;
        let done = match step.op.as_str() {
            "OPEN" => self.open(step, &cmd)?,
            "CLOSE" => {
                let name = step.fd.as_deref().unwrap_or_default();
                let file = self.files.remove(name);
                drop(file.ok_or_else(|| format!("no file '{name}' is open"))?);
                Done::from(Ok(()))
            }
            "STATE" => Done::with(self.device.state()?),
            "TICK" => Done::with(json!({ "ran": self.device.tick() })),
            "HW_SET" => {
                self.device.report(report(&cmd)?)?;
                Done::from(Ok(()))
            }
            "RAW" => self.raw(step, &cmd)?,
            "VF_KERNEL_API" => self.kernel_api(step, &cmd)?,
            _ => self.command(step, &cmd)?,
        };
        if let Some(response) = &done.response {
            for (name, path) in &step.save {
                let value = at_path(response, path)
                    .ok_or_else(|| format!("save: the response has no {path}"))?;
                self.saved.insert(name.clone(), value.clone());
            }
        }
        Ok(done)
    }

    fn open(&mut self, step: &Step, cmd: &Map<String, Value>) -> Result<Done, String> {
        let virtual_function = match cmd.get("dev").map(Value::as_str) {
            None | Some(Some("pf")) => false,
            Some(Some("vf")) => true,
            Some(_) => return Err("cmd.dev: expected \"vf\" or nothing".to_owned()),
        };
        let name = step.fd.clone().ok_or("OPEN needs fd")?;
        let opened = self.device.open(&credentials(step)?, virtual_function);
        Ok(Done::from(opened.map(|file| {
            self.files.insert(name, file);
        })))
    }

    fn raw(&mut self, step: &Step, cmd: &Map<String, Value>) -> Result<Done, String> {
        let opcode = unsigned(cmd, "opcode")?;
        let len = usize::try_from(unsigned(cmd, "len")?).map_err(|error| error.to_string())?;
        let mut bytes = opcode.to_le_bytes().to_vec();
        bytes.resize(len, 0);
        // Its addresses are null.
        self.write(step, &bytes, true)
    }

    /// The functions that the driver exports to other modules are what its commands call, and
    /// refuse the same on a virtual function.
    fn kernel_api(&mut self, step: &Step, cmd: &Map<String, Value>) -> Result<Done, String> {
        let call = cmd.get("call").and_then(Value::as_str).unwrap_or_default();
        let op = call.to_uppercase();
        let op = op.strip_prefix("CXI_").unwrap_or(&op);
        let mut fields = json!({ "svc_id": unsigned(cmd, "svc_id")? });
        if let "SVC_ALLOC" | "SVC_UPDATE" = op {
            fields = json!({ "svc_desc": fields });
        }
        let fields = fields.as_object().cloned().unwrap_or_default();
        let command = encode::request(op, &fields, self.release)
            .map_err(|reason| format!("cmd.call: '{call}' as {op}: {reason}"))?;
        let kernel = Credentials::root();
        let opened = self.device.open(&kernel, true);
        let file =
            opened.map_err(|errno| format!("the virtual function cannot be opened: {errno}"))?;
        let mut buffers = Buffers::default();
        let written = self.device.write(&file, &kernel, &command, &mut buffers);
        let response = match (&step.expect, &buffers.response) {
            (Some(Expect { resp: Some(_), .. }), Some(response)) => {
                Some(decode::response(op, response, &buffers.list, self.release)?)
            }
            _ => None,
        };
        Ok(Done { errno: written.err(), response })
    }

    fn command(&mut self, step: &Step, cmd: &Map<String, Value>) -> Result<Done, String> {
        if uapi::opcode(&step.op).is_none() {
            return Err(format!(
                "unknown operation '{}': expected an opcode's name or one of {}",
                step.op,
                RUNNER_OPERATIONS.join(", ")
            ));
        }
        let known = ["__len", "__bad_resp"];
        let strange = |name: &&String| name.starts_with("__") && !known.contains(&name.as_str());
        if let Some(name) = cmd.keys().find(strange) {
            return Err(format!("cmd.{name} is not known"));
        }
        let bad = cmd.get("__bad_resp").is_some_and(|bad| *bad == true);
        let mut bytes = match encode::request(&step.op, cmd, self.release) {
            Ok(bytes) => bytes,
            // A release without the command gets the newest form of it.
            Err(_) if uapi::request(&step.op, self.release).is_none() => {
                encode::request(&step.op, cmd, DriverRelease::Main2026_07)?
            }
            Err(reason) => return Err(reason),
        };
        if cmd.contains_key("__len") {
            let len = unsigned(cmd, "__len")?;
            bytes.resize(usize::try_from(len).map_err(|error| error.to_string())?, 0);
        }
        self.write(step, &bytes, bad)
    }

    fn write(&mut self, step: &Step, bytes: &[u8], bad: bool) -> Result<Done, String> {
        let name = step.fd.as_deref().ok_or("the step needs fd")?;
        let file = self.files.get(name).ok_or_else(|| format!("no file '{name}' is open"))?;
        let mut buffers = Buffers { bad, ..Buffers::default() };
        let written = self.device.write(file, &credentials(step)?, bytes, &mut buffers);
        let length = bytes.len();
        if written.is_ok_and(|written| written != length) {
            return Err(format!("write(2) returned {written:?} of {length} bytes"));
        }
        let list = &buffers.list;
        let response = match &buffers.response {
            Some(response) => Some(decode::response(&step.op, response, list, self.release)?),
            None if buffers.list.is_empty() => None,
            None => return Err("a list was written without a response".to_owned()),
        };
        Ok(Done { errno: written.err(), response })
    }

    /// Replaces names by the values that were saved under them.
    fn resolve(&self, cmd: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let mut resolved = Map::new();
        for (name, value) in cmd {
            resolved.insert(name.clone(), self.value(value)?);
        }
        Ok(resolved)
    }

    fn value(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => match text.strip_prefix('$') {
                Some(name) => self
                    .saved
                    .get(name)
                    .cloned()
                    .ok_or_else(|| format!("needs ${name}, which no step saved"))?,
                None => value.clone(),
            },
            Value::Object(map) => Value::Object(self.resolve(map)?),
            Value::Array(values) => {
                values.iter().map(|value| self.value(value)).collect::<Result<_, _>>()?
            }
            _ => value.clone(),
        })
    }
}

fn credentials(step: &Step) -> Result<Credentials, String> {
    let caller = step.caller.as_ref().ok_or("the step needs as")?;
    let mut credentials = Credentials::user(caller.uid, caller.gid);
    credentials.groups.clone_from(&caller.groups);
    credentials.sys_admin = caller.admin;
    credentials.net_raw = caller.net_raw.unwrap_or(caller.admin);
    credentials.netns = caller.netns;
    Ok(credentials)
}

fn unsigned(cmd: &Map<String, Value>, name: &str) -> Result<u32, String> {
    cmd.get(name)
        .and_then(Value::as_u64)
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| format!("cmd.{name}: expected a number"))
}

fn report(cmd: &Map<String, Value>) -> Result<Report, String> {
    let report = serde_json::from_value(Value::Object(cmd.clone()));
    Ok(match report.map_err(|error| format!("cmd.what: {error}"))? {
        // Handles of target queues start at 1024, their registers at 0.
        Report::TgqInFlight { index, value } => {
            Report::TgqInFlight { index: index % 1024 + 1024, value }
        }
        other => other,
    })
}

pub(crate) fn at_path<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, name| match value {
        Value::Array(values) => values.get(name.parse::<usize>().ok()?),
        _ => value.get(name),
    })
}
