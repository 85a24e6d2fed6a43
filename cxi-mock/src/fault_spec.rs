//! Faults as text.

use std::str::FromStr;
use std::time::Duration;

use cxi_ioctl::{Errno, Opcode};

use crate::{Fault, Nic};

/// A fault as text: words separated by colons, such as `SVC_DESTROY:EBUSY:times=3`,
/// `cxi1:EIO:after=100` or `LNI_ALLOC:delay=20ms`.
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
    effect: Effect,
    after: u64,
    times: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Effect {
    Errno(Errno),
    Delay(Duration),
}

/// Why a text is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidFault {
    /// An unknown word.
    #[error(
        "unknown word '{0}': expected a device (cxi0), command (SVC_ALLOC), errno (EBUSY), after=N, times=N or \
         delay=20ms"
    )]
    Word(String),
    /// A count that is not a number.
    #[error("invalid count '{0}': expected 0 or more")]
    Number(String),
    /// A delay that is not a duration.
    #[error("invalid delay '{0}': expected a number followed by us, ms or s")]
    Delay(String),
    /// The fault has no effect.
    #[error("a fault without effect: expected an errno such as EBUSY, or delay=20ms")]
    NoEffect,
    /// A delay that is limited to some commands.
    #[error("a delay applies to every command: after= and times= need an errno")]
    CountedDelay,
}

impl FaultSpec {
    /// Whether the fault applies to this device.
    #[must_use]
    pub fn concerns(&self, device: u16) -> bool {
        self.device.is_none_or(|only| only == device)
    }

    /// The device that the fault applies to, if only to one.
    #[must_use]
    pub fn device(&self) -> Option<u16> {
        self.device
    }

    /// Adds the fault to a NIC.
    pub fn inject(&self, nic: &Nic) {
        match self.effect {
            Effect::Delay(delay) => nic.faults().delay(self.opcode, delay),
            Effect::Errno(errno) => {
                let mut fault = Fault::errno(errno).after(self.after);
                if let Some(opcode) = self.opcode {
                    fault = fault.on(opcode);
                }
                if let Some(times) = self.times {
                    fault = fault.times(times);
                }
                nic.faults().inject(fault);
            }
        }
    }
}

impl FromStr for FaultSpec {
    type Err = InvalidFault;

    fn from_str(text: &str) -> Result<Self, InvalidFault> {
        let (mut device, mut opcode, mut effect) = (None, None, None);
        let (mut after, mut times) = (None, None);
        for word in text.split(':') {
            if let Some((key, value)) = word.split_once('=') {
                match key {
                    "after" => after = Some(count(value)?),
                    "times" => times = Some(count(value)?),
                    "delay" => effect = Some(Effect::Delay(duration(value)?)),
                    _ => return Err(InvalidFault::Word(word.to_owned())),
                }
            } else if let Some(number) = word.strip_prefix("cxi").and_then(|n| n.parse().ok()) {
                device = Some(number);
            } else if let Ok(errno) = word.parse() {
                effect = Some(Effect::Errno(errno));
            } else if let Some(info) = Opcode::all().iter().find(|info| info.name == word) {
                opcode = Some(info.opcode);
            } else {
                return Err(InvalidFault::Word(word.to_owned()));
            }
        }
        let effect = effect.ok_or(InvalidFault::NoEffect)?;
        if matches!(effect, Effect::Delay(_)) && (after.is_some() || times.is_some()) {
            return Err(InvalidFault::CountedDelay);
        }
        Ok(Self {
            device,
            opcode,
            effect,
            after: after.unwrap_or_default(),
            times,
        })
    }
}

fn count(text: &str) -> Result<u64, InvalidFault> {
    text.parse()
        .map_err(|_| InvalidFault::Number(text.to_owned()))
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
        assert_eq!((fault.after, fault.times), (1, Some(3)));
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
        assert_eq!(
            parse("EIO:times=x"),
            Err(InvalidFault::Number("x".to_owned()))
        );
        assert_eq!(parse("delay=20"), Err(InvalidFault::Delay("20".to_owned())));
        assert_eq!(parse("delay=1s:times=2"), Err(InvalidFault::CountedDelay));
    }

    #[test]
    fn faults_strike() {
        let nic = Nic::new(crate::NicConfig::new()).unwrap();
        let struck = || {
            nic.faults()
                .strike(Opcode::SVC_GET, &[])
                .map(|strike| strike.errno)
        };
        parse("SVC_GET:ENOSPC:times=1").unwrap().inject(&nic);
        parse("SVC_GET:delay=2s").unwrap().inject(&nic);
        assert_eq!(struck(), Some(Errno::ENOSPC));
        assert_eq!(struck(), None);
        let delay = nic.faults().delay_of(Opcode::SVC_GET);
        assert_eq!(delay, Some(Duration::from_secs(2)));
    }
}
