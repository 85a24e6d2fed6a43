//! Error codes in text that a program printed.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

use cxi_ioctl::{Errno, Opcode};

use super::attempted::Attempted;
use super::code::Code;
use super::table::stated;
use super::texts::{ERRNOS, LIBFABRIC};

/// An error code in a text, and the call that the text names beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mention {
    /// The code.
    pub code: Code,
    /// The task that failed, if the text says.
    pub attempted: Option<Attempted>,
    /// The command of the driver, if the text names it.
    pub command: Option<Opcode>,
}

/// Finds the error codes in a text, each once, in the order in which they appear.
///
/// A text may be a name, a number, or what a program printed, on any number of lines: messages of
/// the system (glibc and musl), libcxi, libfabric, MPI, schedulers, the kernel, and this project. A
/// call that is named on the same line, or else anywhere in the text, chooses among meanings. Colors
/// of a terminal, also as a system log writes them, are not part of a text.
///
/// ```
/// use cxi::Errno;
/// use cxi::explain::{Attempted, Code, mentions};
///
/// let found = mentions("cxip_alloc_lni: Failed to allocate LNI, ret: -28");
/// assert_eq!(found.len(), 1);
/// assert_eq!(found[0].code, Code::Errno(Errno::ENOSPC));
/// assert_eq!(found[0].attempted, Some(Attempted::AllocateLni));
/// ```
#[must_use]
pub fn mentions(text: &str) -> Vec<Mention> {
    let text = plain(text);
    let anywhere = context(text.lines());
    let mut found: Vec<Mention> = Vec::new();
    for line in text.lines() {
        let (attempted, command) = match context([line]) {
            (None, None) => anywhere,
            here => here,
        };
        for (code, implied) in codes(line) {
            let mention = Mention { code, attempted: implied.or(attempted), command };
            if !found.contains(&mention) {
                found.push(mention);
            }
        }
    }
    // What the NIC reported says more than the errno that libfabric makes of it.
    let reported = found.iter().any(|mention| matches!(mention.code, Code::Nic(_)));
    found.retain(|mention| !reported || mention.code != Code::Errno(Errno::EIO));
    found
}

/// A text without the escape sequences of a terminal and other control characters, which may stand
/// within a message or between its sign and its number.
fn plain(text: &str) -> Cow<'_, str> {
    // As rsyslog and `cat -v` write the escape character.
    let escaped = ["#033[", "^[["].iter().any(|escape| text.contains(escape));
    let is_control = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\r' | '\t');
    if !escaped && !text.contains(is_control) {
        return text.into();
    }
    let text = text.replace("#033[", "\u{1b}[").replace("^[[", "\u{1b}[");
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        if letter == '\u{1b}' {
            skip_escape(&mut rest);
        } else if !is_control(letter) {
            plain.push(letter);
        }
    }
    plain.into()
}

/// Skips what follows an escape character: of a color or another control sequence, the parameters and
/// the letter that ends them; of a title or a link, the text.
fn skip_escape(rest: &mut Peekable<Chars<'_>>) {
    match rest.next_if(|letter| !letter.is_control()) {
        Some('[') => {
            while rest.next_if(|letter| (' '..='?').contains(letter)).is_some() {}
            rest.next_if(|letter| !letter.is_control());
        }
        Some(']') => while rest.next_if(|letter| !letter.is_control()).is_some() {},
        _ => {}
    }
}

/// Returns the task that lines name: that of the most specific call.
fn context<'a>(lines: impl IntoIterator<Item = &'a str>) -> (Option<Attempted>, Option<Opcode>) {
    let (mut attempted, mut command) = (Vec::new(), None);
    for line in lines {
        // The function that reports a failure calls what failed, which the text names.
        let described: Vec<_> = Attempted::described(line).collect();
        let is_described = !described.is_empty();
        attempted.extend(described);
        for word in words(line) {
            if let Some((named, opcode)) = Attempted::named(word) {
                if !is_described {
                    attempted.push(named);
                }
                command = command.or(opcode);
            }
        }
    }
    // A command's own meaning goes before that of the calls around it.
    let by_command = command.and_then(Attempted::by);
    (by_command.or_else(|| attempted.into_iter().min()), command)
}

/// Words of letters, digits and underscores.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

/// The codes in a line. Names and texts go before numbers: some programs print a wrong number
/// beside the text.
fn codes(line: &str) -> Vec<(Code, Option<Attempted>)> {
    let mut found: Vec<(Code, Option<Attempted>)> =
        words(line).filter_map(named).map(|code| (code, None)).collect();
    found.extend(texts(line).into_iter().map(|code| (code, None)));
    if found.is_empty() {
        found.extend(phrases(line));
    }
    if found.is_empty() {
        found.extend(numbers(line).into_iter().map(|code| (code, None)));
    }
    found
}

fn named(word: &str) -> Option<Code> {
    let is_symbol = word.starts_with(|letter: char| letter.is_ascii_alphabetic());
    is_symbol.then(|| Code::from_name(word)).flatten()
}

/// The texts of codes in a line, the longest at each place. Those of musl alone are matched by
/// letter, because some are everyday words.
fn texts(line: &str) -> Vec<Code> {
    let lower = line.to_ascii_lowercase();
    let mut found: Vec<(usize, usize, Code)> = Vec::new();
    let mut look = |text: &str, number: i32, in_any_case: bool| {
        let own = || u16::try_from(number).ok().and_then(Code::from_provider);
        let code = Code::from_number(number.into()).or_else(own);
        let Some(code) = code.filter(|_| !text.is_empty()) else { return };
        let place =
            if in_any_case { lower.find(&text.to_ascii_lowercase()) } else { line.find(text) };
        if let Some(start) = place.filter(|start| is_whole(&lower, *start, text.len())) {
            found.push((start, start + text.len(), code));
        }
    };
    for (number, glibc, musl) in ERRNOS {
        look(glibc, *number, true);
        look(musl, *number, false);
    }
    for (number, _, text) in LIBFABRIC {
        look(text, *number, false);
    }
    let is_part = |(start, end, _): &(usize, usize, Code)| {
        found.iter().any(|(from, to, _)| from <= start && end <= to && to - from > end - start)
    };
    let mut whole: Vec<_> = found.iter().copied().filter(|place| !is_part(place)).collect();
    whole.sort_by_key(|(start, ..)| *start);
    whole.into_iter().map(|(.., code)| code).collect()
}

/// Returns whether no word goes on at either end of a place in a line.
fn is_whole(line: &str, start: usize, len: usize) -> bool {
    let is_letter =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    let before = line.get(..start).and_then(|before| before.chars().next_back());
    let after = line.get(start + len..).and_then(|after| after.chars().next());
    !is_letter(before) && !is_letter(after)
}

/// Returns the codes of lines that name none.
fn phrases(line: &str) -> Vec<(Code, Option<Attempted>)> {
    let lower = line.to_ascii_lowercase();
    let stated = stated().filter(|cause| line.contains(cause.reason));
    let mut found: Vec<_> = stated.map(|cause| (cause.code, cause.attempted)).collect();
    let says = |pieces: &[&str]| {
        let mut rest = lower.as_str();
        pieces.iter().all(|piece| match rest.split_once(piece) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    };
    if found.is_empty() {
        let said = PHRASES.iter().find(|(pieces, ..)| says(pieces));
        found.extend(said.map(|(_, code, attempted)| (*code, *attempted)));
    }
    found.truncate(1);
    found
}

/// Numbers that stand for codes: negative ones, those after a word such as `ret` or `errno`, those
/// alone in parentheses, and a number that is the whole line.
fn numbers(line: &str) -> Vec<Code> {
    // Open MPI's own numbers, which it prints with their texts.
    if line.contains("instead of \"Success\"") {
        return Vec::new();
    }
    // As documents typeset a minus sign.
    let line = &line.replace('\u{2212}', "-");
    let mut found = Vec::new();
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let is_digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
        if !is_digit(at) {
            at += 1;
            continue;
        }
        let start = at;
        let is_hexadecimal = line.get(at..).is_some_and(|rest| rest.starts_with("0x"));
        if is_hexadecimal {
            at += "0x".len();
        }
        let first = at;
        let is_hex_digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_hexdigit);
        while is_digit(at) || (is_hexadecimal && is_hex_digit(at)) {
            at += 1;
        }
        let (Some(before), Some(digits), Some(after)) =
            (line.get(..start), line.get(first..at), line.get(at..))
        else {
            continue;
        };
        // A number with a point, a colon and digits, or letters around it is something else.
        let goes_on = after
            .starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
            || after
                .strip_prefix('.')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if goes_on {
            continue;
        }
        // The second is a field of the NIC's events.
        let of_nic = ["prov_errno", "return_code"].iter().any(|name| lead(before).ends_with(name));
        let code = if of_nic {
            digits.parse().ok().and_then(Code::from_provider)
        } else if is_code(before, after) {
            let radix = if is_hexadecimal { 16 } else { 10 };
            number(digits, radix).and_then(Code::from_number)
        } else {
            None
        };
        found.extend(code.filter(|code| !found.contains(code)));
    }
    found
}

/// The value of digits; a negative one that was printed as if it had no sign, in 32 or 64 bits.
/// Hexadecimal digits are taken for a code only then: `0x1c` may be anything.
fn number(digits: &str, radix: u32) -> Option<i64> {
    const BITS_32: u64 = 1 << 32;
    // The kernel returns no error beyond this one.
    const LARGEST: u64 = 4095;
    let number = u64::from_str_radix(digits, radix).ok()?;
    let negative = [BITS_32.checked_sub(number), Some(number.wrapping_neg())]
        .into_iter()
        .flatten()
        .find(|magnitude| (1..=LARGEST).contains(magnitude));
    match negative {
        Some(magnitude) => i64::try_from(magnitude).ok().map(|magnitude| -magnitude),
        None => i64::try_from(number).ok().filter(|_| radix == 10),
    }
}

/// Words after which a number is a code.
const LEADS: &[&str] = &[
    "ret",
    "rc",
    "err",
    "errno",
    "error",
    "errcode",
    "retval",
    "result",
    "returned",
    "returns",
    "return",
    "failed",
    "failure",
    "code",
    "status",
    "errornumber",
    "number",
];

/// Text before a number, without the punctuation between.
fn lead(before: &str) -> &str {
    before.trim_end_matches(|letter: char| " :=([<'\"#".contains(letter))
}

/// Returns whether a number between these parts of a line is a code.
fn is_code(before: &str, after: &str) -> bool {
    let (sign, before) = match before.strip_suffix('-') {
        Some(rest) => (true, rest),
        None => (false, before.strip_suffix('+').unwrap_or(before)),
    };
    let last = before.chars().next_back();
    if last
        .is_some_and(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '/'))
    {
        return false;
    }
    if sign {
        // Not the end of a range, a date or an option.
        return last.is_none_or(|letter| letter != '-' && letter != ')');
    }
    if before.trim().is_empty() && after.trim().is_empty() {
        return true;
    }
    let in_parentheses = before.ends_with('(') && after.starts_with(')');
    let outside = before.strip_suffix('(').unwrap_or_default();
    if in_parentheses && (outside.is_empty() || outside.ends_with([' ', ':'])) {
        return true;
    }
    let lead = lead(before);
    let mut leads = words(lead).collect::<Vec<_>>().into_iter().rev();
    let (word, earlier) = (leads.next().unwrap_or_default(), leads.next().unwrap_or_default());
    // "exit code 1" and "exit status 1" are the program's own.
    let is_exit = earlier.to_ascii_lowercase().starts_with("exit");
    lead.ends_with(word) && !is_exit && LEADS.contains(&word.to_ascii_lowercase().as_str())
}

const fn nic(code: cxi_hw::ReturnCode) -> Code {
    Code::Nic(code)
}

const fn errno(errno: Errno) -> Code {
    Code::Errno(errno)
}

/// Phrases in lower case, in their order in a line, of messages that name no code.
const PHRASES: &[(&[&str], Code, Option<Attempted>)] = &[
    // libfabric.
    (
        &["failed to find valid default rgroup and vni"],
        errno(Errno::ENOSYS),
        Some(Attempted::ChooseService),
    ),
    (
        &["failed to find", "in slingshot_devices"],
        errno(Errno::ENOSYS),
        Some(Attempted::ChooseService),
    ),
    (&["slingshot_", "not found"], errno(Errno::ENOSYS), Some(Attempted::ChooseService)),
    (
        &["failed to find service id in slingshot_svc_ids"],
        errno(Errno::EINVAL),
        Some(Attempted::ChooseService),
    ),
    (&["vni not found in slingshot_vnis"], errno(Errno::EINVAL), Some(Attempted::ChooseService)),
    (&["no valid vnis for"], errno(Errno::EINVAL), Some(Attempted::ChooseService)),
    (&["invalid vni", "svc_id"], errno(Errno::EINVAL), Some(Attempted::ChooseService)),
    (&["retry handler not running"], errno(Errno::ENODATA), Some(Attempted::Discover)),
    (&["ama not recognized"], errno(Errno::ENODATA), Some(Attempted::Discover)),
    (&["cxi netdev not found"], errno(Errno::ENODATA), Some(Attempted::Discover)),
    (&["fi_getinfo", "failure"], errno(Errno::ENODATA), Some(Attempted::Discover)),
    (&["provider cxi output empty list"], errno(Errno::ENODATA), Some(Attempted::Discover)),
    (&["no ofi provider"], errno(Errno::ENODATA), Some(Attempted::Discover)),
    (&["no provider found"], errno(Errno::ENODATA), Some(Attempted::Discover)),
    (&["unable to get if"], errno(Errno::ENODEV), None),
    (&["no room to allocate cp"], errno(Errno::ENOSPC), Some(Attempted::UseVni)),
    (&["trig ops exhausted"], errno(Errno::EAGAIN), Some(Attempted::Transfer)),
    (&["event queue overflow"], Code::Libfabric(268), None),
    (&["dropped event", "rsvd slots"], Code::Libfabric(268), None),
    (&["completion queue exhaustion"], Code::Libfabric(268), None),
    (&["le resources not recovered"], nic(cxi_hw::ReturnCode::NO_SPACE), None),
    (&["le resources", "exhausted"], nic(cxi_hw::ReturnCode::NO_SPACE), None),
    (&["le exhausted"], nic(cxi_hw::ReturnCode::NO_SPACE), None),
    (&["append failed"], nic(cxi_hw::ReturnCode::NO_SPACE), None),
    (&["onload failed"], nic(cxi_hw::ReturnCode::NO_SPACE), None),
    (&["flow control", "append disabled"], nic(cxi_hw::ReturnCode::NO_SPACE), None),
    (&["eq_dropped"], Code::Libfabric(268), None),
    // Why a portal table entry was disabled.
    (&["fc_eq_full"], Code::Libfabric(268), None),
    (&["unexpected_fail"], nic(cxi_hw::ReturnCode::NO_SPACE), None),
    (&["append_fail"], nic(cxi_hw::ReturnCode::NO_SPACE), None),
    (&["fc_no_match"], nic(cxi_hw::ReturnCode::NO_SPACE), None),
    (&["fc_request_full"], nic(cxi_hw::ReturnCode::NO_SPACE), None),
    // MPI.
    (&["returned \"unreachable\""], errno(Errno::ENODATA), Some(Attempted::Discover)),
    (&["no components", "pml"], errno(Errno::ENODATA), Some(Attempted::Discover)),
    (&["pml cm cannot be selected"], errno(Errno::ENODATA), Some(Attempted::Discover)),
    (&["err_truncate"], Code::Libfabric(265), Some(Attempted::Transfer)),
    (&["message truncated"], Code::Libfabric(265), Some(Attempted::Transfer)),
    // Schedulers.
    (&["only", "available"], errno(Errno::ENOSPC), Some(Attempted::CreateService)),
    (&["cxi not available"], errno(Errno::ENODEV), None),
    (&["no cxi devices available"], errno(Errno::ENODEV), Some(Attempted::OpenDevice)),
    (&["list entry pools available"], errno(Errno::ENOSPC), Some(Attempted::CreateService)),
    (&["no counter pools available"], errno(Errno::ENOSPC), Some(Attempted::CreateService)),
    (&["service allocation failed"], errno(Errno::ENOSPC), Some(Attempted::CreateService)),
    (&["vnis in use"], errno(Errno::ENOSPC), None),
    (&["vnis are in use"], errno(Errno::ENOSPC), None),
    (&["vni pool", "exhausted"], errno(Errno::ENOSPC), None),
    (&["no free vni"], errno(Errno::ENOSPC), None),
    (&["error configuring interconnect"], errno(Errno::ENOSPC), Some(Attempted::CreateService)),
    (&["failed to create", "service"], errno(Errno::ENOSPC), Some(Attempted::CreateService)),
    (&["service create failed"], errno(Errno::ENOSPC), Some(Attempted::CreateService)),
    (&["get", "cxi device"], errno(Errno::ENODEV), Some(Attempted::OpenDevice)),
    // The retry handler.
    (&["cxi_rh", ": failed"], errno(Errno::ENODATA), Some(Attempted::Discover)),
    (&["cxi_rh", "status="], errno(Errno::ENODATA), Some(Attempted::Discover)),
    (&["cxi_rh", "retry limit"], nic(cxi_hw::ReturnCode::MST_CANCELLED), Some(Attempted::Transfer)),
    (&["failed to start cxi retry handler"], errno(Errno::ENODATA), Some(Attempted::Discover)),
    (&["rh: will close sct"], nic(cxi_hw::ReturnCode::CONN_CLOSED), Some(Attempted::Transfer)),
    (&["rh: force clos"], nic(cxi_hw::ReturnCode::CONN_CLOSED), Some(Attempted::Transfer)),
    (&["rh: now cancelling"], nic(cxi_hw::ReturnCode::MST_CANCELLED), Some(Attempted::Transfer)),
    (&["failed to reserve", "vnis"], errno(Errno::ENOSPC), None),
    (&["no vni", "available"], errno(Errno::ENOSPC), None),
    // The kernel.
    (&["cxi", "failed to allocate memory"], errno(Errno::ENOMEM), None),
    (&["svc", "insufficient resources"], errno(Errno::ENOSPC), Some(Attempted::CreateService)),
    (&["sct_timeout"], nic(cxi_hw::ReturnCode::UNDELIVERABLE), Some(Attempted::Transfer)),
    (&["spt_timeout"], nic(cxi_hw::ReturnCode::UNDELIVERABLE), Some(Attempted::Transfer)),
    (&["cxi", "link down"], nic(cxi_hw::ReturnCode::UNDELIVERABLE), Some(Attempted::Transfer)),
    (&["cxi", "link is down"], nic(cxi_hw::ReturnCode::UNDELIVERABLE), Some(Attempted::Transfer)),
    (&["link_down"], nic(cxi_hw::ReturnCode::UNDELIVERABLE), Some(Attempted::Transfer)),
    (&["pcs_tx_dp_err"], nic(cxi_hw::ReturnCode::UNDELIVERABLE), Some(Attempted::Transfer)),
    (&["port_dfa_mismatch"], nic(cxi_hw::ReturnCode::INVALID_DFA_FORMAT), None),
    (&["pfc_fifo_oflw"], nic(cxi_hw::ReturnCode::PKTBUF_ERROR), None),
    (&["pbuf_rd_err"], nic(cxi_hw::ReturnCode::PKTBUF_ERROR), None),
    (&["cxi", "_ucor"], nic(cxi_hw::ReturnCode::UNCOR), None),
    // This project.
    (
        &["not enough ", "requested", "available"],
        errno(Errno::ENOSPC),
        Some(Attempted::CreateService),
    ),
    (&["no tle pool is left"], errno(Errno::ENOSPC), Some(Attempted::CreateService)),
    (&["no le pool is left"], errno(Errno::ENOSPC), Some(Attempted::CreateService)),
    (&["table of vnis is full"], errno(Errno::ENOSPC), Some(Attempted::CreateService)),
    (
        &["the driver does not say what is used up"],
        errno(Errno::ENOSPC),
        Some(Attempted::CreateService),
    ),
    (&["may have no ", "its limit is 0"], errno(Errno::ENOSPC), Some(Attempted::Allocate)),
    (&["has no ", " left: ", "are in use"], errno(Errno::ENOSPC), Some(Attempted::Allocate)),
    (&["the nic has no ", " left"], errno(Errno::ENOSPC), Some(Attempted::Allocate)),
    (&["are left for service"], errno(Errno::ENOSPC), Some(Attempted::Allocate)),
    (
        &["address contexts of the lni's rgid are in use"],
        errno(Errno::ENOSPC),
        Some(Attempted::MapMemory),
    ),
    (&["vni", " taken"], errno(Errno::EEXIST), Some(Attempted::CreateService)),
    (&["there is no service"], errno(Errno::EINVAL), Some(Attempted::ChangeService)),
    (&["no service ", " on cxi"], errno(Errno::EINVAL), Some(Attempted::ChangeService)),
    (&["service ", " is disabled"], errno(Errno::EKEYREVOKED), Some(Attempted::AllocateLni)),
    (&["is still in use"], errno(Errno::EBUSY), Some(Attempted::ChangeService)),
    (&["the device has been removed"], errno(Errno::EIO), None),
    (&["no cxi device on this machine"], errno(Errno::ENODEV), Some(Attempted::OpenDevice)),
    (
        &["read and write access to the device node is needed"],
        errno(Errno::EACCES),
        Some(Attempted::OpenDevice),
    ),
    (&["no such nic"], errno(Errno::ENODEV), Some(Attempted::OpenDevice)),
    (&["not permitted"], errno(Errno::EPERM), None),
    (
        &["services are changed on the physical one"],
        errno(Errno::EPERM),
        Some(Attempted::CreateService),
    ),
    (&["is not known to this driver"], errno(Errno::EOPNOTSUPP), Some(Attempted::ChangeService)),
    (&["cannot promise"], errno(Errno::EOPNOTSUPP), Some(Attempted::ChangeService)),
    (&["not sent, as this driver"], errno(Errno::EOPNOTSUPP), Some(Attempted::ChangeService)),
    (&["response", "bytes"], errno(Errno::EPROTO), None),
    (&["invalid ", ": expected "], errno(Errno::EINVAL), None),
    (&["invalid vni"], errno(Errno::EINVAL), Some(Attempted::UseVni)),
];
