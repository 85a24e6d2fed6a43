//! Manual pages and completion scripts, generated from the definition of the command line.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use clap::Command;
use clap_complete::Shell;

use super::error::{Doing as _, ServeError};

/// The parts of each manual page that clap does not know.
const SECTIONS: &str = include_str!("sections.roff");

/// Writes a page for the command and for each of its subcommands.
pub(crate) fn man(command: &Command, directory: &Path) -> Result<(), ServeError> {
    let write = || {
        clap_mangen::generate_to(command.clone(), directory)?;
        add_sections(command, "cxi-mock", directory)
    };
    write().doing(|| format!("write manual pages to {}", directory.display()))
}

fn add_sections(command: &Command, page: &str, directory: &Path) -> io::Result<()> {
    let path = directory.join(format!("{page}.1"));
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(SECTIONS.as_bytes())?;
    let below = command.get_subcommands();
    let mut shown = below.filter(|below| !below.is_hide_set());
    shown.try_for_each(|below| {
        add_sections(below, &format!("{page}-{}", below.get_name()), directory)
    })
}

pub(crate) fn completions(mut command: Command, shell: Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "cxi-mock", &mut script);
    // If standard output is closed, there is no reader.
    let _ = io::stdout().write_all(&script);
}
