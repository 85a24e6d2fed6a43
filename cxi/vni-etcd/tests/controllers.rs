//! Controllers as processes on an etcd of three members: when one is killed, stopped or loses its
//! network, another one takes over, and meanwhile members are killed. No VNI is ever in two jobs, and
//! none is lost.

mod proxy;
mod server;

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead as _, BufReader, Write as _, stderr};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use cxi_site::JobId;
use cxi_site::fabric::Patience;
use cxi_site::pool::log::{ChangeError, EventLog as _, SharedPool};
use cxi_site::pool::{VniPool, VniRequest};
use cxi_test_kit::{Random, full};
use cxi_vni_etcd::EtcdLog;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proxy::Proxy;
use server::{Etcd, at, config, http};

/// Makes this binary a controller: where the members of etcd are, its epoch, and the job it begins with.
const ORDER: &str = "CXI_TEST_CONTROLLER";
/// Longest time that a controller may say nothing.
const PATIENCE: Duration = Duration::from_secs(60);
/// After this many pieces of data a connection is cut, before a request or after an answer. A log that
/// is read whole has many more.
const PIECES: u32 = 30;
const DEPOSED: &str = "deposed";

fn log(urls: &[impl AsRef<str>]) -> EtcdLog {
    let patience = Patience {
        attempt: Duration::from_secs(2),
        pause: Duration::from_millis(5),
        ..Patience::default()
    };
    EtcdLog::new(http(), urls, "/pool/").patience(patience)
}

fn job(number: usize) -> JobId {
    JobId::new(format!("job{number}")).unwrap()
}

/// Assigns VNIs to jobs, one after the other, until another controller leads, and prints what it
/// assigned. After an error of the network, a job asks again.
#[test]
#[ignore = "a process of the other test"]
fn controller() {
    let Ok(order) = env::var(ORDER) else { return };
    let [urls, epoch, first] = order.split(' ').collect::<Vec<_>>()[..] else { panic!("{order}") };
    let epoch: u64 = epoch.parse().unwrap();
    let urls: Vec<&str> = urls.split(',').collect();
    // Not forever, in case its test was killed.
    let again = (0..100_000).map(|_| sleep(Duration::from_millis(5)));
    let mut pool = again
        .clone()
        .find_map(|()| {
            let writer = format!("controller/{epoch}");
            SharedPool::open(log(&urls), config(), writer, epoch, at(epoch)).ok()
        })
        .expect("etcd");
    for number in first.parse().unwrap().. {
        let job = job(number);
        let reserve = |()| match pool.reserve(&job, &VniRequest::vnis(1), at(epoch)) {
            Ok(vnis) => Some(format!("{number} {vnis}")),
            Err(error) if error.is_deposed() => Some(DEPOSED.to_owned()),
            Err(ChangeError::Refused(error)) => panic!("{error}"),
            Err(_) => None,
        };
        let said = again.clone().find_map(reserve).expect("etcd");
        writeln!(stderr(), "{said}").unwrap();
        if said == DEPOSED {
            return;
        }
        // A large pool does not get through, so the log is longer.
        if number.is_power_of_two() {
            let _ = pool.save(at(epoch));
        }
    }
}

/// A process that leads, and the network between it and etcd.
struct Controller {
    process: Child,
    said: Receiver<String>,
    networks: Vec<Proxy>,
}

impl Controller {
    fn start(etcd: &[Etcd], epoch: u64, first: usize) -> Self {
        let networks = etcd.iter().map(|one| Proxy::start(one.address(), PIECES));
        let networks: Vec<Proxy> = networks.collect();
        let urls: Vec<String> = networks.iter().map(Proxy::url).collect();
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["controller", "--exact", "--ignored", "--nocapture"])
            .env(ORDER, format!("{} {epoch} {first}", urls.join(",")))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        let (tell, said) = channel();
        spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Self { process, said, networks }
    }

    fn set_down(&self, down: bool) {
        self.networks.iter().for_each(|one| one.set_down(down));
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id().cast_signed()), signal).unwrap();
    }

    fn line(&self) -> Option<String> {
        match self.said.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("a controller hangs"),
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Assignments of the controllers.
#[derive(Default)]
struct Told(BTreeMap<usize, String>);

impl Told {
    fn hear(&mut self, line: &str) {
        let told = line.split_once(' ').and_then(|(number, vni)| {
            let number = number.parse().ok()?;
            Some((number, vni.to_owned()))
        });
        let (number, vni) = told.unwrap_or_else(|| panic!("a controller says: {line}"));
        let before = self.0.entry(number).or_insert_with(|| vni.clone());
        assert_eq!(*before, vni, "job {number} was told two VNIs");
    }

    /// Everything until a controller ends; whether it was deposed.
    fn hear_rest(&mut self, controller: &Controller) -> bool {
        while let Some(line) = controller.line() {
            if line == DEPOSED {
                return true;
            }
            self.hear(&line);
        }
        false
    }
}

#[test]
fn no_vni_is_in_two_jobs_and_none_is_lost() {
    let Some(mut etcd) = Etcd::members(3, "http", &[]) else { return };
    let start = Instant::now();
    let wanted = if full() { 10_000 } else { 300 };
    let (mut random, mut told) = (Random::new(15), Told::default());
    let (mut epoch, mut cuts, mut deposed, mut killed) = (0, 0, 0, 0);
    let (mut down, mut members_killed) = (None, 0);
    let mut longest = Duration::ZERO;
    // Stopped, or without a network.
    let mut away: Vec<Controller> = Vec::new();
    while told.0.len() < wanted {
        epoch += 1;
        let leader = Controller::start(&etcd, epoch, told.0.len());
        let until = told.0.len() + 1 + random.below(wanted / 12);
        if let Some(member) = down.take() {
            let member: &mut Etcd = &mut etcd[member];
            member.restart();
        }
        let kill_at = told.0.len() + 1 + (until - told.0.len()) / 2;
        while told.0.len() < until {
            let before = Instant::now();
            told.hear(&leader.line().expect("the only leader ended"));
            longest = longest.max(before.elapsed());
            // Two of three are enough.
            if told.0.len() >= kill_at && down.is_none() {
                let member = random.below(etcd.len());
                etcd[member].kill();
                down = Some(member);
                members_killed += 1;
            }
        }
        // Another controller has written: one that comes back must not continue.
        if random.below(2) == 0
            && let Some(back) = away.pop()
        {
            back.set_down(false);
            back.signal(Signal::SIGCONT);
            assert!(told.hear_rest(&back), "a leader that was deposed goes on");
            deposed += 1;
        }
        cuts += leader.networks.iter().map(Proxy::cuts).sum::<u32>();
        match epoch % 3 {
            0 => {
                leader.signal(Signal::SIGKILL);
                told.hear_rest(&leader);
                killed += 1;
            }
            1 => {
                leader.signal(Signal::SIGSTOP);
                away.push(leader);
            }
            _ => {
                leader.set_down(true);
                away.push(leader);
            }
        }
    }
    for leader in &away {
        leader.signal(Signal::SIGKILL);
        told.hear_rest(leader);
    }
    assert!(
        cuts > 10 && epoch > 5 && deposed > 1 && members_killed > 5,
        "nothing went wrong: {cuts} cuts, {epoch} leaders, {deposed} deposed, {members_killed} members killed"
    );

    let records = log(&etcd.iter().map(Etcd::url).collect::<Vec<_>>()).load(0).unwrap();
    let events: Vec<_> = records.into_iter().map(|it| it.event).collect();
    // It refuses a VNI that a job has.
    let pool = VniPool::replay(config(), &events).unwrap();
    for (number, vni) in &told.0 {
        let held = &pool.job(&job(*number)).expect("the job").vnis;
        assert_eq!(held.to_string(), *vni);
    }
    // The last controller may have logged a job that it did not print.
    assert!((0..=1).contains(&(pool.jobs().count() - told.0.len())));
    if full() {
        let (jobs, time) = (told.0.len(), start.elapsed());
        let said = format!(
            "{jobs} jobs, {epoch} leaders, {killed} killed, {deposed} deposed, {members_killed} members \
             killed, {cuts} cuts, {time:?}; longest pause {longest:?}"
        );
        writeln!(stderr(), "{said}").unwrap();
    }
}
