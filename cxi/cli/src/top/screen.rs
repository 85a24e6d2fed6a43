//! The screen of `cxi top`, and its keys.

use std::fmt::Write as _;
use std::io::{self, Stdout};
use std::mem;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anstream::{AutoStream, ColorChoice};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::execute;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use cxi::{DeviceId, Resource, ResourceLevel};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, raise};
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Paragraph, Row, Table, Widget as _};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::{NicUsage, RATES, Usage, User, by_share};
use crate::devices::rate;
use crate::exit::Failure;
use crate::node::this_node;
use crate::output::{Palette, is_short, merge, nic_names, or_dash, percent};

const KEYS: &str = "? help  q quit  s sort  f filter  n NIC  p pause  Up Down scroll";
const HELP: [(&str, &str); 10] = [
    ("s", "sort by share, job, or one resource after the other"),
    ("f /", "show only users whose job, members or VNIs contain a text"),
    ("n", "show one NIC after the other, then all"),
    ("Up Down", "scroll by a line, as j and k do; PgUp, PgDn, Home and End by more"),
    ("p space", "pause, continue"),
    ("Ctrl-Z", "suspend"),
    ("q Esc", "quit, as Ctrl-C does"),
    ("", "share: the most that a user has in use or reserved of a resource"),
    ("", "flaps: restarts of the link within the last hour"),
    ("", "bars: in use, reserved by services and not in use, free to reserve"),
];
/// Longest time until a signal is noticed.
const SIGNALS: Duration = Duration::from_millis(100);
/// Lines that users keep of a small screen: a heading and two rows.
const USERS: u16 = 3;
/// The narrowest bar with its name and percentage.
const NARROW: u16 = 20;
/// A bar with its numbers.
const WIDE: u16 = 40;

/// Choices of the user.
pub(super) struct View {
    interval: Duration,
    host: String,
    /// 0: by share; 1: by job; from 2 on: by each resource.
    sort: usize,
    nic: Option<DeviceId>,
    filter: String,
    /// The first user that is shown.
    first: usize,
    is_typing: bool,
    is_paused: bool,
    shows_help: bool,
    /// Reason for which the last reading failed.
    failure: Option<String>,
    palette: Palette,
}

/// Consequence of a key.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Show,
    Suspend,
    End,
}

impl View {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            host: this_node().map_or_else(|_| "this node".to_owned(), |name| name.to_string()),
            sort: 0,
            nic: None,
            filter: String::new(),
            first: 0,
            is_typing: false,
            is_paused: false,
            shows_help: false,
            failure: None,
            palette: Palette::of_locale(),
        }
    }

    fn press(&mut self, key: KeyEvent, usage: &Usage) -> Next {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let last = self.users(usage).len().saturating_sub(1);
        match key.code {
            KeyCode::Char('c') if control => return Next::End,
            KeyCode::Char('z') if control => return Next::Suspend,
            _ if mem::take(&mut self.shows_help) => {}
            KeyCode::Char(letter) if self.is_typing => self.filter.push(letter),
            KeyCode::Backspace if self.is_typing => drop(self.filter.pop()),
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc if self.is_typing || !self.filter.is_empty() => {
                self.filter.clear();
                self.is_typing = false;
            }
            KeyCode::Char('q') | KeyCode::Esc => return Next::End,
            KeyCode::Char('s') => self.sort = (self.sort + 1) % (2 + Resource::ALL.len()),
            KeyCode::Char('f' | '/') => self.is_typing = true,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('?' | 'h') => self.shows_help = true,
            KeyCode::Up | KeyCode::Char('k') => self.first = self.first.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.first += 1,
            KeyCode::PageUp => self.first = self.first.saturating_sub(10),
            KeyCode::PageDown => self.first += 10,
            KeyCode::Home => self.first = 0,
            KeyCode::End => self.first = last,
            KeyCode::Char('n') => {
                let next = usage.nics.iter().map(|nic| nic.device);
                self.nic = match self.nic {
                    None => next.min(),
                    Some(now) => next.filter(|nic| *nic > now).min(),
                };
            }
            _ => {}
        }
        self.first = self.first.min(last);
        Next::Show
    }

    /// The users to show, in order.
    fn users<'a>(&self, usage: &'a Usage) -> Vec<&'a User> {
        let is_shown = |user: &&User| {
            let job = user.job.as_ref().map_or("", |job| job.as_str());
            let has = |text: &str| text.contains(&self.filter);
            self.nic.is_none_or(|nic| user.devices.contains(&nic))
                && (has(job) || has(&user.who) || has(&user.access.vnis.to_string()))
        };
        let mut users: Vec<&User> = usage.users.iter().filter(is_shown).collect();
        users.sort_by(|one, other| match self.resource() {
            Some(resource) => other.taken(resource).cmp(&one.taken(resource)),
            None if self.sort == 1 => one.job.cmp(&other.job),
            None => by_share(one, other),
        });
        users
    }

    fn resource(&self) -> Option<Resource> {
        Resource::ALL.get(self.sort.checked_sub(2)?).copied()
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

    /// Draws everything that has room, at least the first users. Rates need an earlier reading.
    fn draw(
        &self,
        usage: &Usage,
        before: Option<&Usage>,
        at: SystemTime,
        area: Rect,
        out: &mut Buffer,
    ) {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let is_shown = |nic: &&NicUsage| self.nic.is_none_or(|only| only == nic.device);
        let nics: Vec<&NicUsage> = usage.nics.iter().filter(is_shown).collect();
        let cell = if area.height >= 20 && area.width >= WIDE { WIDE } else { NARROW };
        let across = usize::from((area.width / cell).max(1)).min(Resource::ALL.len());
        let bars = u16::try_from(Resource::ALL.len().div_ceil(across)).unwrap_or(u16::MAX);
        let keys = u16::from(area.height >= 10);
        let each = u16::try_from(nics.len() + 1).unwrap_or(u16::MAX);
        let fits = area.height >= each.saturating_add(bars + keys + 1 + USERS);
        let rows = [1, if fits { each } else { 1 }, bars].map(Constraint::Length);
        let rows = rows.into_iter().chain([Constraint::Min(1), Constraint::Length(keys)]);
        let areas: [Rect; 5] = Layout::vertical(rows).areas(area);
        let [title, top, middle, rest, bottom] = areas;
        Line::styled(self.title(at), bold).render(title, out);
        if self.shows_help {
            let lines = HELP.map(|(key, what)| Line::from(format!("{key:<8} {what}")));
            let below = Rect { y: top.y, height: area.bottom() - top.y, ..area };
            return Paragraph::new(lines.to_vec()).render(below, out);
        }
        if fits {
            rates(&nics, before).render(top, out);
        } else {
            in_one_line(&nics, before).render(top, out);
        }
        let width = middle.width / u16::try_from(across).unwrap_or(1);
        for (place, resource) in Resource::ALL.into_iter().enumerate() {
            let (down, right) = (place / across, place % across);
            let x = middle.x + u16::try_from(right).unwrap_or(0) * width;
            let y = middle.y + u16::try_from(down).unwrap_or(0);
            if y < middle.bottom() {
                let one = Rect { x, y, width: width.saturating_sub(1), height: 1 };
                self.bar(resource, &nics, one.width, cell == WIDE).render(one, out);
            }
        }
        let users = self.users(usage);
        table(&users[self.first.min(users.len())..], rest.width).render(rest, out);
        let last = self.first + usize::from(rest.height.saturating_sub(1));
        let more = match users.len().checked_sub(last) {
            Some(more @ 1..) => format!("  {more} more below"),
            _ => String::new(),
        };
        Line::from(format!("{KEYS}{more}")).render(bottom, out);
    }

    /// Amounts of a resource that are in use, reserved and free, on all these NICs together.
    fn bar(&self, resource: Resource, nics: &[&NicUsage], width: u16, numbers: bool) -> Line<'_> {
        let sum = |amount: fn(&ResourceLevel) -> u16| -> u32 {
            nics.iter().map(|nic| u32::from(amount(&nic.resources[resource]))).sum()
        };
        let (total, in_use) = (sum(|level| level.total), sum(|level| level.in_use));
        let taken = total.saturating_sub(sum(|level| level.reservable)).max(in_use);
        let full = percent(taken, total);
        let after = if numbers {
            format!("{:>22}", format!("{in_use} used {} free", total - taken.min(total)))
        } else {
            format!(" {full:.0}%")
        };
        let room = usize::from(width).saturating_sub(6 + after.len().max(5));
        let [used, reserved, rest] = self.palette.parts(room, in_use, taken, total);
        let reserved_style =
            Style::new().fg(if is_short(full) { Color::Yellow } else { Color::Blue });
        Line::from(vec![
            Span::raw(format!("{resource:<5} ")),
            Span::styled(used, Style::new().fg(Color::Green)),
            Span::styled(reserved, reserved_style),
            Span::styled(rest, Style::new().add_modifier(Modifier::DIM)),
            Span::raw(after),
        ])
    }
}

fn earlier(before: Option<&Usage>, device: DeviceId) -> Option<&NicUsage> {
    before?.nics.iter().find(|old| old.device == device)
}

fn rates_of(nic: &NicUsage, before: Option<&Usage>) -> [Option<f64>; RATES.len()] {
    let old = earlier(before, nic.device);
    std::array::from_fn(|index| {
        let pair = old.and_then(|old| old.counters[index]).zip(nic.counters[index]);
        pair.map(|(before, now)| rate(before, now))
    })
}

fn rates(nics: &[&NicUsage], before: Option<&Usage>) -> Table<'static> {
    let mut header = vec![Text::from("NIC"), "Link".into(), right("Flaps")];
    header.extend(RATES.map(|(heading, _)| right(heading)));
    let rows = nics.iter().map(|nic| {
        let flaps = nic.link_restarts.to_string();
        let mut row =
            vec![Text::from(nic.device.to_string()), nic.link.clone().into(), right(&flaps)];
        row.extend(rates_of(nic, before).map(|rate| right(&or_dash(rate.map(magnitude)))));
        let style = if nic.link_up { Style::new() } else { Style::new().fg(Color::Red) };
        Row::new(row).style(style)
    });
    let widths = [6, 15, 5].into_iter().chain(RATES.map(|_| 7)).map(Constraint::Length);
    Table::new(rows, widths).header(heading(header))
}

/// The links and the rates of all NICs, where a line for each has no room.
fn in_one_line(nics: &[&NicUsage], before: Option<&Usage>) -> Line<'static> {
    let links = merge(nics.iter().map(|nic| {
        let flaps = match nic.link_restarts {
            0 => String::new(),
            restarts => format!(", {restarts} flaps"),
        };
        (nic.device, (nic.link_up, format!("{}{flaps}", nic.link)))
    }));
    let mut spans = Vec::new();
    for (devices, (up, link)) in links {
        let style = if up { Style::new() } else { Style::new().fg(Color::Red) };
        spans.push(Span::styled(format!("{} {link}  ", nic_names(&devices)), style));
    }
    let all: Vec<_> = nics.iter().map(|nic| rates_of(nic, before)).collect();
    for (index, (name, _)) in RATES.iter().enumerate() {
        let known: Vec<f64> = all.iter().filter_map(|rates| rates[index]).collect();
        let sum = (!known.is_empty()).then(|| magnitude(known.iter().sum()));
        spans.push(Span::raw(format!("{name} {}  ", or_dash(sum))));
    }
    Line::from(spans)
}

fn table(users: &[&User], width: u16) -> Table<'static> {
    let rows: Vec<[String; 6]> = users
        .iter()
        .map(|user| {
            let most = user.most.map_or_else(String::new, |most| most.to_string());
            [
                format!("{:.1}%", user.share),
                most,
                or_dash(user.job.as_ref()),
                user.who.clone(),
                user.access.vnis.to_string(),
                nic_names(&user.devices),
            ]
        })
        .collect();
    let headings = ["Share", "of", "Job", "Who", "VNIs", "NICs"];
    let mut widths: Vec<u16> = (0..headings.len())
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            let widest = cells.chain([headings[column].len()]).max().unwrap_or(0);
            u16::try_from(widest.min(20)).unwrap_or(20)
        })
        .collect();
    // Amounts of as many resources as fit: in use, and reserved.
    let room = width.saturating_sub(widths.iter().map(|width| width + 1).sum());
    let shown = &Resource::ALL[..usize::from(room / 12).min(Resource::ALL.len())];
    widths.extend(shown.iter().map(|_| 11));
    let mut header: Vec<Text<'static>> = headings.iter().map(|name| Text::from(*name)).collect();
    header.extend(shown.iter().map(|resource| right(&resource.to_string())));
    let rows = rows.into_iter().zip(users).map(|(cells, user)| {
        let mut row: Vec<Text<'static>> = cells.into_iter().map(Text::from).collect();
        row.extend(shown.iter().map(|resource| {
            right(&format!("{}/{}", user.in_use[*resource], user.reserved[*resource]))
        }));
        let short = is_short(user.share);
        Row::new(row).style(if short { Style::new().fg(Color::Yellow) } else { Style::new() })
    });
    Table::new(rows, widths.into_iter().map(Constraint::Length)).header(heading(header))
}

fn heading(cells: Vec<Text<'static>>) -> Row<'static> {
    Row::new(cells).style(Style::new().add_modifier(Modifier::BOLD))
}

fn right(text: &str) -> Text<'static> {
    Text::from(text.to_owned()).alignment(Alignment::Right)
}

/// A rate in at most five characters, such as `12.3M`.
fn magnitude(rate: f64) -> String {
    let units = [("G", 1e9), ("M", 1e6), ("k", 1e3)];
    match units.into_iter().find(|(_, unit)| rate >= *unit) {
        Some((letter, unit)) => format!("{:.1}{letter}", rate / unit),
        None => format!("{rate:.0}"),
    }
}

/// The terminal in the mode that this program needs. Its previous mode is restored at the end.
struct Terminal(ratatui::Terminal<CrosstermBackend<Stdout>>);

impl Terminal {
    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        // From here on, the previous mode is restored whatever fails.
        let terminal = Self(ratatui::Terminal::new(CrosstermBackend::new(io::stdout()))?);
        execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All))?;
        Ok(terminal)
    }

    fn draw(&mut self, paint: impl FnOnce(Rect, &mut Buffer)) -> io::Result<()> {
        let colored = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        self.0.draw(|frame| {
            let area = frame.area();
            paint(area, frame.buffer_mut());
            if !colored {
                frame.buffer_mut().set_style(area, Style::reset());
            }
        })?;
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // If the terminal is gone, nothing is left to restore.
        let _ = execute!(io::stdout(), LeaveAlternateScreen);
        let _ = self.0.show_cursor();
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
    let mut terminal = Terminal::enter().map_err(failed)?;
    while !ended.load(Ordering::Relaxed) {
        let paint = |area, out: &mut Buffer| view.draw(&usage, before.as_ref(), at, area, out);
        terminal.draw(paint).map_err(failed)?;
        loop {
            let wait = due.saturating_duration_since(Instant::now()).min(SIGNALS);
            let wait = if view.is_paused { SIGNALS } else { wait };
            if !wait_for_input(wait).map_err(failed)? {
                return Ok(());
            }
            if event::poll(Duration::ZERO).map_err(failed)? {
                if let Event::Key(key) = event::read().map_err(failed)?
                    && key.kind == KeyEventKind::Press
                {
                    match view.press(key, &usage) {
                        Next::Show => {}
                        Next::End => return Ok(()),
                        Next::Suspend => {
                            drop(terminal);
                            raise(Signal::SIGTSTP).map_err(|errno| failed(errno.into()))?;
                            terminal = Terminal::enter().map_err(failed)?;
                        }
                    }
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
    use cxi_site::JobId;

    use super::*;
    use crate::output::shapes::Access;

    fn user(job: &str, nic: u32, txqs: u32, share: f64) -> User {
        let mut in_use = ResourceMap::default();
        in_use[Resource::Txqs] = txqs;
        let vnis = VniAccess::List(VniList::try_from(vec![Vni::new(1024).unwrap()]).unwrap());
        User {
            job: Some(JobId::new(job).unwrap()),
            who: format!("uid {job}"),
            access: Access::of(None, vnis),
            netns: None,
            devices: vec![DeviceId::new(nic)],
            in_use,
            reserved: ResourceMap::default(),
            share,
            most: Some(Resource::Txqs),
        }
    }

    fn nic(number: u32, count: u64, second: u64) -> NicUsage {
        let reading = (count, Duration::from_secs(second));
        let mut resources = ResourceMap::<ResourceLevel>::default();
        resources[Resource::Txqs].total = 1000;
        resources[Resource::Txqs].in_use = 100;
        resources[Resource::Txqs].reserved = 500;
        resources[Resource::Txqs].reservable = 500;
        NicUsage {
            device: DeviceId::new(number),
            link_up: number == 0,
            link: if number == 0 { "up, 200 Gbit/s" } else { "down" }.to_owned(),
            link_restarts: 2,
            resources,
            counters: [Some(reading), Some(reading), None, None],
        }
    }

    fn usage(nics: u32, count: u64, second: u64) -> Usage {
        Usage {
            nics: (0..nics).map(|number| nic(number, count, second)).collect(),
            users: vec![user("7", 0, 3, 95.0), user("8", 1, 9, 1.0)],
        }
    }

    fn plain(view: &View, nics: u32, (width, height): (u16, u16)) -> Vec<String> {
        let area = Rect { x: 0, y: 0, width, height };
        let mut out = Buffer::empty(area);
        let (now, before) = (usage(nics, 4_000_000, 12), usage(nics, 0, 10));
        view.draw(&now, Some(&before), SystemTime::UNIX_EPOCH, area, &mut out);
        let line = |row: u16| -> String {
            let cells = (0..width).map(|column| out[(column, row)].symbol());
            cells.collect::<String>().trim_end().to_owned()
        };
        (0..height).map(line).collect()
    }

    fn view() -> View {
        let mut view = View::new(Duration::from_secs(2));
        view.host = "n1".to_owned();
        view.palette = Palette::ASCII;
        view
    }

    #[test]
    fn a_small_screen_shows_links_bars_and_the_first_users() {
        for size in [(160, 50), (1, 1), (20, 3), (60, 2)] {
            plain(&view(), 8, size);
        }
        let lines = plain(&view(), 8, (60, 8));
        assert_eq!(lines[0], "cxi top  n1  by share  1970-01-01T00:00:00Z  every 2s");
        assert!(
            lines[1].starts_with("cxi0 up, 200 Gbit/s, 2 flaps  cxi1-7 down, 2 fla"),
            "{lines:#?}"
        );
        // 800 of 8000 are in use, and 4000 reserved.
        assert!(lines[2].contains("TXQs  #===.... 50%"), "{lines:#?}");
        assert!(lines[6].contains("95.0%") && lines[6].contains("uid 7"), "{lines:#?}");
        assert!(lines[7].contains("uid 8"), "{lines:#?}");
    }

    #[test]
    fn a_large_screen_shows_each_nic_and_says_what_is_below() {
        let lines = plain(&view(), 2, (80, 24));
        let nic = "cxi0   up, 200 Gbit/s      2    2.0M    2.0M       -       -";
        assert_eq!(lines[2], nic, "{lines:#?}");
        assert!(lines[4].starts_with("PTEs "), "{lines:#?}");
        assert!(lines[4].ends_with("200 used 1000 free"), "{lines:#?}");
        assert_eq!(lines.last().unwrap(), KEYS);
        let mut view = view();
        view.shows_help = true;
        let lines = plain(&view, 2, (80, 24));
        assert!(lines.iter().any(|line| line.starts_with("Ctrl-Z")), "{lines:#?}");
    }

    #[test]
    fn keys_sort_filter_choose_scroll_and_end() {
        let now = usage(2, 0, 0);
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
                assert_eq!(view.press(code.into(), &now), Next::Show, "{typed}");
            }
            assert_eq!(jobs(&view), shown, "{typed}");
            let is = view.title(SystemTime::UNIX_EPOCH);
            let end = format!("  {title}  1970-01-01T00:00:00Z  every 2s");
            assert!(is.ends_with(&end), "{is}");
        }
        view.press(KeyCode::Esc.into(), &now);
        for (key, first) in [
            (KeyCode::Down, 1),
            (KeyCode::PageDown, 1),
            (KeyCode::Up, 0),
            (KeyCode::End, 1),
            (KeyCode::Home, 0),
        ] {
            view.press(key.into(), &now);
            assert_eq!(view.first, first, "{key}");
        }
        view.press(KeyCode::Char('?').into(), &now);
        assert!(view.shows_help);
        // Any key ends the help, and does nothing else.
        assert_eq!(view.press(KeyCode::Char('q').into(), &now), Next::Show);
        let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        assert_eq!(view.press(control('z'), &now), Next::Suspend);
        assert_eq!(view.press(control('c'), &now), Next::End);
        assert_eq!(view.press(KeyCode::Char('q').into(), &now), Next::End);
    }
}
