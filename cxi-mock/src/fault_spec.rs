//! Faults as text.

use std::str::{FromStr, Split};
use std::time::{Duration, SystemTime};

use cxi_ioctl::abi::service::{RSRC_NAMES, rsrc_by_name};
use cxi_ioctl::{Errno, Opcode};

use crate::{Fault, FileFault, Nic};

/// The effects that a fault can have, for messages.
const EFFECTS: &str = "an errno such as EBUSY, short=TXQ:96, delay=20ms, flap, unplug or plug";

/// A fault as text: words separated by colons.
///
/// | text | effect |
/// |---|---|
/// | `SVC_DESTROY:EBUSY:times=3`, `cxi1:EIO:after=100` | commands fail with an errno: [`Fault::errno`] |
/// | `SVC_ALLOC:short=TXQ:96` | a service that reserves more is refused: [`Fault::shortage`] |
/// | `LNI_ALLOC:delay=20ms` | commands are slow: [`Faults::delay`](crate::Faults::delay) |
/// | `read=telemetry/hni_pcs_good_cw:EIO:times=1` | reading a file of the NIC, or any below a directory, fails: [`FileFault::errno`] |
/// | `read=link_restarts:delay=2s`, `read=fru/part_number:gone` | it is slow, or not there: [`FileFault::slow`], [`FileFault::gone`] |
/// | `cxi1:flap`, `cxi1:flap=90s` | the link restarts now, or did so 90 seconds ago: [`Hardware::restart_link`](crate::Hardware::restart_link) |
/// | `cxi1:unplug`, `cxi1:plug` | the NIC is removed or comes back: [`Faults::unplug`](crate::Faults::unplug), [`Faults::plug`](crate::Faults::plug) |
///
/// ```
/// use cxi_mock::{FaultSpec, Nic, NicConfig};
///
/// let nic = Nic::new(NicConfig::new())?;
/// let fault: FaultSpec = "cxi0:SVC_DESTROY:EBUSY:times=3".parse()?;
/// if fault.concerns(0) {
///     fault.inject(&nic);
/// }
/// assert!("SVC_DESTROY".parse::<FaultSpec>().is_err());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultSpec {
    device: Option<u16>,
    opcode: Option<Opcode>,
    /// A file of the NIC.
    file: Option<String>,
    effect: Effect,
    after: u64,
    times: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Effect {
    Errno(Errno),
    /// An index of `RSRC_*`, and how many are available.
    Short(usize, u16),
    Delay(Duration),
    /// Age of the restart.
    Flap(Duration),
    Gone,
    Unplug,
    Plug,
}

/// Reason for which a text is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidFault {
    /// An unknown word.
    #[error(
        "unknown word '{0}': expected a device such as cxi0, a command such as SVC_ALLOC, read=FILE, after=N, \
         times=N, {EFFECTS}"
    )]
    Word(String),
    /// A count that is not a number.
    #[error("invalid count '{0}': expected 0 or more")]
    Number(String),
    /// A shortage of an unknown resource, or without a number.
    #[error(
        "invalid shortage '{0}': expected one of {names}, and how many are available, such as short=TXQ:96",
        names = RSRC_NAMES.join(", ")
    )]
    Shortage(String),
    /// A shortage for a command that reserves nothing.
    #[error("only SVC_ALLOC can run short of a resource")]
    ShortageOfOther,
    /// A delay that is not a duration.
    #[error("invalid delay '{0}': expected a number followed by us, ms or s")]
    Delay(String),
    /// The fault has no effect.
    #[error("a fault without an effect: expected {EFFECTS}")]
    NoEffect,
    /// Two effects in one fault.
    #[error("two effects in one fault: expected one; inject each as a separate fault")]
    TwoEffects,
    /// A count for an effect that cannot be limited to some commands.
    #[error("after= and times= need an errno or a shortage: a delay applies to every command")]
    Counted,
    /// A command with an effect on the whole NIC.
    #[error("flap, unplug and plug concern the whole NIC: expected no command")]
    WholeNic,
    /// A file with an effect that no reading has, or with a command.
    #[error("read= and gone are about a file: expected read=FILE with an errno, delay= or gone")]
    File,
}

impl FaultSpec {
    /// Returns whether the fault applies to this device.
    #[must_use]
    pub fn concerns(&self, device: u16) -> bool {
        self.device.is_none_or(|only| only == device)
    }

    /// The device that the fault applies to, if only to one.
    #[must_use]
    pub fn device(&self) -> Option<u16> {
        self.device
    }

    /// Returns whether the fault only removes the NIC (`false`) or puts it back (`true`): a front
    /// end that shows NICs as files does that itself.
    #[must_use]
    pub fn plugs(&self) -> Option<bool> {
        match self.effect {
            Effect::Unplug => Some(false),
            Effect::Plug => Some(true),
            _ => None,
        }
    }

    /// The path of the file or directory that the fault is about, if it is about one.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref().map(|path| path.trim_matches('/'))
    }

    /// Returns whether the fault hides its file. If not, it is about reading the file.
    #[must_use]
    pub fn hides(&self) -> bool {
        self.effect == Effect::Gone
    }

    /// Adds the fault to a NIC.
    pub fn inject(&self, nic: &Nic) {
        if let Some(path) = &self.file {
            let fault = match self.effect {
                Effect::Errno(errno) => FileFault::errno(path, errno),
                Effect::Delay(delay) => FileFault::slow(path, delay),
                _ => FileFault::gone(path),
            };
            return nic.faults().inject_file(fault.after(self.after).times(self.times));
        }
        let fault = match self.effect {
            Effect::Flap(age) => {
                let at = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
                return nic.hardware().restart_link(at);
            }
            // Only files are gone.
            Effect::Gone => return,
            Effect::Delay(delay) => return nic.faults().delay(self.opcode, delay),
            Effect::Unplug => return nic.faults().unplug(),
            Effect::Plug => return nic.faults().plug(),
            Effect::Short(resource, available) => Fault::shortage(resource, available),
            Effect::Errno(errno) => match self.opcode {
                Some(opcode) => Fault::errno(errno).on(opcode),
                None => Fault::errno(errno),
            },
        };
        nic.faults().inject(fault.after(self.after).times(self.times));
    }
}

impl FromStr for FaultSpec {
    type Err = InvalidFault;

    fn from_str(text: &str) -> Result<Self, InvalidFault> {
        let (mut device, mut opcode, mut file, mut effect) = (None, None, None, None);
        let (mut after, mut times) = (None, None);
        let mut words = text.split(':');
        while let Some(word) = words.next() {
            let found = match word.split_once('=') {
                Some(("after", value)) => {
                    after = Some(count(value)?);
                    continue;
                }
                Some(("times", value)) => {
                    times = Some(count(value)?);
                    continue;
                }
                Some(("read", path)) => {
                    file = Some(path.to_owned());
                    continue;
                }
                Some(("flap", age)) => Effect::Flap(duration(age)?),
                Some(("short", resource)) => shortage(resource, &mut words)?,
                Some(("delay", value)) => Effect::Delay(duration(value)?),
                Some(_) => return Err(InvalidFault::Word(word.to_owned())),
                None if word == "flap" => Effect::Flap(Duration::ZERO),
                None if word == "gone" => Effect::Gone,
                None if word == "unplug" => Effect::Unplug,
                None if word == "plug" => Effect::Plug,
                None => {
                    if let Some(number) = word.strip_prefix("cxi").and_then(|n| n.parse().ok()) {
                        device = Some(number);
                        continue;
                    }
                    if let Some(info) = Opcode::all().iter().find(|info| info.name == word) {
                        opcode = Some(info.opcode);
                        continue;
                    }
                    let errno = word.parse();
                    Effect::Errno(errno.map_err(|_| InvalidFault::Word(word.to_owned()))?)
                }
            };
            if effect.replace(found).is_some() {
                return Err(InvalidFault::TwoEffects);
            }
        }
        let effect = effect.ok_or(InvalidFault::NoEffect)?;
        let counted = after.is_some() || times.is_some();
        let of_file = matches!(effect, Effect::Errno(_) | Effect::Delay(_) | Effect::Gone);
        let is_meant =
            if file.is_some() { of_file && opcode.is_none() } else { effect != Effect::Gone };
        if !is_meant {
            return Err(InvalidFault::File);
        }
        match effect {
            Effect::Short(..) if opcode.is_some_and(|opcode| opcode != Opcode::SVC_ALLOC) => {
                return Err(InvalidFault::ShortageOfOther);
            }
            Effect::Flap(_) | Effect::Unplug | Effect::Plug if opcode.is_some() => {
                return Err(InvalidFault::WholeNic);
            }
            Effect::Delay(_) | Effect::Flap(_) | Effect::Gone | Effect::Unplug | Effect::Plug
                if counted =>
            {
                return Err(InvalidFault::Counted);
            }
            _ => {}
        }
        Ok(Self {
            device,
            opcode,
            file,
            effect,
            after: after.unwrap_or_default(),
            times: times.unwrap_or(u64::MAX),
        })
    }
}

fn count(text: &str) -> Result<u64, InvalidFault> {
    text.parse().map_err(|_| InvalidFault::Number(text.to_owned()))
}

/// A resource, and the number in the word after it.
fn shortage(resource: &str, words: &mut Split<'_, char>) -> Result<Effect, InvalidFault> {
    let available = words.next().unwrap_or_default();
    match (rsrc_by_name(resource), available.parse()) {
        (Some(index), Ok(available)) => Ok(Effect::Short(index, available)),
        _ => Err(InvalidFault::Shortage(format!("{resource}:{available}"))),
    }
}

fn duration(text: &str) -> Result<Duration, InvalidFault> {
    let bad = || InvalidFault::Delay(text.to_owned());
    let digits = text.trim_end_matches(char::is_alphabetic);
    let unit = text.get(digits.len()..).unwrap_or_default();
    let number: u64 = digits.parse().map_err(|_| bad())?;
    match unit {
        "us" => Ok(Duration::from_micros(number)),
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use cxi_ioctl::abi::service::{RSRC_TLE, SvcAllocCmd, SvcFlags};
    use zerocopy::IntoBytes as _;

    use super::*;

    fn parse(text: &str) -> Result<FaultSpec, InvalidFault> {
        text.parse()
    }

    #[test]
    fn words_come_in_any_order() {
        let fault = parse("SVC_DESTROY:EBUSY:times=3:after=1").unwrap();
        assert_eq!(fault, parse("after=1:EBUSY:times=3:SVC_DESTROY").unwrap());
        assert_eq!(fault.opcode, Some(Opcode::SVC_DESTROY));
        assert_eq!(fault.effect, Effect::Errno(Errno::EBUSY));
        assert_eq!((fault.after, fault.times), (1, 3));
        assert!(fault.concerns(0) && fault.concerns(7));
    }

    #[test]
    fn a_device_and_a_delay() {
        let fault = parse("cxi1:delay=20ms").unwrap();
        assert_eq!(fault.effect, Effect::Delay(Duration::from_millis(20)));
        assert!(fault.concerns(1) && !fault.concerns(0));
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(parse("SVC_ALLOC"), Err(InvalidFault::NoEffect));
        assert_eq!(parse(""), Err(InvalidFault::Word(String::new())));
        assert_eq!(parse("EWHAT"), Err(InvalidFault::Word("EWHAT".to_owned())));
        assert_eq!(parse("EIO:times=x"), Err(InvalidFault::Number("x".to_owned())));
        assert_eq!(parse("delay=20"), Err(InvalidFault::Delay("20".to_owned())));
        assert_eq!(parse("flap=soon"), Err(InvalidFault::Delay("soon".to_owned())));
        for text in ["gone", "read=fru", "read=fru:flap", "read=fru:EIO:SVC_GET", "read=fru:unplug"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        for (text, error) in [
            ("delay=1s:times=2", InvalidFault::Counted),
            ("unplug:after=1", InvalidFault::Counted),
            ("SVC_ALLOC:plug", InvalidFault::WholeNic),
            ("SVC_GET:short=TXQ:1", InvalidFault::ShortageOfOther),
            ("EIO:short=TXQ:1", InvalidFault::TwoEffects),
            ("EIO:EBUSY", InvalidFault::TwoEffects),
            ("short=TXQ", InvalidFault::Shortage("TXQ:".to_owned())),
            ("short=QUEUE:1", InvalidFault::Shortage("QUEUE:1".to_owned())),
            ("short=TXQ:-1", InvalidFault::Shortage("TXQ:-1".to_owned())),
        ] {
            assert_eq!(parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn faults_strike() {
        let nic = Nic::new(crate::NicConfig::new()).unwrap();
        let struck = || nic.faults().strike(Opcode::SVC_GET, &[]).map(|strike| strike.errno);
        parse("SVC_GET:ENOSPC:times=1").unwrap().inject(&nic);
        parse("SVC_GET:delay=2s").unwrap().inject(&nic);
        assert_eq!(struck(), Some(Errno::ENOSPC));
        assert_eq!(struck(), None);
        let delay = nic.faults().delay_of(Opcode::SVC_GET);
        assert_eq!(delay, Some(Duration::from_secs(2)));
    }

    #[test]
    fn a_shortage_leaves_what_fits() {
        let shortages = ["SVC_ALLOC:short=TXQ:96", "short=txqs:96", "short=TXQs:96"];
        let shortages = shortages.map(|text| parse(text).unwrap().effect);
        assert_eq!(shortages, [const { Effect::Short(1, 96) }; 3]);
        let nic = Nic::new(crate::NicConfig::new()).unwrap();
        parse("cxi0:short=TLE:8:times=1").unwrap().inject(&nic);
        let mut command = SvcAllocCmd::new();
        command.svc_desc.flags = SvcFlags::RESOURCE_LIMITS.bits();
        let mut struck = |reserved| {
            command.svc_desc.limits.types[RSRC_TLE].res = reserved;
            let strike = nic.faults().strike(Opcode::SVC_ALLOC, command.as_bytes());
            strike.map(|it| (it.errno, it.response.map(|it| it.fail_info.rsrc_avail[RSRC_TLE])))
        };
        assert_eq!(struck(8), None);
        assert_eq!(struck(9), Some((Errno::ENOSPC, Some(8))));
        assert_eq!(struck(9), None);
    }

    #[test]
    fn files_fail_are_slow_and_vanish() {
        let nic = Nic::new(crate::NicConfig::new()).unwrap();
        let (file, other) = ("telemetry/hni_pcs_good_cw", "fru/part_number");
        for text in ["cxi0:read=telemetry:EIO:times=1", "read=fru:delay=2s", "read=uc:gone"] {
            parse(text).unwrap().inject(&nic);
        }
        assert_eq!(nic.faults().reading(file).errno, Some(Errno::EIO));
        assert_eq!(nic.faults().reading(file), crate::Reading::default());
        assert_eq!(nic.faults().reading(other).delay, Duration::from_secs(2));
        assert!(nic.faults().is_gone("uc/version") && !nic.faults().is_gone(file));
    }

    #[test]
    fn a_link_flaps() {
        let nic = Nic::new(crate::NicConfig::new()).unwrap();
        for text in ["cxi0:flap=3600s", "flap"] {
            parse(text).unwrap().inject(&nic);
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let restarts = nic.hardware().link_restarts().map(|at| at.as_secs());
        assert!((now - 3605..=now - 3600).contains(&restarts[0]), "{restarts:?}, now {now}");
        assert!((now - 5..=now).contains(&restarts[1]), "{restarts:?}, now {now}");
        assert_eq!((restarts[2], nic.hardware().carrier_changes()), (0, (3, 2)));
        assert!(nic.hardware().is_link_up());
    }

    #[test]
    fn a_nic_is_unplugged_and_plugged() {
        let nic = Nic::new(crate::NicConfig::new()).unwrap();
        for (text, unplugged) in [("cxi0:unplug", true), ("plug", false)] {
            let fault = parse(text).unwrap();
            assert_eq!(fault.plugs(), Some(!unplugged));
            fault.inject(&nic);
            assert_eq!(nic.faults().is_unplugged(), unplugged);
        }
    }
}
