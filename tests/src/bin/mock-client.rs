//! A program for a node with CXI NICs. It exits with 1 and a message if something is not as expected.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use cxi_tests::client::{self, Problem};
use cxi_tests::on_node::OnNode;
use cxi_tests::run::run;
use cxi_tests::scenario::Scenario;
use cxi_tests::{absent, allreduce, roam, targets, traffic, windows};

const USAGE: &str = "usage: mock-client cycle DEVICE
       mock-client storm DEVICE PROCESS THREADS COMMANDS
       mock-client open DEVICE TIMES
       mock-client churn DEVICE SERVICE
       mock-client allocate DEVICE VNI UID
       mock-client lni DEVICE SERVICE
       mock-client destroy DEVICE SERVICE
       mock-client count DEVICE
       mock-client windows DEVICE
       mock-client map DEVICE
       mock-client doorbell DEVICE TIMES
       mock-client borrow DEVICE
       mock-client survive DEVICE UNPLUG ARGUMENT...
       mock-client calls cxiN RELEASE
       mock-client wait cxiN WAKE ARGUMENT...
       mock-client watch cxiN TIMES
       mock-client polls cxiN TIMES
       mock-client exchange cxiN PID PEER_NID PEER_PID ROUNDS [BYTES]
       mock-client absent cxiN PID PEER_NID PEER_PID FILE
       mock-client allreduce cxiN TREE RANK SIZE ROUNDS
       mock-client hold cxiN PID
       mock-client ring cxiN PID ROUNDS
       mock-client intrude cxiN PID VICTIM_NID VICTIM_PID
       mock-client roam cxiN NID,... PLACE PLACES MILLISECONDS
       mock-client nid cxiN
       mock-client packets cxiN [PROGRAM ARGUMENT...]
       mock-client replay
       mock-client as UID PROGRAM ARGUMENT...
       mock-client threaded ARGUMENT...";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match act(&arguments) {
        Ok(text) => {
            // There may be no reader anymore.
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            // In one piece, because clients of other nodes may write to the same file.
            let line = format!("mock-client: {problem}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn act(arguments: &[String]) -> Result<String, Problem> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["as", uid, program, arguments @ ..] => {
            let uid = number(uid)?;
            let error = Command::new(program).args(arguments).uid(uid).gid(uid).exec();
            Err(format!("{program}: {error}"))
        }
        // Runs the arguments next to two threads: one sends commands, and one executes `true` when
        // a line arrives on the standard input.
        ["threaded", _, device, ..] => {
            let busy = open(device)?;
            std::thread::spawn(move || traffic::make_queues(&busy).map_err(said));
            std::thread::spawn(|| {
                let line = std::io::stdin().lines().next();
                line.map(|_| Command::new("true").exec())
            });
            act(&arguments[1..])
        }
        ["calls", device, release] => {
            let release = release.parse().map_err(said)?;
            let open = || open(device).expect("a NIC that is there");
            Ok(cxi_tests::calls::said(release, &open).join("\n"))
        }
        ["wait", device, wake, arguments @ ..] => {
            let waker = || {
                let mut command = Command::new(wake);
                command.args(arguments);
                command
            };
            let slept = cxi_tests::wait::sleeps_until_woken(&open(device)?, &waker);
            slept.map(|()| "ok".to_owned()).map_err(said)
        }
        ["watch", device, times] => {
            cxi_tests::wait::watch(&open(device)?, number(times)?).map_err(said)
        }
        ["polls", device, times] => {
            cxi_tests::wait::polls(&open(device)?, number(times)?).map_err(said)
        }
        ["nid", device] => Ok(open(device)?.info().map_err(said)?.nid.to_string()),
        ["exchange", device, pid, nid, peer, rounds, bytes @ ..] => {
            let peer = (number(nid)?, number(peer)?);
            let (rounds, bytes) = match bytes {
                [] => (number(rounds)?, traffic::MESSAGE),
                [bytes] => (number(rounds)?, number(bytes)?),
                _ => return Err(USAGE.to_owned()),
            };
            traffic::exchange(&open(device)?, number(pid)?, peer, rounds, bytes).map_err(said)
        }
        ["absent", device, pid, nid, peer, file] => {
            let peer = (number(nid)?, number(peer)?);
            absent::put(&open(device)?, number(pid)?, peer, Path::new(file)).map_err(said)
        }
        ["allreduce", device, tree, rank, size, rounds] => {
            let (tree, place) = (number(tree)?, (number(rank)?, number(size)?));
            allreduce::allreduce(&open(device)?, tree, place, number(rounds)?).map_err(said)
        }
        ["hold", device, pid] => traffic::hold(&open(device)?, number(pid)?).map_err(said),
        ["ring", device, pid, rounds] => {
            targets::ring(&open(device)?, number(pid)?, number(rounds)?).map_err(said)
        }
        ["intrude", device, pid, nid, victim] => {
            let victim = (number(nid)?, number(victim)?);
            traffic::intrude(&open(device)?, number(pid)?, victim).map_err(said)
        }
        ["roam", device, nids, place, places, milliseconds] => {
            let nids: Vec<u32> = nids.split(',').map(number).collect::<Result<_, _>>()?;
            let places = (number(place)?, number(places)?);
            let time = Duration::from_millis(number(milliseconds)?);
            roam::roam(&open(device)?, &nids, places, time).map_err(said)
        }
        ["packets", device, program @ ..] => {
            let id: cxi::DeviceId = device.parse().map_err(|error| format!("{error}"))?;
            cxi_tests::packets::send(id, program)
        }
        ["replay"] => replay(),
        [what, device, rest @ ..] => with_device(what, &PathBuf::from(device), rest),
        _ => Err(USAGE.to_owned()),
    }
}

/// Replays the scenario on the standard input.
fn replay() -> Result<String, Problem> {
    let mut json = Vec::new();
    std::io::stdin().read_to_end(&mut json).map_err(said)?;
    let failures = run::<OnNode>(&Scenario::parse(&json)?);
    if failures.is_empty() {
        return Ok("ok".to_owned());
    }
    let failures: Vec<_> = failures.iter().map(ToString::to_string).collect();
    Err(failures.join("\n"))
}

fn open(device: &str) -> Result<cxi::Device, Problem> {
    let id: cxi::DeviceId = device.parse().map_err(said)?;
    cxi::Device::open(id).map_err(said)
}

fn said(error: impl std::fmt::Display) -> Problem {
    error.to_string()
}

fn with_device(what: &str, path: &Path, rest: &[&str]) -> Result<String, Problem> {
    match (what, rest) {
        ("cycle", []) => client::cycle(path)?,
        ("storm", [process, threads, commands]) => {
            client::storm(path, number(process)?, number(threads)?, number(commands)?)?;
        }
        ("open", [times]) => client::open_often(path, number(times)?)?,
        ("churn", [service]) => client::churn(path, number(service)?)?,
        ("windows", []) => {
            return Ok(match windows::are_private(path)? {
                None => "mapped".to_owned(),
                Some(errno) => errno.to_string(),
            });
        }
        ("doorbell", [times]) => windows::exchange_doorbells(path, number(times)?)?,
        ("borrow", []) => windows::ring_of_another_file(path)?,
        ("map", []) => windows::keep_the_file_open(path)?,
        ("survive", [unplug, arguments @ ..]) => {
            client::survive(path, Command::new(unplug).args(arguments))?;
        }
        ("allocate", [vni, uid]) => {
            let device = client::open(path)?;
            let svc_id = client::allocate(&device, number(vni)?, Some(number(uid)?));
            return Ok(client::run("allocate", svc_id)?.to_string());
        }
        ("lni", [service]) => {
            let device = client::open(path)?;
            let lni = client::open_lni(&device, number(service)?);
            return Ok(client::run("LNI", lni)?.to_string());
        }
        ("destroy", [service]) => {
            let device = client::open(path)?;
            client::run("destroy", client::destroy(&device, number(service)?))?;
        }
        ("count", []) => {
            let device = client::open(path)?;
            return Ok(client::run("count", client::count(&device))?.to_string());
        }
        _ => return Err(USAGE.to_owned()),
    }
    Ok("ok".to_owned())
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| format!("'{text}' is not a number of the right size"))
}
