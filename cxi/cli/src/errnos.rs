//! `cxi explain TEXT`: what the error codes in a pasted message mean.

use cxi::driver::DetectedRelease;
use cxi::explain::{Attempted, Cause, Code, Mention, causes_of, mentions};
use cxi_ioctl::DriverRelease;
use cxi_job::explain::ContiguousMemory;
use cxi_site::ProcFs;
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::files::Input;
use crate::output::{Report, joined, wrapped};

/// A code that a text names.
#[derive(Serialize)]
struct Explained {
    name: String,
    number: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The task that failed, if the text says.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempted: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// The likeliest cause.
    meaning: &'static str,
    /// Commands that show whether it is that one.
    commands: &'static [&'static str],
    causes: Vec<ExplainedCause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<ContiguousMemory>,
}

#[derive(Serialize)]
struct ExplainedCause {
    attempted: Option<&'static str>,
    commands: Vec<String>,
    releases: Vec<DriverRelease>,
    reason: &'static str,
    look: &'static [&'static str],
    mend: &'static str,
}

/// Facts about the node where a text was printed, if it is this one.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) proc: ProcFs,
    pub(crate) release: DetectedRelease,
}

/// Explains the codes in a text.
pub(crate) fn explain(input: &Input, place: &Place) -> Result<Report, Failure> {
    let found = mentions(&input.text);
    if found.is_empty() {
        return Err(Failure::new(Exit::NotFound, format!("{} names no error", input.name))
            .hint(
                "Expected a message that a program printed, or a code such as ENOSPC, -28 or \
                 VNI_NOT_FOUND.",
            )
            .hint(
                "A program names its error in English with LC_ALL=C FI_LOG_LEVEL=warn NCCL_DEBUG=WARN \
                 PROGRAM 2>&1 | cxi explain -",
            )
            .hint("Without a text, cxi explain says why a program of yours has no network.")
            .hint("cxi explain create, open and busy explain what a NIC refuses."));
    }
    let explained: Vec<Explained> =
        found.iter().filter_map(|mention| Explained::new(mention, place)).collect();
    let mut paragraphs: Vec<String> = explained.iter().map(Explained::words).collect();
    let unknown = found.iter().filter(|mention| causes(mention).is_empty());
    paragraphs.extend(unknown.map(|mention| {
        let says = match mention.code {
            Code::Nic(_) => "the NIC reports success",
            _ => "neither the driver nor libfabric is known to report it",
        };
        format!("{}: {says}.\n", mention.code)
    }));
    Ok(Report::of(wrapped(&joined(paragraphs, "\n")), "errnos", &explained))
}

fn causes(mention: &Mention) -> Vec<&'static Cause> {
    causes_of(mention.code, mention.attempted, mention.command)
}

impl Explained {
    fn new(mention: &Mention, place: &Place) -> Option<Self> {
        let mut causes = causes(mention);
        causes.retain(|cause| cause.concerns(place.release));
        let first = *causes.first()?;
        let looks = causes.iter().any(|cause| cause.depends_on_memory);
        Some(Self {
            name: mention.code.name(),
            number: mention.code.number(),
            text: mention.code.text().map(Into::into),
            attempted: mention.attempted.map(Attempted::words),
            command: mention.command.map(|opcode| opcode.to_string()),
            meaning: first.reason,
            commands: first.look,
            causes: causes.into_iter().map(ExplainedCause::new).collect(),
            memory: looks.then(|| ContiguousMemory::read(&place.proc)).flatten(),
        })
    }

    /// The first cause with all that is known of it; of the others, what was attempted and the cause.
    fn words(&self) -> String {
        let number = match &self.text {
            Some(text) => format!("{}, {text}", self.number),
            None => self.number.to_string(),
        };
        let from = match (&self.command, self.attempted) {
            (Some(command), _) => format!(" from {command}"),
            (None, Some(attempted)) => format!(" from {attempted}"),
            (None, None) => String::new(),
        };
        let mut text = format!("{} ({number}){from}: ", self.name);
        let (first, others) = self
            .causes
            .split_first()
            .map_or((None, &[][..]), |(first, others)| (Some(first), others));
        if let Some(first) = first {
            text += &format!("{}{}.\n", first.releases(), capitalized(first.reason));
            if let Some(memory) = &self.memory {
                text += &format!("  {}.\n", capitalized(&memory.to_string()));
            }
            text += &format!("  {}\n    {}\n", first.mend, first.look.join("\n    "));
        }
        if !others.is_empty() {
            text += "  By what was attempted:\n";
        }
        for cause in others {
            text += &format!(
                "  - {}{}{}. {}\n",
                cause.place(),
                cause.releases(),
                cause.reason,
                cause.mend
            );
        }
        text
    }
}

impl ExplainedCause {
    fn new(cause: &'static Cause) -> Self {
        Self {
            attempted: cause.attempted.map(Attempted::words),
            commands: cause.commands.iter().map(ToString::to_string).collect(),
            releases: cause.releases.to_vec(),
            reason: cause.reason,
            look: cause.look,
            mend: cause.mend,
        }
    }

    fn place(&self) -> String {
        match (self.commands.as_slice(), self.attempted) {
            ([], None) => String::new(),
            ([], Some(attempted)) => format!("{attempted}: "),
            (commands, _) => format!("{}: ", commands.join(", ")),
        }
    }

    fn releases(&self) -> String {
        if self.releases.is_empty() {
            return String::new();
        }
        format!("with {}: ", joined(self.releases.iter().map(|release| release.name()), ", "))
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Returns whether a text names a code.
pub(crate) fn names_one(text: &str) -> bool {
    !mentions(text).is_empty()
}

#[cfg(test)]
mod tests {
    use cxi::explain::causes;

    /// Commands of this program in the table exist, with these options.
    #[test]
    fn commands_that_are_advised_exist() {
        let values = [
            ("UID", "1000"),
            ("VNI", "1024"),
            ("ID", "2"),
            ("JOB", "17"),
            ("N1.env", "a"),
            ("N2.env", "b"),
            ("N", "4"),
        ];
        let mut tried = 0;
        for line in causes().iter().flat_map(|cause| cause.look) {
            let Some((_, own)) = line.split_once("cxi ").filter(|(before, _)| before.is_empty())
            else {
                continue;
            };
            let words = own.split(' ').map(|word| {
                values.iter().find(|(name, _)| *name == word).map_or(word, |(_, value)| value)
            });
            let line: Vec<_> = ["cxi"].into_iter().chain(words).map(Into::into).collect();
            if let Err(error) = crate::app::parse(&line) {
                panic!("{own}: {error}");
            }
            tried += 1;
        }
        assert!(tried > 20);
    }
}
