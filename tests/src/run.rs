//! Replays a scenario on a device and reports what differs.

use std::collections::BTreeMap;

use cxi_ioctl::{Errno, Release};
use cxi_mock::Credentials;
use serde_json::{Map, Value};

use crate::compare::{self, Difference};
use crate::device::{Buffers, Device, LoadFailure, Report};
use crate::report::{Failure, Outcome};
use crate::scenario::{Expect, Scenario, Step};
use crate::{decode, encode, mock, uapi};

/// Operations of the runner itself.
const RUNNER_OPERATIONS: [&str; 10] = [
    "OPEN",
    "CLOSE",
    "STATE",
    "TICK",
    "HW_SET",
    "REPEAT",
    "FILL",
    "DRAIN",
    "RAW",
    "VF_KERNEL_API",
];

/// Replays a scenario from a fresh device on.
pub fn run<D: Device>(scenario: &Scenario) -> Outcome {
    if let Some(reason) = not_modelled(scenario) {
        return Outcome::Skipped(reason);
    }
    let device = match (
        D::load(scenario.driver, &scenario.device),
        &scenario.boot_errno,
    ) {
        (Ok(device), None) => device,
        (Ok(_), Some(errno)) => {
            return Outcome::Failed(vec![Failure::whole(
                "boot_errno",
                errno,
                "the driver loads",
            )]);
        }
        (Err(LoadFailure::Refused(got)), Some(errno)) if got.to_string() == *errno => {
            return Outcome::Passed;
        }
        (Err(LoadFailure::Refused(got)), expected) => {
            let expected = expected.as_deref().unwrap_or("the driver loads");
            let failure = Failure::whole("boot_errno", expected, got.to_string());
            return Outcome::Failed(vec![failure]);
        }
        (Err(LoadFailure::Scenario(reason)), _) => {
            let failure = Failure::whole("device", "a device that can be loaded", reason);
            return Outcome::Failed(vec![failure]);
        }
    };
    let mut replay = Replay::new(&device, scenario.driver);
    let mut steps = scenario.steps.as_slice();
    if let Some(undefined) = &scenario.undefined_after {
        steps = steps.get(..=undefined.after_step).unwrap_or(steps);
    }
    for (index, step) in steps.iter().enumerate() {
        replay.step(step, &index.to_string(), true);
    }
    // Nobody knows what the driver does there; a device must survive it.
    if let Some(step) = scenario
        .undefined_after
        .as_ref()
        .and_then(|after| after.step.as_ref())
    {
        let _outcome = replay.perform(step);
    }
    if replay.failures.is_empty() {
        Outcome::Passed
    } else {
        Outcome::Failed(replay.failures)
    }
}

fn not_modelled(scenario: &Scenario) -> Option<String> {
    if mock::DRIVERS_NOT_MODELLED.contains(&scenario.driver) {
        return Some(format!("driver {}", scenario.driver));
    }
    let used = scenario.operations();
    let op = used
        .into_iter()
        .find(|op| mock::OPERATIONS_NOT_MODELLED.contains(op))?;
    Some(op.to_owned())
}

/// What a step did.
struct Done {
    errno: Option<Errno>,
    /// `None`: nothing was written.
    response: Option<Value>,
}

impl Done {
    fn errno(&self) -> String {
        self.errno
            .map_or_else(|| "OK".to_owned(), |errno| errno.to_string())
    }
}

impl From<Result<(), Errno>> for Done {
    fn from(result: Result<(), Errno>) -> Self {
        Self {
            errno: result.err(),
            response: None,
        }
    }
}

struct Replay<'a, D: Device> {
    device: &'a D,
    release: Release,
    files: BTreeMap<String, D::File>,
    saved: BTreeMap<String, Value>,
    lists: BTreeMap<String, Vec<Value>>,
    failures: Vec<Failure>,
}

impl<'a, D: Device> Replay<'a, D> {
    fn new(device: &'a D, release: Release) -> Self {
        Self {
            device,
            release,
            files: BTreeMap::new(),
            saved: BTreeMap::new(),
            lists: BTreeMap::new(),
            failures: Vec::new(),
        }
    }

    /// Does a step; `recorded` says whether its expectation is that of this pass.
    fn step(&mut self, step: &Step, at: &str, recorded: bool) {
        let differences = match step.op.as_str() {
            "REPEAT" => self.repeat(step, at),
            "FILL" => self.fill(step),
            "DRAIN" => self.drain(step),
            _ => self.single(step, recorded),
        };
        let differences = differences.unwrap_or_else(|reason| {
            vec![Difference {
                path: "step".to_owned(),
                expected: "a step that can be done".to_owned(),
                got: reason,
            }]
        });
        if !differences.is_empty() {
            self.failures.push(Failure::of(step, at, differences));
        }
    }

    fn single(&mut self, step: &Step, recorded: bool) -> Result<Vec<Difference>, String> {
        let done = self.perform(step)?;
        let Some(expect) = step.expect.as_ref().filter(|_| recorded) else {
            return Ok(Vec::new());
        };
        let mut found = errno(expect, &done);
        found.extend(response(step, expect, &done));
        Ok(found)
    }

    fn repeat(&mut self, step: &Step, at: &str) -> Result<Vec<Difference>, String> {
        let times = step.times.ok_or("REPEAT needs times")?;
        for pass in 0..times {
            for (index, inner) in step.steps.iter().enumerate() {
                let at = format!("{at} (pass {pass}, step {index})");
                self.step(inner, &at, pass == 0 || !inner.varies);
            }
        }
        Ok(Vec::new())
    }

    fn fill(&mut self, step: &Step) -> Result<Vec<Difference>, String> {
        let inner = step.step.as_deref().ok_or("FILL needs step")?;
        let limit = step.limit.ok_or("FILL needs limit")?;
        let expect = step.expect.as_ref().ok_or("FILL needs expect")?;
        let mut collected = Vec::new();
        let mut successes = 0;
        let mut last = Done {
            errno: None,
            response: None,
        };
        while successes < limit {
            let done = self
                .perform(inner)
                .map_err(|reason| format!("repetition {successes}: {reason}"))?;
            if done.errno.is_some() {
                last = done;
                break;
            }
            successes += 1;
            if let Some((_, field)) = &step.collect {
                let response = done.response.unwrap_or(Value::Null);
                collected.push(at_path(&response, field).cloned().unwrap_or(Value::Null));
            }
        }
        let mut found = errno(expect, &last);
        if last.errno.is_some() {
            found.extend(response(inner, expect, &last));
        }
        let ends = [
            (
                "successes",
                expect.successes.map(Value::from),
                Some(Value::from(successes)),
            ),
            ("first", expect.first.clone(), collected.first().cloned()),
            ("last", expect.last.clone(), collected.last().cloned()),
        ];
        found.extend(ends.into_iter().filter_map(|(path, expected, got)| {
            differ(path, &expected?, &got.unwrap_or(Value::Null))
        }));
        if let Some((list, _)) = &step.collect {
            self.lists.insert(list.clone(), collected);
        }
        Ok(found)
    }

    fn drain(&mut self, step: &Step) -> Result<Vec<Difference>, String> {
        let inner = step.step.as_deref().ok_or("DRAIN needs step")?;
        let field = step.field.as_ref().ok_or("DRAIN needs field")?;
        let list = step.list.as_ref().ok_or("DRAIN needs list")?;
        let expect = step.expect.as_ref().ok_or("DRAIN needs expect")?;
        let values = self
            .lists
            .remove(list)
            .ok_or_else(|| format!("no FILL made a list '{list}'"))?;
        let mut errors = Vec::new();
        let mut successes = 0;
        for value in values {
            let mut inner = inner.clone();
            set_path(&mut inner.cmd, field, value);
            let done = self.perform(&inner)?;
            match done.errno {
                None => successes += 1,
                Some(errno) => errors.push(errno.to_string()),
            }
        }
        errors.sort_unstable();
        errors.dedup();
        let mut found = Vec::new();
        if let Some(expected) = expect.successes {
            found.extend(differ(
                "successes",
                &expected.into(),
                &Value::from(successes),
            ));
        }
        if let Some(mut expected) = expect.errors.clone() {
            expected.sort_unstable();
            found.extend(differ("errors", &expected.into(), &errors.into()));
        }
        Ok(found)
    }

    /// Does a step that is not made of others, and keeps what it is to save.
    fn perform(&mut self, step: &Step) -> Result<Done, String> {
        let cmd = self.resolve(&step.cmd)?;
        let done = match step.op.as_str() {
            "OPEN" => self.open(step, &cmd)?,
            "CLOSE" => {
                let name = step.fd.as_deref().unwrap_or_default();
                let file = self.files.remove(name);
                drop(file.ok_or_else(|| format!("no file '{name}' is open"))?);
                Done::from(Ok(()))
            }
            "STATE" => Done {
                errno: None,
                response: Some(self.device.state()?),
            },
            "TICK" => {
                let ran = Map::from_iter([("ran".to_owned(), self.device.tick().into())]);
                Done {
                    errno: None,
                    response: Some(Value::Object(ran)),
                }
            }
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
        let svc_id = Map::from_iter([("svc_id".to_owned(), unsigned(cmd, "svc_id")?.into())]);
        let fields = match op {
            "SVC_ALLOC" | "SVC_UPDATE" => {
                Map::from_iter([("svc_desc".to_owned(), Value::Object(svc_id))])
            }
            _ => svc_id,
        };
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
        Ok(Done {
            errno: written.err(),
            response,
        })
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
        if let Some(name) = cmd
            .keys()
            .find(|name| name.starts_with("__") && !known.contains(&name.as_str()))
        {
            return Err(format!("cmd.{name} is not known"));
        }
        let bad = cmd
            .get("__bad_resp")
            .and_then(Value::as_bool)
            .unwrap_or(false);
        let mut bytes = match encode::request(&step.op, cmd, self.release) {
            Ok(bytes) => bytes,
            // A release without the command gets it as the newest one has it.
            Err(_) if uapi::request(&step.op, self.release).is_none() => {
                encode::request(&step.op, cmd, Release::Main)?
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
        let file = self
            .files
            .get(name)
            .ok_or_else(|| format!("no file '{name}' is open"))?;
        let mut buffers = Buffers {
            bad,
            ..Buffers::default()
        };
        let written = self
            .device
            .write(file, &credentials(step)?, bytes, &mut buffers);
        if written.is_ok_and(|length| length != bytes.len()) {
            return Err(format!(
                "write(2) returned {written:?} of {} bytes",
                bytes.len()
            ));
        }
        let response = match &buffers.response {
            Some(response) => Some(decode::response(
                &step.op,
                response,
                &buffers.list,
                self.release,
            )?),
            None if buffers.list.is_empty() => None,
            None => return Err("a list was written without a response".to_owned()),
        };
        Ok(Done {
            errno: written.err(),
            response,
        })
    }

    /// Puts saved values in the place of their names.
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
            Value::Array(values) => values
                .iter()
                .map(|value| self.value(value))
                .collect::<Result<_, _>>()?,
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

fn errno(expect: &Expect, done: &Done) -> Vec<Difference> {
    let got = done.errno();
    if got == expect.errno {
        return Vec::new();
    }
    let expected = expect.errno.clone();
    vec![Difference {
        path: "errno".to_owned(),
        expected,
        got,
    }]
}

fn response(step: &Step, expect: &Expect, done: &Done) -> Vec<Difference> {
    match (&expect.resp, &done.response) {
        (Some(expected), Some(got)) if step.op == "STATE" => compare::state(expected, got),
        (Some(expected), Some(got)) => compare::response(expected, got, &step.unchecked),
        (None, None) => Vec::new(),
        // The dump of a step without a recorded one says nothing.
        (None, Some(_)) if step.op == "STATE" || step.op == "TICK" => Vec::new(),
        (expected, got) => {
            let text = |value: &Option<Value>| {
                value
                    .as_ref()
                    .map_or_else(|| "nothing written".to_owned(), Value::to_string)
            };
            let (expected, got) = (text(expected), text(got));
            vec![Difference {
                path: "resp".to_owned(),
                expected,
                got,
            }]
        }
    }
}

fn differ(path: &str, expected: &Value, got: &Value) -> Option<Difference> {
    (expected != got).then(|| Difference {
        path: path.to_owned(),
        expected: expected.to_string(),
        got: got.to_string(),
    })
}

fn at_path<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, name| match value {
        Value::Array(values) => values.get(name.parse::<usize>().ok()?),
        _ => value.get(name),
    })
}

fn set_path(cmd: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            cmd.insert(path.to_owned(), value);
        }
        Some((name, rest)) => {
            let inner = cmd.entry(name).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                set_path(inner, rest, value);
            }
        }
    }
}

fn unsigned(cmd: &Map<String, Value>, name: &str) -> Result<u32, String> {
    cmd.get(name)
        .and_then(Value::as_u64)
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| format!("cmd.{name}: expected a number"))
}

fn report(cmd: &Map<String, Value>) -> Result<Report, String> {
    let small =
        |name| u16::try_from(unsigned(cmd, name)?).map_err(|error| format!("cmd.{name}: {error}"));
    match cmd.get("what").and_then(Value::as_str) {
        Some("txq_ack") => Ok(Report::TxqInFlight {
            index: unsigned(cmd, "index")?,
            value: unsigned(cmd, "value")?,
        }),
        // Handles of target queues start at 1024, their registers at 0.
        Some("tgq_ack") => Ok(Report::TgqInFlight {
            index: unsigned(cmd, "index")? % 1024 + 1024,
            value: unsigned(cmd, "value")?,
        }),
        Some("tle_in_use") => Ok(Report::TlesInUse {
            pool: unsigned(cmd, "pool")?,
            value: small("value")?,
        }),
        Some("le_alloc") => Ok(Report::LesAllocated {
            element: unsigned(cmd, "pe")?,
            pool: unsigned(cmd, "pool")?,
            value: small("value")?,
        }),
        _ => Err("cmd.what: expected txq_ack, tgq_ack, tle_in_use or le_alloc".to_owned()),
    }
}
