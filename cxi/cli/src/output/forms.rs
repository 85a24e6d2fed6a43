//! The forms that the output of each command has.

use clap::ValueEnum as _;

use super::Format;
use crate::cli::Command;
use crate::exit::Failure;
use crate::fabric::cli::FabricCommand;
use crate::job::cli::JobCommand;
use crate::service::cli::ServiceCommand;
use crate::vni::cli::VniCommand;

/// The program's own output, and errors as JSON.
const OWN: &[Format] = &[Format::Table, Format::Json];
/// A text that is a file of its own form.
const TEXT: &[Format] = &[Format::Table];
const TREE: &[Format] = &[Format::Table, Format::Wide, Format::Json, Format::Yaml];
const LIST: &[Format] = &[Format::Table, Format::Wide, Format::Json, Format::Yaml, Format::Csv];

/// Refuses a form that a command does not have, before it does anything.
pub(crate) fn check(command: &Command) -> Result<(), Failure> {
    let (chosen, forms) = (Format::chosen(), of(command));
    if forms.contains(&chosen) {
        return Ok(());
    }
    let name = |form: &Format| {
        form.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    };
    let names: Vec<String> = forms.iter().map(name).collect();
    let (last, first) = names.split_last().expect("each command has a form");
    let expected = match first {
        [] => last.clone(),
        first => format!("{} or {last}", first.join(", ")),
    };
    let why = if chosen == Format::Csv { ": its result is not a list" } else { "" };
    Err(Failure::bad_input(format!(
        "this command has no output as {}{why}: expected {expected}",
        name(&chosen)
    )))
}

fn of(command: &Command) -> &'static [Format] {
    match command {
        Command::Devices(_) | Command::Audit(_) | Command::Top(_) | Command::Config(_) => LIST,
        Command::Service(command) => match &**command {
            ServiceCommand::Show(show) if show.yaml => TEXT,
            ServiceCommand::Usage { svg: true, .. } => TEXT,
            _ => LIST,
        },
        Command::Job(command) => match &***command {
            JobCommand::Run(_) | JobCommand::Become { .. } => OWN,
            JobCommand::Plan { .. }
            | JobCommand::Epilog(_)
            | JobCommand::Clean(_)
            | JobCommand::Reserve(_)
            | JobCommand::List { .. }
            | JobCommand::Show { .. } => LIST,
            _ => TREE,
        },
        Command::Vni(command) => match &**command {
            VniCommand::Reserve(_) | VniCommand::Show { .. } => LIST,
            _ => TREE,
        },
        Command::Fabric(command) => match ***command {
            FabricCommand::Show { svg: true, .. } => TEXT,
            _ => TREE,
        },
        _ => TREE,
    }
}
