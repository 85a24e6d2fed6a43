//! The screen of `cxi top`, and its keys.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::mem;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal::{
    self, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use cxi::{DeviceId, Resource, ResourceLevel};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::{NicUsage, RATES, Usage, User, by_resource, by_share, table};
use crate::devices::rate;
use crate::exit::Failure;
use crate::node::this_node;
use crate::output::{Columns, DOWN, HEADING, or_dash};

const KEYS: &str = "q quit  s sort  f filter  n NIC  p pause";
/// Longest time until a signal is noticed.
const SIGNALS: Duration = Duration::from_millis(100);
/// Smaller screens show users in place of the resources and the keys.
const ROOM_FOR_RESOURCES: usize = 13;
const ROOM_FOR_KEYS: usize = 10;

/// Choices of the user.
pub(super) struct View {
    interval: Duration,
    host: String,
    /// 0: by share; 1: by job; from 2 on: by each resource.
    sort: usize,
    nic: Option<DeviceId>,
    filter: String,
    is_typing: bool,
    is_paused: bool,
    /// Reason for which the last reading failed.
    failure: Option<String>,
}

impl View {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval: interval.max(Duration::from_millis(10)),
            host: this_node().map_or_else(|_| "this node".to_owned(), |name| name.to_string()),
            sort: 0,
            nic: None,
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            failure: None,
        }
    }

    /// Obeys a key. Returns whether to continue.
    fn press(&mut self, key: KeyEvent, nics: &[NicUsage]) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return false,
            KeyCode::Char(letter) if self.is_typing => self.filter.push(letter),
            KeyCode::Backspace if self.is_typing => drop(self.filter.pop()),
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc if self.is_typing || !self.filter.is_empty() => {
                self.filter.clear();
                self.is_typing = false;
            }
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char('s') => self.sort = (self.sort + 1) % (2 + Resource::ALL.len()),
            KeyCode::Char('f' | '/') => self.is_typing = true,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('n') => {
                let next = nics.iter().map(|nic| nic.device);
                self.nic = match self.nic {
                    None => next.min(),
                    Some(now) => next.filter(|nic| *nic > now).min(),
                };
            }
            _ => {}
        }
        true
    }

    /// The users to show, in order.
    fn users<'a>(&self, usage: &'a Usage) -> Vec<&'a User> {
        let is_shown = |user: &&User| {
            let job = user.job.as_ref().map_or("", |job| job.as_str());
            let has = |text: &str| text.contains(&self.filter);
            self.nic.is_none_or(|nic| user.devices.contains(&nic))
                && (has(job) || has(&user.members) || has(&user.vnis.to_string()))
        };
        let mut users: Vec<&User> = usage.users.iter().filter(is_shown).collect();
        users.sort_by(|one, other| match self.resource() {
            Some(resource) => other.in_use[resource].cmp(&one.in_use[resource]),
            None if self.sort == 1 => one.job.cmp(&other.job),
            None => by_share(one, other),
        });
        users
    }

    fn resource(&self) -> Option<Resource> {
        let index = self.sort.checked_sub(2)?;
        Resource::ALL.get(index).copied()
    }

    fn title(&self, at: SystemTime) -> String {
        let by = match (self.sort, self.resource()) {
            (_, Some(resource)) => resource.to_string(),
            (1, None) => "job".to_owned(),
            _ => "share".to_owned(),
        };
        // What changes precedes what does not, so that a narrow screen shows it: first the error, then
        // what the user chose.
        let mut title = format!("cxi top  {}", self.host);
        if let Some(failure) = &self.failure {
            let _ = write!(title, "  error: {failure}");
        }
        let _ = write!(title, "  by {by}");
        if let Some(nic) = self.nic {
            let _ = write!(title, "  {nic}");
        }
        if self.is_typing || !self.filter.is_empty() {
            let caret = if self.is_typing { "_" } else { "" };
            let _ = write!(title, "  filter: {}{caret}", self.filter);
        }
        if self.is_paused {
            title += "  paused";
        }
        let time = humantime::format_rfc3339_seconds(at);
        let every = humantime::format_duration(self.interval);
        let _ = write!(title, "  {time}  every {every}");
        title
    }

    /// The lines of a screen of this size. Rates need an earlier reading.
    fn lines(
        &self,
        usage: &Usage,
        before: Option<&Usage>,
        at: SystemTime,
        (width, height): (usize, usize),
    ) -> Vec<String> {
        let is_shown = |nic: &&NicUsage| self.nic.is_none_or(|only| only == nic.device);
        let nics: Vec<&NicUsage> = usage.nics.iter().filter(is_shown).collect();
        let title: String = self.title(at).chars().take(width).collect();
        let mut lines = vec![format!("{HEADING}{title}{HEADING:#}")];
        let rows = |table: Columns| -> Vec<String> {
            table.render_within(0, Some(width)).lines().map(str::to_owned).collect()
        };
        lines.extend(rows(rates(&nics, before)));
        // Of each NIC if that leaves room for users, else of all together.
        let each: Vec<&[&NicUsage]> = nics.chunks(1).collect();
        let all = [&*nics];
        let room = height.saturating_sub(ROOM_FOR_RESOURCES + nics.len());
        let groups = if room >= AMOUNTS.len() * nics.len() { &*each } else { &all };
        if room >= AMOUNTS.len() {
            lines.push(String::new());
            lines.extend(rows(resources(groups)));
            lines.push(String::new());
        }
        lines.extend(rows(table(&self.users(usage))));
        let keys = usize::from(height >= ROOM_FOR_KEYS);
        lines.truncate(height.saturating_sub(keys).max(1));
        if keys == 1 {
            lines.resize(height - 1, String::new());
            lines.push(KEYS.chars().take(width).collect());
        }
        lines
    }
}

fn rates(nics: &[&NicUsage], before: Option<&Usage>) -> Columns {
    let mut headings = vec!["NIC", "Link"];
    headings.extend(RATES.map(|(heading, _)| heading));
    let mut table = Columns::new(&headings).right(&[2, 3, 4, 5]);
    for nic in nics {
        let earlier =
            before.and_then(|usage| usage.nics.iter().find(|old| old.device == nic.device));
        let mut row = vec![nic.device.to_string(), nic.link.clone()];
        row.extend(nic.counters.iter().enumerate().map(|(index, now)| {
            let pair = earlier.and_then(|nic| nic.counters[index]).zip(*now);
            or_dash(pair.map(|(before, now)| magnitude(rate(before, now))))
        }));
        table.row_in(if nic.link_up { Style::new() } else { DOWN }, row);
    }
    table
}

/// A rate in at most five characters, such as `12.3M`.
fn magnitude(rate: f64) -> String {
    let units = [("G", 1e9), ("M", 1e6), ("k", 1e3)];
    match units.into_iter().find(|(_, unit)| rate >= *unit) {
        Some((letter, unit)) => format!("{:.1}{letter}", rate / unit),
        None => format!("{rate:.0}"),
    }
}

type Amount = fn(&ResourceLevel) -> u16;

/// Amounts that are shown of each resource.
const AMOUNTS: [(&str, Amount); 3] = [
    ("in use", |level| level.in_use),
    ("reserved", |level| level.reserved),
    ("free", |level| level.reservable),
];

/// The totals of each of these groups of NICs.
fn resources(groups: &[&[&NicUsage]]) -> Columns {
    let mut table = by_resource(&["NIC", ""]);
    for nics in groups {
        let name = match nics {
            [only] => only.device.to_string(),
            _ => "all".to_owned(),
        };
        for (what, amount) in AMOUNTS {
            let mut row = vec![name.clone(), what.to_owned()];
            row.extend(Resource::ALL.map(|resource| {
                let levels = nics.iter().map(|nic| &nic.resources[resource]);
                let sum: u32 = levels.map(|level| u32::from(amount(level))).sum();
                sum.to_string()
            }));
            table.row(row);
        }
    }
    table
}

/// The terminal in the mode that this program needs. Its previous mode is restored at the end.
struct Terminal;

impl Terminal {
    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        let terminal = Self;
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)?;
        Ok(terminal)
    }

    fn draw(lines: &[String]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let colored = AutoStream::choice(&out) != ColorChoice::Never;
        queue!(out, cursor::MoveTo(0, 0))?;
        for (number, line) in lines.iter().enumerate() {
            let plain = anstream::adapter::strip_str(line).to_string();
            write!(out, "{}", if colored { line } else { &plain })?;
            queue!(out, Clear(ClearType::UntilNewLine))?;
            if number + 1 < lines.len() {
                // In raw mode, a line feed does not return to the first column.
                out.write_all(b"\r\n")?;
            }
        }
        queue!(out, Clear(ClearType::FromCursorDown))?;
        out.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // If the terminal is gone, nothing is left to restore.
        let _ = execute!(io::stdout(), cursor::Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// Waits for a key or a signal, at most this long; returns whether the terminal is still there.
/// If the terminal is gone, crossterm would read its end of file in an endless loop.
fn wait_for_input(time: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut input = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
    match poll(&mut input, time) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
    let [input] = input;
    Ok(!input.revents().is_some_and(|events| events.intersects(gone)))
}

/// Shows what `look` sees until a key or a signal ends it.
pub(super) fn show(
    mut view: View,
    look: impl Fn() -> Result<Usage, Failure>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::failed(format!("cannot use the terminal: {error}"));
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP, SIGINT] {
        flag::register(signal, Arc::clone(&ended)).map_err(failed)?;
    }
    let mut usage = look()?;
    let (mut before, mut at) = (None, SystemTime::now());
    let mut due = Instant::now() + view.interval;
    let _terminal = Terminal::enter().map_err(failed)?;
    while !ended.load(Ordering::Relaxed) {
        let size = match terminal::size().map_err(failed)? {
            // This terminal does not know its size.
            (0, _) | (_, 0) => (80, 24),
            (width, height) => (width.into(), height.into()),
        };
        Terminal::draw(&view.lines(&usage, before.as_ref(), at, size)).map_err(failed)?;
        loop {
            let wait = due.saturating_duration_since(Instant::now()).min(SIGNALS);
            let wait = if view.is_paused { SIGNALS } else { wait };
            if !wait_for_input(wait).map_err(failed)? {
                return Ok(());
            }
            if event::poll(Duration::ZERO).map_err(failed)? {
                match event::read().map_err(failed)? {
                    Event::Key(key)
                        if key.kind == KeyEventKind::Press && !view.press(key, &usage.nics) =>
                    {
                        return Ok(());
                    }
                    _ => {}
                }
                break;
            }
            if ended.load(Ordering::Relaxed) {
                break;
            }
            if !view.is_paused && Instant::now() >= due {
                match look() {
                    Ok(now) => {
                        let earlier = mem::replace(&mut usage, now);
                        // A NIC that was removed and came back may count from 0 again.
                        before = view.failure.take().is_none().then_some(earlier);
                        at = SystemTime::now();
                    }
                    Err(failure) => view.failure = Some(failure.message().replace('\n', " ")),
                }
                due = Instant::now() + view.interval;
                break;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use cxi::{ResourceMap, Vni, VniAccess, VniList};
    use cxi_job::JobId;

    use super::*;

    fn user(job: &str, nic: u32, txqs: u32, share: f64) -> User {
        let mut in_use = ResourceMap::default();
        in_use[Resource::Txqs] = txqs;
        User {
            job: Some(JobId::new(job).unwrap()),
            members: format!("uid {job}"),
            vnis: VniAccess::List(VniList::try_from(vec![Vni::new(1024).unwrap()]).unwrap()),
            devices: vec![DeviceId::new(nic)],
            in_use,
            share,
        }
    }

    fn nic(number: u32, count: u64, second: u64) -> NicUsage {
        let reading = (count, Duration::from_secs(second));
        NicUsage {
            device: DeviceId::new(number),
            link_up: number == 0,
            link_restarts: 0,
            link: "up, 200 Gbit/s".to_owned(),
            resources: ResourceMap::default(),
            counters: [Some(reading), Some(reading), None, None],
        }
    }

    fn usage(count: u64, second: u64) -> Usage {
        Usage {
            nics: vec![nic(0, count, second), nic(1, 0, second)],
            users: vec![user("7", 0, 3, 95.0), user("8", 1, 9, 1.0)],
        }
    }

    fn plain(view: &View, size: (usize, usize)) -> Vec<String> {
        let lines =
            view.lines(&usage(4_000_000, 12), Some(&usage(0, 10)), SystemTime::UNIX_EPOCH, size);
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    fn view() -> View {
        let mut view = View::new(Duration::from_secs(2));
        view.host = "n1".to_owned();
        view
    }

    #[test]
    fn a_small_screen_is_not_exceeded_and_shows_the_first_user() {
        for size in [(60, 8), (80, 24), (160, 50), (1, 1), (20, 3)] {
            let lines = plain(&view(), size);
            assert!(lines.len() <= size.1, "{size:?}: {lines:?}");
        }
        let lines = plain(&view(), (60, 8));
        assert_eq!(lines[0], "cxi top  n1  by share  1970-01-01T00:00:00Z  every 2s");
        assert_eq!(lines[2], "cxi0  up, 200 Gbit/s        2.0M     2.0M         -");
        assert!(lines[5].contains("95.0%") && lines[5].contains("uid 7"), "{lines:?}");
        let large = plain(&view(), (80, 24));
        assert_eq!(large.last().unwrap(), KEYS);
        assert!(large.iter().any(|line| line.starts_with("cxi1  reserved")), "{large:?}");
        let totals = plain(&view(), (80, 18));
        assert!(totals.iter().any(|line| line.starts_with("all  reserved")), "{totals:?}");
    }

    #[test]
    fn keys_sort_filter_choose_and_end() {
        let now = usage(0, 0);
        let mut view = view();
        let jobs = |view: &View| -> String {
            let users = view.users(&now).into_iter();
            users.map(|user| user.job.as_ref().unwrap().as_str()).collect()
        };
        for (typed, shown, title) in [
            ("", "78", "by share"),
            ("sss", "87", "by TXQs"),
            ("n", "7", "cxi0"),
            ("n", "8", "cxi1"),
            ("n", "87", "by TXQs"),
            ("fqid 8", "", "filter: qid 8_"),
            ("\u{1b}", "87", "by TXQs"),
            ("/uid 8\n", "8", "filter: uid 8"),
            ("p", "8", "paused"),
        ] {
            for letter in typed.chars() {
                let code = match letter {
                    '\n' => KeyCode::Enter,
                    '\u{1b}' => KeyCode::Esc,
                    letter => KeyCode::Char(letter),
                };
                assert!(view.press(code.into(), &now.nics), "{typed}");
            }
            assert_eq!(jobs(&view), shown, "{typed}");
            let is = view.title(SystemTime::UNIX_EPOCH);
            let end = format!("  {title}  1970-01-01T00:00:00Z  every 2s");
            assert!(is.ends_with(&end), "{is}");
        }
        view.press(KeyCode::Esc.into(), &now.nics);
        assert!(!view.press(KeyCode::Char('q').into(), &now.nics));
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(!view.press(control_c, &now.nics));
    }
}
