//! Replays a scenario on a device and reports what differs.

use serde_json::{Map, Value};

use crate::compare::{self, Difference};
use crate::device::{Device, LoadFailure};
use crate::report::Failure;
use crate::scenario::{Expect, Scenario, Step};
use crate::step::{Done, Replay, at_path};

/// Replays a scenario from a fresh device on, and returns what is not as recorded.
pub fn run<D: Device>(scenario: &Scenario) -> Vec<Failure> {
    let failed = |path, expected, got| vec![Failure::whole(path, expected, got)];
    let refused = scenario.boot_errno.as_deref();
    let device = match (D::load(scenario.driver, &scenario.device), refused) {
        (Ok(device), None) => device,
        (Ok(_), Some(errno)) => return failed("boot_errno", errno, "the driver loads".to_owned()),
        (Err(LoadFailure::Refused(got)), expected) => {
            if expected == Some(&*got.to_string()) {
                return Vec::new();
            }
            let expected = expected.unwrap_or("the driver loads");
            return failed("boot_errno", expected, got.to_string());
        }
        (Err(LoadFailure::Scenario(reason)), _) => {
            return failed("device", "a device that can be loaded", reason);
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
    // What the driver does there is unknown; a device must survive it.
    let after = scenario.undefined_after.as_ref();
    if let Some(step) = after.and_then(|after| after.step.as_ref()) {
        let _outcome = replay.perform(step);
    }
    replay.failures
}

impl<D: Device> Replay<'_, D> {
    /// Does a step; `recorded` says whether its expectation is that of this pass.
    fn step(&mut self, step: &Step, at: &str, recorded: bool) {
        let differences = match step.op.as_str() {
            "REPEAT" => self.repeat(step, at),
            "FILL" => self.fill(step),
            "DRAIN" => self.drain(step),
            _ => self.single(step, recorded),
        };
        let differences = differences.unwrap_or_else(|reason| {
            vec![Difference::new("step", "a step that can be done", reason)]
        });
        if !differences.is_empty() {
            self.failures.push(Failure::of(step, at, differences));
        }
    }

    fn single(&mut self, step: &Step, recorded: bool) -> Result<Vec<Difference>, String> {
        let done = self.perform(step)?;
        let Some(expect) = step.expect.as_ref().filter(|_| recorded) else { return Ok(Vec::new()) };
        let found = errno(expect, &done).into_iter();
        Ok(found.chain(response(step, expect, &done)).collect())
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
        let mut last = Done { errno: None, response: None };
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
        let mut found = Vec::from_iter(errno(expect, &last));
        if last.errno.is_some() {
            found.extend(response(inner, expect, &last));
        }
        let ends = [
            ("successes", expect.successes.map(Value::from), Some(successes.into())),
            ("first", expect.first.clone(), collected.first().cloned()),
            ("last", expect.last.clone(), collected.last().cloned()),
        ];
        found.extend(ends.into_iter().filter_map(|(path, expected, got)| {
            differ(path, &expected?, &got.unwrap_or_default())
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
        let values =
            self.lists.remove(list).ok_or_else(|| format!("no FILL made a list '{list}'"))?;
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
            found.extend(differ("successes", &expected.into(), &Value::from(successes)));
        }
        if let Some(mut expected) = expect.errors.clone() {
            expected.sort_unstable();
            found.extend(differ("errors", &expected.into(), &errors.into()));
        }
        Ok(found)
    }
}

fn errno(expect: &Expect, done: &Done) -> Option<Difference> {
    let got = done.errno();
    (got != expect.errno).then(|| Difference::new("errno", &expect.errno, got))
}

fn response(step: &Step, expect: &Expect, done: &Done) -> Vec<Difference> {
    match (&expect.resp, &done.response) {
        (Some(expected), Some(got)) if step.op == "STATE" => compare::state(expected, got),
        (Some(expected), Some(got)) => compare::response(expected, got, &step.unchecked),
        (None, None) => Vec::new(),
        // The dump of a step without a recorded one says nothing.
        (None, Some(_)) if step.op == "STATE" || step.op == "TICK" => Vec::new(),
        (expected, got) => {
            let nothing = || "nothing written".to_owned();
            let text =
                |value: &Option<Value>| value.as_ref().map_or_else(nothing, Value::to_string);
            vec![Difference::new("resp", text(expected), text(got))]
        }
    }
}

fn differ(path: &str, expected: &Value, got: &Value) -> Option<Difference> {
    (expected != got).then(|| Difference::new(path, expected, got))
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
