//! From the command line to the exit code.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::exit::Failure;
use crate::job::cli::JobCommand;
use crate::output::{self, Report, forms};
use crate::service::cli::ServiceCommand;
use crate::vni::cli::VniCommand;
use crate::{
    audit, cdi, collectives, complete, deferred, devices, explain, fabric, generate, help,
    integration, job, metrics, selftest, service, settings, top, vni,
};

/// Runs the command line.
#[must_use]
pub fn run() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().collect();
    if let Some(code) = complete::answer(&arguments) {
        return code;
    }
    if let Some(options) = help::of_every_command(&arguments) {
        anstream::print!("{}", options.ansi());
        return ExitCode::SUCCESS;
    }
    let mut cli = match parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, &arguments),
    };
    let chosen = cli.common.choose_forms();
    let as_json = cli.common.json;
    match chosen.and_then(|()| execute(&mut cli)) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            let code = failure.kind() as u8;
            output::print_failures(&[failure], as_json);
            ExitCode::from(code)
        }
    }
}

/// Parses a command line, which starts with the name of the program.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    // Help and version need the whole definition of the command line.
    let is_option = |argument: &OsString| argument.as_encoded_bytes().starts_with(b"-");
    if arguments.iter().skip(1).all(is_option) {
        return help::parse(arguments);
    }
    let arguments = &explain::with_signs(arguments);
    if let Some(cli) = deferred::named(arguments) {
        return Ok(cli);
    }
    help::parse(arguments).or_else(|error| match explain::with_text(arguments) {
        Some(again) if error.use_stderr() => help::parse(&again),
        _ => Err(error),
    })
}

fn execute(cli: &mut Cli) -> Result<u8, Failure> {
    // Only `job run` starts this command, and it has already read the settings; those of a mock node are
    // not this machine's.
    let is_become = |command: &JobCommand| matches!(command, JobCommand::Become { .. });
    if !matches!(&*cli.command, Command::Job(command) if is_become(command)) {
        cli.common.complete()?;
    }
    forms::check(&cli.command)?;
    let as_json = cli.common.json;
    match cli.common.watch {
        None => report(cli)?.print(as_json),
        Some(every) if shows(&cli.command) => output::repeat(every, as_json, || report(cli)),
        Some(_) => Err(Failure::bad_input(
            "--watch repeats devices, service list, show and usage, job list, show and plan, vni show, \
             audit, explain busy and explain job",
        )),
    }
}

/// Returns whether a command only shows something that changes.
fn shows(command: &Command) -> bool {
    match command {
        Command::Devices(_) | Command::Audit(_) => true,
        Command::Service(command) => matches!(
            **command,
            ServiceCommand::List(_) | ServiceCommand::Show(_) | ServiceCommand::Usage { .. }
        ),
        Command::Job(command) => {
            matches!(
                ***command,
                JobCommand::List { .. } | JobCommand::Show { .. } | JobCommand::Plan { .. }
            )
        }
        Command::Vni(command) => matches!(**command, VniCommand::Show { .. }),
        Command::Explain(arguments) => arguments.only_looks(),
        _ => false,
    }
}

fn report(cli: &Cli) -> Result<Report, Failure> {
    match &*cli.command {
        Command::Devices(arguments) => devices::run(arguments, &cli.common),
        Command::Service(command) => service::run(command, &cli.common),
        Command::Job(command) => job::run(command, &cli.common),
        Command::Explain(command) => explain::run(command, &cli.common),
        Command::Audit(arguments) => audit::run(arguments, &cli.common),
        Command::Selftest(arguments) => selftest::run(arguments, &cli.common),
        Command::Vni(command) => vni::run(command, &cli.common),
        Command::Collectives(command) => collectives::run(command, &cli.common.settings),
        Command::Fabric(command) => fabric::run(command, &cli.common),
        Command::Metrics(arguments) => metrics::run(arguments, &cli.common),
        Command::Top(arguments) => top::run(arguments, &cli.common),
        Command::Cdi(arguments) => cdi::run(arguments, &cli.common),
        Command::Config(command) => settings::run(command, &cli.common),
        Command::Integration(command) => integration::run(command, &cli.common),
        Command::Completions { shell } => generate::completions(*shell),
        Command::Man { directory } => generate::man(directory),
    }
}

/// Help and version, which clap treats as errors too, and errors in a command line.
fn usage(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    // Everything after -- belongs to another program.
    let mut own = arguments.iter().take_while(|argument| *argument != "--");
    let as_json = own.any(|argument| argument == "--json");
    if as_json && error.use_stderr() {
        output::print_failures(&[usage_failure(error)], true);
    } else if error.use_stderr() {
        output::print_usage(error);
    } else {
        // If the stream is closed, there is no reader.
        let _ = error.print();
    }
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn usage_failure(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let mut paragraphs = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    let message = paragraphs.next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    paragraphs
        .filter(|paragraph| !paragraph.is_empty())
        .fold(Failure::bad_input(message), Failure::hint)
}
