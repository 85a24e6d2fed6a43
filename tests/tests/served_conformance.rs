//! Replays recorded scenarios on a served node, as the users that they name.
//!
//! A part of the scenarios; all of them with `CXI_TEST_FULL=1`.

mod node;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Mutex};

use cxi_ioctl::{DriverRelease, Errno};
use cxi_mock::{CallerMemory, Credentials};
use cxi_tests::actor::{Answer, Caller, Task};
use cxi_tests::device::{Device, LoadFailure, Report};
use cxi_tests::mock::InProcess;
use cxi_tests::scenario::Setup;
use cxi_tests::{archive, suite};
use node::{CLIENT, Served, printed, server};
use serde_json::Value;

/// One scenario in so many is replayed.
const PART: usize = 50;

/// What numbers of network namespaces are called in scenarios. A test cannot choose them.
const NAMESPACES: [&str; 3] = ["NETNS", "NET_NS", "\"netns\":4026531841"];

struct Node {
    /// Ends before the node does.
    actor: Arc<Mutex<Actor>>,
    served: Served,
    release: DriverRelease,
}

struct Actor {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Actor {
    fn ask(&mut self, task: &Task) -> Answer {
        let mut line = serde_json::to_vec(task).expect("a task is JSON");
        line.push(b'\n');
        let mut input = self.input.as_ref().expect("it lives");
        input.write_all(&line).expect("the actor listens");
        let mut answer = String::new();
        self.output
            .read_line(&mut answer)
            .expect("the actor answers");
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // It ends when there is nothing more to read.
        drop(self.input.take());
        let _ = self.process.wait();
    }
}

struct File {
    actor: Arc<Mutex<Actor>>,
    number: u32,
}

impl Drop for File {
    fn drop(&mut self) {
        let mut actor = self.actor.lock().expect("no test panicked");
        actor.ask(&Task::Close { file: self.number });
    }
}

impl Device for Node {
    type File = File;

    fn load(release: DriverRelease, setup: &Setup) -> Result<Self, LoadFailure> {
        let mut options = vec!["--manual-cleanup".to_owned()];
        options.extend(["--release".to_owned(), release.name().to_owned()]);
        for (name, value) in &setup.params {
            let value = match value {
                Value::Bool(value) => u8::from(*value).to_string(),
                Value::Array(list) => {
                    let list: Vec<_> = list.iter().map(ToString::to_string).collect();
                    list.join(",")
                }
                value => value.to_string(),
            };
            options.extend(["--set".to_owned(), format!("{name}={value}")]);
        }
        let directory = node::Directory::new();
        if setup.vf {
            let config = directory.join("config.json");
            std::fs::write(&config, r#"{"virtual_functions": 1}"#).expect("a file");
            options.extend(["--config".to_owned(), config]);
        }
        if let Err(refusal) = InProcess::load(release, setup) {
            // A server that cannot load the driver has no errno to show, and says it.
            let output = server(["run"]).args(&options).args(["--", "true"]).output();
            let output = output.expect("the server runs");
            assert_eq!(output.status.code(), Some(125), "{output:?}");
            return Err(refusal);
        }
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let served = Served::start(&options);
        let mut process = served
            .command(&[CLIENT, "actor"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server runs");
        let actor = Actor {
            input: Some(process.stdin.take().expect("a pipe")),
            output: BufReader::new(process.stdout.take().expect("a pipe")),
            process,
        };
        Ok(Self {
            served,
            actor: Arc::new(Mutex::new(actor)),
            release,
        })
    }

    fn open(&self, caller: &Credentials, virtual_function: bool) -> Result<File, Errno> {
        let number = u8::from(virtual_function);
        let answer = self
            .actor
            .lock()
            .expect("no test panicked")
            .ask(&Task::Open {
                device: PathBuf::from(format!("/dev/cxi{number}")),
                caller: Caller::from(caller),
            });
        match answer.file {
            Some(number) => Ok(File {
                actor: Arc::clone(&self.actor),
                number,
            }),
            None => Err(Errno::from_raw(answer.errno.unwrap_or_default())),
        }
    }

    fn write(
        &self,
        file: &File,
        caller: &Credentials,
        command: &[u8],
        memory: &mut dyn CallerMemory,
    ) -> Result<usize, Errno> {
        let mut actor = self.actor.lock().expect("no test panicked");
        let answer = actor.ask(&Task::Write {
            file: file.number,
            caller: Caller::from(caller),
            release: self.release.name().to_owned(),
            command: command.to_vec(),
            bad: memory.write_list(&[]).is_err(),
        });
        if let Some(response) = answer.response {
            memory.write_list(&answer.list)?;
            memory.respond(&response)?;
        }
        match answer.errno {
            None => Ok(command.len()),
            Some(errno) => Err(Errno::from_raw(errno)),
        }
    }

    fn tick(&self) -> bool {
        printed(&self.served.ctl(&["tick"])) == "true"
    }

    fn report(&self, report: Report) -> Result<(), String> {
        let words = match report {
            Report::TxqInFlight { index, value } => format!("txq {index} {value}"),
            Report::TgqInFlight { index, value } => format!("tgq {index} {value}"),
            Report::TlesInUse { pool, value } => format!("tles {pool} {value}"),
            Report::LesAllocated {
                element,
                pool,
                value,
            } => format!("les {element} {pool} {value}"),
        };
        let mut order = vec!["hardware"];
        order.extend(words.split(' '));
        let output = self.served.ctl(&order);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success().then_some(()).ok_or(error)
    }

    fn state(&self) -> Result<Value, String> {
        Ok(self.served.state())
    }
}

#[test]
fn scenarios_on_a_served_node() {
    need_node!(node::root("be every user of a scenario"));
    let mut files = archive::packed().expect("the project's copy can be read");
    files.retain(|file| {
        let text = String::from_utf8_lossy(&file.json).replace(' ', "");
        !NAMESPACES.iter().any(|name| text.contains(name))
    });
    let part = if node::full() { 1 } else { PART };
    let files: Vec<_> = files.into_iter().skip(part / 2).step_by(part).collect();
    assert!(files.len() > 10, "there are scenarios");
    let summary = suite::run_all::<Node>(&files);
    for (path, failures) in summary.failed.iter().take(5) {
        let _ = writeln!(std::io::stderr(), "{path}");
        for failure in failures.iter().take(4) {
            let _ = writeln!(std::io::stderr(), "{failure}");
        }
    }
    assert!(summary.failed.is_empty(), "{}", summary.line());
    assert_eq!(summary.passed, files.len(), "{}", summary.line());
}
