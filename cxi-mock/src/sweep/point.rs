//! Failures of a program's commands, as text.

use std::fmt;
use std::str::FromStr;

use cxi_ioctl::{Errno, Opcode};

/// A way in which a command fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// It is not carried out, and returns this errno.
    Errno(Errno),
    /// It is carried out, but its answer does not reach the caller: EFAULT.
    Lost,
    /// The caller is killed, and the command is not carried out.
    KillBefore,
    /// The command is carried out, and then the caller is killed.
    KillAfter,
    /// The NIC is removed before it is carried out, for good.
    Unplug,
    /// It is carried out late.
    Delay,
    /// Another process does something before it is carried out.
    Between,
}

/// Words for what is not an errno.
const WORDS: [(FailureKind, &str); 6] = [
    (FailureKind::Lost, "lost"),
    (FailureKind::KillBefore, "kill-before"),
    (FailureKind::KillAfter, "kill-after"),
    (FailureKind::Unplug, "unplug"),
    (FailureKind::Delay, "delay"),
    (FailureKind::Between, "between"),
];

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, WORDS.iter().find(|(kind, _)| kind == self)) {
            (_, Some((_, word))) => f.pad(word),
            (Self::Errno(errno), None) => errno.fmt(f),
            (_, None) => f.pad("?"),
        }
    }
}

/// A command of a program that fails: its number among the commands to its NIC, counted from 1, and
/// its opcode, so that another command at that place is noticed.
///
/// As text, it is `17:SVC_ALLOC:ENOSPC`, with the device in front unless it is `cxi0`, and the node
/// in front of that if it is not the first one: `n2:cxi1:17:SVC_ALLOC:ENOSPC`.
///
/// ```
/// use cxi_mock::{FailureKind, FailurePoint};
///
/// let point: FailurePoint = "cxi1:17:SVC_ALLOC:kill-after".parse()?;
/// assert_eq!((point.nic, point.number, point.kind), (1, 17, FailureKind::KillAfter));
/// assert_eq!(point.to_string(), "cxi1:17:SVC_ALLOC:kill-after");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "String", try_from = "String")
)]
pub struct FailurePoint {
    /// Number of the node, from 0; in text from 1.
    pub node: u16,
    /// Number of the NIC.
    pub nic: u16,
    /// Number of the command on its NIC, from 1.
    pub number: u64,
    /// Opcode of the command.
    pub opcode: Opcode,
    /// The way in which it fails.
    pub kind: FailureKind,
}

/// Reason for which a text is not a failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid failure '{text}': {what}; expected the number of a command, the command and a failure, \
     such as 17:SVC_ALLOC:ENOSPC or cxi1:3:SVC_DESTROY:kill-after"
)]
pub struct InvalidFailure {
    text: String,
    what: String,
}

impl fmt::Display for FailurePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.node > 0 {
            write!(f, "n{}:", self.node + 1)?;
        }
        if self.node > 0 || self.nic > 0 {
            write!(f, "cxi{}:", self.nic)?;
        }
        match self.opcode.name() {
            Some(name) => write!(f, "{}:{name}:{}", self.number, self.kind),
            None => write!(f, "{}:{}:{}", self.number, self.opcode.number(), self.kind),
        }
    }
}

impl FromStr for FailurePoint {
    type Err = InvalidFailure;

    fn from_str(text: &str) -> Result<Self, InvalidFailure> {
        let invalid = |what: String| InvalidFailure { text: text.to_owned(), what };
        let mut words = text.split(':').peekable();
        let mut place =
            |prefix: &str, first: u16| match words.next_if(|word| word.starts_with(prefix)) {
                None => Ok(0),
                Some(word) => word[prefix.len()..]
                    .parse::<u16>()
                    .ok()
                    .and_then(|number| number.checked_sub(first))
                    .ok_or_else(|| invalid(format!("'{word}' has no number"))),
            };
        let (node, nic) = (place("n", 1)?, place("cxi", 0)?);
        let parts = (words.next(), words.next(), words.next(), words.next());
        let (Some(number), Some(opcode), Some(kind), None) = parts else {
            return Err(invalid("it has not three parts".to_owned()));
        };
        let number = number
            .parse()
            .ok()
            .filter(|number| *number > 0)
            .ok_or_else(|| invalid(format!("'{number}' is not a number from 1")))?;
        let named = Opcode::all().iter().find(|info| info.name == opcode);
        // Programs send unknown ones to find out what the driver is.
        let unknown = || opcode.parse().ok().map(Opcode::from_number);
        let opcode = named
            .map(|info| info.opcode)
            .or_else(unknown)
            .ok_or_else(|| invalid(format!("'{opcode}' is not a command")))?;
        let word = WORDS.iter().find(|(_, word)| *word == kind).map(|(kind, _)| *kind);
        let errno = || kind.parse().ok().map(FailureKind::Errno);
        let words = || WORDS.map(|(_, word)| word).join(", ");
        let kind = word
            .or_else(errno)
            .ok_or_else(|| invalid(format!("'{kind}' is neither an errno nor {}", words())))?;
        Ok(Self { node, nic, number, opcode, kind })
    }
}

/// The failures of one run. As text, they are joined by `+`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "String", try_from = "String")
)]
pub struct Failures(pub Vec<FailurePoint>);

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, point) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "+" };
            write!(f, "{separator}{point}")?;
        }
        Ok(())
    }
}

impl FromStr for Failures {
    type Err = InvalidFailure;

    fn from_str(text: &str) -> Result<Self, InvalidFailure> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        text.split('+').map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

macro_rules! as_text {
    ($($type:ident)*) => { $(
        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }

        impl TryFrom<String> for $type {
            type Error = InvalidFailure;

            fn try_from(text: String) -> Result<Self, InvalidFailure> {
                text.parse()
            }
        }
    )* };
}

as_text!(FailurePoint Failures);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lead_back_to_themselves() {
        for text in [
            "17:SVC_ALLOC:ENOSPC",
            "cxi1:1:SVC_DESTROY:lost",
            "n3:cxi0:2:LNI_ALLOC:kill-before",
            "1:SVC_GET:unplug+2:SVC_GET:delay",
            "8:2147483392:kill-before",
            "",
        ] {
            assert_eq!(text.parse::<Failures>().unwrap().to_string(), text);
        }
        let spelled_out: FailurePoint = "n1:cxi0:7:SVC_GET:EIO".parse().unwrap();
        assert_eq!(spelled_out.to_string(), "7:SVC_GET:EIO");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, what) in [
            ("SVC_ALLOC:ENOSPC", "three parts"),
            ("0:SVC_ALLOC:EIO", "'0' is not a number from 1"),
            ("1:SVC_WHAT:EIO", "'SVC_WHAT' is not a command"),
            ("1:SVC_ALLOC:EWHAT", "'EWHAT' is neither an errno nor lost, kill-before"),
            ("n0:1:SVC_ALLOC:EIO", "'n0' has no number"),
            ("1:SVC_ALLOC:EIO+", "three parts"),
        ] {
            let error = text.parse::<Failures>().unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
