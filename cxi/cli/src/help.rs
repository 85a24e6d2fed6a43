//! Help: what a command is for, one example, its own options, and last, in a few words, those of every
//! command.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Args as _, Command, FromArgMatches as _};

use crate::cli::Cli;
use crate::exit::EXIT_CODES;
use crate::options::Common;
use crate::{deferred, examples};

/// The order of help. What precedes the options is an example.
const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}{all-args}{after-help}";
const ONLY_OPTIONS: &str = "{all-args}";
const GLOBAL: &str = "help-global";
/// The width of the group of options of every command.
const WIDTH: usize = 78;

/// Parses a command line with the definitions of all commands, and with their help.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// All commands, with their help.
fn command() -> Command {
    let whole = whole();
    let every = in_short(&whole);
    let codes = format!("{every}\n\n{EXIT_CODES}");
    with_examples(without_globals(whole), "", &every).after_help(codes)
}

/// Without descriptions of the options of every command.
pub(crate) fn without_globals(command: Command) -> Command {
    command.mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg })
}

/// All commands, with the option that describes the options of every command.
pub(crate) fn whole() -> Command {
    let option = Arg::new(GLOBAL)
        .long(GLOBAL)
        .global(true)
        .action(ArgAction::SetTrue)
        .help("Describe the options of every command")
        .help_heading("Options of every command");
    deferred::whole::<Cli>().arg(option)
}

fn with_examples(command: Command, path: &str, every: &str) -> Command {
    let example = examples::of(path).first().map(|(purpose, line)| {
        format!("Example: {}{}\n  {line}", purpose[..1].to_lowercase(), &purpose[1..])
    });
    let command = command
        .help_template(TEMPLATE)
        .before_help(example.unwrap_or_default())
        .after_help(every.to_owned());
    command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        with_examples(below, path.trim_start(), every)
    })
}

/// The options of every command by name, in a few lines.
fn in_short(command: &Command) -> String {
    let mut text = format!("Options of every command (--{GLOBAL} describes them):");
    let mut column = WIDTH;
    for arg in command.get_arguments().filter(|arg| arg.is_global_set()) {
        let word = word(arg);
        if column + 2 + word.len() > WIDTH {
            text += "\n";
            column = 0;
        }
        text += "  ";
        text += &word;
        column += 2 + word.len();
    }
    text
}

/// An option and its value: `-d, --device NICS`, `--watch[=TIME]`.
fn word(arg: &Arg) -> String {
    let mut word = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    word += "--";
    word += arg.get_long().unwrap_or_default();
    let takes_value = arg.get_action().takes_values();
    if let Some(value) = arg.get_value_names().and_then(|names| names.first())
        && takes_value
    {
        let optional = arg.is_require_equals_set();
        word += &if optional { format!("[={value}]") } else { format!(" {value}") };
    }
    word
}

/// Description of the options of every command, if the command line asks for that.
pub(crate) fn of_every_command(arguments: &[OsString]) -> Option<clap::builder::StyledStr> {
    let asked = format!("--{GLOBAL}");
    // Everything after -- belongs to another program.
    let mut own = arguments.iter().skip(1).take_while(|argument| *argument != "--");
    own.any(|argument| *argument == *asked).then(|| {
        let command = Command::new("cxi").disable_help_flag(true).help_template(ONLY_OPTIONS);
        Common::augment_args(command).render_long_help()
    })
}
