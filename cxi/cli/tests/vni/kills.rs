//! A command on a pool of VNIs is killed at each system call that changes a file, has each call fail,
//! and is killed at random times. Each change is made completely or not at all, and exactly once when
//! it is retried.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use cxi_site::VniPool;
use cxi_site::pool::{Change, Event, PoolConfig, Timestamp};
use cxi_test_kit::{Random, full, skip};
use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::common::Said;
use crate::common::vni_pool::Pool;

/// The state of a pool when a command is killed, and the command.
const CHANGES: [(&[&[&str]], &[&str]); 7] = [
    (&[], &["configure", "1024-65535"]),
    (&[CONFIGURE], &["configure", "1024-2047", "--rest=30s"]),
    (&[CONFIGURE, TWO], &["reserve", "job2"]),
    (&[CONFIGURE, TWO], &["cancel", "job1"]),
    (&[CONFIGURE, TWO], &["release", "job1", "--nodes=n1,n2"]),
    (&[CONFIGURE, TWO, RELEASE], &["confirm", "job1", "--node=n1"]),
    (&[CONFIGURE], &["reconcile", "--node=n1", "--seen=1024-1025"]),
];
const CONFIGURE: &[&str] = &["configure", "1024-65535"];
const TWO: &[&str] = &["reserve", "job1", "--count=2"];
const RELEASE: &[&str] = &["release", "job1", "--nodes=n1,n2"];

/// Fate of a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Act {
    /// It is killed before the system call.
    Kill,
    /// The system call only fails.
    Refuse(Errno),
}

#[test]
fn killed_before_any_write_a_change_is_made_or_not() {
    at_each_call(Act::Kill);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_write_that_is_refused_leaves_no_half_of_a_change() {
    at_each_call(Act::Refuse(Errno::ENOSPC));
}

fn at_each_call(act: Act) {
    // With `CXI_TEST_FULL`, at every change.
    for (before, change) in CHANGES.into_iter().step_by(if full() { 1 } else { 2 }) {
        let pool = Pool::empty();
        for arguments in before {
            pool.vni(*arguments).done();
        }
        each_call_of(&pool, change, act);
    }
    // After the 5,000th change, the file is rewritten to begin with a snapshot of the pool.
    let pool = Pool::empty();
    let config = PoolConfig::new("1024-65535".parse().unwrap());
    let mut late = VniPool::new(config).unwrap().snapshot();
    late.sequence = 4_998;
    let change = Change::Saved { pool: late.into() };
    let saved = Event::new(4_999, Timestamp::default(), change);
    let line = serde_json::to_string(&saved).unwrap() + "\n";
    pool.put(Some(&line.into_bytes()));
    each_call_of(&pool, &["reserve", "job1"], act);
    let saved = String::from_utf8(pool.keep().unwrap()).unwrap();
    assert_eq!((saved.lines().count(), saved.contains("\"saved\"")), (1, true));
}

fn each_call_of(pool: &Pool, change: &[&str], act: Act) {
    let kept = pool.keep();
    let unchanged = pool.state();
    pool.vni(change).done();
    let changed = pool.state();
    let mut calls = 0;
    loop {
        pool.put(kept.as_ref());
        let what = format!("{change:?}, {act:?} at call {calls}");
        let told = match at_call(pool.in_shell(GO, change), calls, act) {
            Ok(Some(told)) => told,
            Ok(None) => break,
            Err(errno) => return skip(format_args!("ptrace(2) is not possible here: {errno}")),
        };
        let now = pool.state();
        assert!(now == unchanged || now == changed, "{what}: {now}");
        let failed = act != Act::Kill && told.code != 0;
        let expected = if failed { &unchanged } else { &changed };
        assert!(
            told.out.is_empty() && told.code == -1 || now == *expected,
            "{what}: {told:?}, but {now}"
        );
        let again = pool.vni(change);
        assert!([0, 8].contains(&again.code) || now == changed, "{what}: {again:?}");
        assert_eq!(pool.state(), changed, "{what}, and once more");
        assert_eq!(pool.others(), Vec::<String>::new(), "{what}");
        calls += 1;
    }
    assert!(calls >= 3, "{change:?}: {calls}");
}

/// Stops until its tracer continues it.
pub(crate) const GO: &str = "read go; exec \"$@\"";

/// Runs a command, and acts at the given one of its calls that change files; `None` if it makes fewer.
pub(crate) fn at_call(mut command: Command, number: usize, act: Act) -> nix::Result<Option<Said>> {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = Tracee(piped.stderr(Stdio::piped()).spawn().unwrap());
    let pid = Pid::from_raw(child.0.id().try_into().unwrap());
    ptrace::seize(
        pid,
        Options::PTRACE_O_EXITKILL | Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACEEXEC,
    )?;
    let input = child.0.stdin.as_mut().unwrap();
    input.write_all(b"go\n").unwrap();
    // The start of the shell may also be seen.
    let cxi = fs::canonicalize(env!("CARGO_BIN_EXE_cxi")).unwrap();
    loop {
        assert!(matches!(waitpid(pid, None)?, WaitStatus::PtraceEvent(..)));
        if fs::read_link(format!("/proc/{pid}/exe")).unwrap() == cxi {
            break;
        }
        ptrace::cont(pid, None)?;
    }
    // A call stops its process on the way in and out. The first stop is the end of the exec.
    let (mut entering, mut locked, mut calls) = (false, false, 0);
    loop {
        ptrace::syscall(pid, None)?;
        match waitpid(pid, None)? {
            WaitStatus::PtraceSyscall(_) => {}
            WaitStatus::Exited(..) => return Ok(None),
            other => panic!("{other:?}"),
        }
        if entering {
            let (call, first) = system_call(pid);
            locked |= call == libc::SYS_flock;
            if locked && act.applies(call, first) {
                calls += 1;
            }
            if calls > number {
                break;
            }
        }
        entering = !entering;
    }
    match act {
        Act::Kill => child.0.kill().unwrap(),
        Act::Refuse(errno) => refuse(pid, errno)?,
    }
    Ok(Some(child.output()))
}

impl Act {
    /// Between calls that change no file it makes no difference when a command is killed.
    fn applies(self, call: i64, first: u64) -> bool {
        match call {
            libc::SYS_write => first > 2 || self == Self::Kill,
            libc::SYS_ftruncate | libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_fchmod => true,
            libc::SYS_openat | libc::SYS_exit_group => self == Self::Kill,
            _ => is_of_names(call),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn is_of_names(call: i64) -> bool {
    let others = [libc::SYS_rename, libc::SYS_unlink, libc::SYS_mkdir, libc::SYS_rmdir];
    AT.contains(&call) || others.contains(&call)
}

#[cfg(not(target_arch = "x86_64"))]
fn is_of_names(call: i64) -> bool {
    AT.contains(&call)
}

const AT: [i64; 4] =
    [libc::SYS_renameat, libc::SYS_renameat2, libc::SYS_unlinkat, libc::SYS_mkdirat];

/// The system call that a stopped process is about to make, and its first argument.
fn system_call(pid: Pid) -> (i64, u64) {
    let text = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap();
    let mut words = text.split_whitespace();
    let number = words.next().unwrap().parse().unwrap();
    let first = words.next().unwrap_or("0x0").trim_start_matches("0x");
    (number, u64::from_str_radix(first, 16).unwrap())
}

/// Continues the process as if its call had failed.
#[cfg(target_arch = "x86_64")]
fn refuse(pid: Pid, errno: Errno) -> nix::Result<()> {
    let mut registers = ptrace::getregs(pid)?;
    registers.orig_rax = u64::MAX;
    ptrace::setregs(pid, registers)?;
    ptrace::syscall(pid, None)?;
    waitpid(pid, None)?;
    let mut registers = ptrace::getregs(pid)?;
    registers.rax = (-i64::from(errno as i32)).cast_unsigned();
    ptrace::setregs(pid, registers)?;
    ptrace::detach(pid, None)
}

#[cfg(not(target_arch = "x86_64"))]
fn refuse(_: Pid, _: Errno) -> nix::Result<()> {
    Err(Errno::ENOSYS)
}

/// A child that does not outlive the test.
struct Tracee(Child);

impl Tracee {
    fn output(mut self) -> Said {
        let read = |pipe: &mut dyn std::io::Read| {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).unwrap();
            bytes
        };
        let stdout = read(self.0.stdout.as_mut().unwrap());
        let stderr = read(self.0.stderr.as_mut().unwrap());
        let status = self.0.wait().unwrap();
        Said::from(std::process::Output { status, stdout, stderr })
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// With `CXI_TEST_FULL`, kills 10,000 times, which takes some minutes.
#[test]
fn commands_that_are_killed_lose_nothing() {
    let (pools, kills) = if full() { (50, 200) } else { (1, 60) };
    let mut random = Random::new(1);
    for _ in 0..pools {
        kill_at_random(kills, &mut random);
    }
}

fn kill_at_random(kills: usize, random: &mut Random) {
    let pool = Pool::new();
    // The VNIs that jobs have and have not been asked to release.
    let mut told = BTreeMap::<String, u64>::new();
    let mut left = 0;
    for number in 0..kills {
        let job = format!("job{number}");
        let leaving = told.keys().next().filter(|_| random.below(4) == 0).cloned();
        let mut commands = vec![vec!["reserve", &job]];
        if let Some(leaving) = &leaving {
            told.remove(leaving);
            left += 1;
            commands.push(vec!["release", leaving, "--nodes=n1"]);
            commands.push(vec!["confirm", leaving, "--all"]);
        }
        // Start all at once: one is killed in the middle, others while they wait for it.
        let mut children: Vec<Child> = commands
            .iter()
            .map(|arguments| {
                let mut command = pool.command(arguments);
                let piped = command.stdout(Stdio::piped()).stderr(Stdio::null());
                piped.spawn().unwrap()
            })
            .collect();
        sleep(Duration::from_micros(random.below(14_000)));
        for (index, child) in children.iter_mut().enumerate() {
            // Even on a slow machine, some learn their VNI.
            if index == 0 && number % 6 == 0 {
                child.wait().unwrap();
            } else {
                child.kill().unwrap();
            }
        }
        for (index, child) in children.into_iter().enumerate() {
            let output = child.wait_with_output().unwrap();
            let out = String::from_utf8(output.stdout).unwrap();
            if let (0, Ok(vni)) = (index, out.trim().parse::<u64>()) {
                told.insert(job.clone(), vni);
            }
        }
        if number % 10 == 9 {
            pool.reserve("last");
            let jobs: BTreeMap<_, _> = pool.jobs().into_iter().collect();
            for (job, vni) in &told {
                assert_eq!(jobs.get(job), Some(vni), "{job} was told its VNI");
            }
            assert_eq!(pool.others(), Vec::<String>::new());
        }
    }
    assert!(left > 0 && !told.is_empty(), "{left} left");
}
