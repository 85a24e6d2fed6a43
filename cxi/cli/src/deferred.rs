//! Parts of the command line that are defined only when they are needed.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::iter::once;
use std::mem::ManuallyDrop;
use std::ops::Deref;

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, CommandFactory, Error, FromArgMatches, Subcommand};

/// Arguments of a command, which are defined only when that command is named: defining all commands
/// takes longer than most commands run.
#[derive(Debug)]
pub(crate) struct Deferred<T>(T);

thread_local! {
    static AT_ONCE: Cell<bool> = const { Cell::new(false) };
    static WORDS: RefCell<Vec<OsString>> = const { RefCell::new(Vec::new()) };
}

/// Parses with only the subcommands that the arguments could name, and without help. clap copies the
/// options of every command into each subcommand, which takes longer than most commands run. Whatever
/// this accepts, the whole command line accepts too. A failure proves nothing, because this parser
/// does not know the other subcommands.
pub(crate) fn named<C: CommandFactory + FromArgMatches>(arguments: &[OsString]) -> Option<C> {
    WORDS.set(arguments.to_vec());
    // Freeing it would take a tenth of the time of a short command.
    let mut command = ManuallyDrop::new(
        C::command()
            .disable_help_subcommand(true)
            .disable_help_flag(true)
            .disable_version_flag(true),
    );
    let matches = command.try_get_matches_from_mut(arguments);
    WORDS.take();
    C::from_arg_matches_mut(&mut matches.ok()?).ok()
}

/// The subcommands that the arguments could name; all of them if there are no arguments.
fn subcommands<T: Subcommand>(command: Command) -> Command {
    WORDS.with_borrow(|words| {
        if words.is_empty() {
            return T::augment_subcommands(command);
        }
        let is_named = |command: &&Command| {
            let mut names = once(command.get_name()).chain(command.get_all_aliases());
            names.any(|name| words.iter().any(|word| word == name))
        };
        let all = ManuallyDrop::new(T::augment_subcommands(Command::default()));
        command
            .subcommand_required(true)
            .subcommands(all.get_subcommands().filter(is_named).cloned())
    })
}

/// The whole command line at once, for completion scripts: clap copies the commands for `help`
/// before it defines what was deferred.
pub(crate) fn whole<C: CommandFactory>() -> Command {
    AT_ONCE.set(true);
    let command = C::command();
    AT_ONCE.set(false);
    command
}

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        let augment = |command: Command| {
            // A group of options among them may describe itself, and would replace this.
            let about = Resettable::from(command.get_about().cloned());
            let long_about = Resettable::from(command.get_long_about().cloned());
            T::augment_args(command).about(about).long_about(long_about)
        };
        if AT_ONCE.get() { augment(command) } else { command.defer(augment) }
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: Subcommand> Subcommand for Deferred<T> {
    fn augment_subcommands(command: Command) -> Command {
        if AT_ONCE.get() {
            return T::augment_subcommands(command);
        }
        command.defer(subcommands::<T>)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        T::augment_subcommands_for_update(command)
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}
