//! Completion scripts and manual pages, generated from the definitions of the command line and of the
//! settings.

use std::fs;
use std::path::Path;

use clap_complete::Shell;
use clap_complete::env::Shells;
use clap_mangen::Man;
use cxi_site::settings::{AnyKey, Directories, FILE, NODE_LOCK, node_directory};
use roff::{Roff, bold, roman};
use serde_json::json;

use crate::complete::VARIABLE;
use crate::exit::{EXIT_CODES, Failure};
use crate::output::Report;
use crate::settings::ALL;
use crate::{examples, help};

/// A script that asks this program for what can be typed, at each press of the key.
pub(crate) fn completions(shell: Shell) -> Result<Report, Failure> {
    let name = shell.to_string();
    let shells = Shells::builtins();
    let completer = shells.completer(&name).ok_or_else(|| {
        Failure::bad_input(format!(
            "no completions for {name}: expected one of {}",
            shells.names().collect::<Vec<_>>().join(", ")
        ))
    })?;
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, "cxi", "cxi", "cxi", &mut script)
        .map_err(|error| Failure::failed(format!("cannot write the script: {error}")))?;
    let script = String::from_utf8_lossy(&script);
    Ok(Report::new(&*script, &json!({"shell": name, "script": script})))
}

pub(crate) fn man(directory: &Path) -> Result<Report, Failure> {
    if !directory.is_dir() {
        return Err(Failure::bad_input(format!(
            "{}: not a directory: expected one for the manual pages",
            directory.display()
        )));
    }
    let mut pages = Pages { directory, written: Vec::new() };
    let mut first = help::whole().disable_help_subcommand(true);
    first.build();
    pages.write(&first)?;
    // The other pages refer to the first one for the options of every command.
    let mut others = help::without_globals(help::whole().disable_help_subcommand(true));
    others.build();
    pages.write_below(&others)?;
    pages.put("cxi.toml.5", settings().render().into_bytes())?;
    let text: String = pages.written.iter().map(|page| format!("{page}\n")).collect();
    Ok(Report::of(text, "written", &pages.written))
}

struct Pages<'a> {
    directory: &'a Path,
    written: Vec<String>,
}

impl Pages<'_> {
    /// A page for each command below one, such as `cxi-service-create.1`.
    fn write_below(&mut self, command: &clap::Command) -> Result<(), Failure> {
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            self.write(below)?;
            self.write_below(below)?;
        }
        Ok(())
    }

    fn write(&mut self, command: &clap::Command) -> Result<(), Failure> {
        let page = Man::new(command.clone()).source(concat!("cxi ", env!("CARGO_PKG_VERSION")));
        let mut text = Vec::new();
        page.render(&mut text)
            .map_err(|error| Failure::failed(format!("cannot be made: {error}")))?;
        let text = String::from_utf8_lossy(&text);
        // Examples come first: they are what most readers look for.
        let (before, after) = text.split_once(".SH DESCRIPTION").unwrap_or((&text, ""));
        let name = command.get_bin_name().unwrap_or_default();
        let name = name.trim_start_matches("cxi").trim_start();
        let examples = section_of_examples(name).to_roff();
        let page_text =
            format!("{before}{examples}.SH DESCRIPTION{after}{}", last_sections(name).to_roff());
        self.put(&page.get_filename(), page_text.into_bytes())
    }

    fn put(&mut self, name: &str, text: Vec<u8>) -> Result<(), Failure> {
        let path = self.directory.join(name);
        fs::write(&path, text).map_err(|error| Failure::unwritten(&path, &error))?;
        self.written.push(path.display().to_string());
        Ok(())
    }
}

fn section_of_examples(command: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    for (purpose, line) in examples::of(command) {
        roff.control("TP", []).text([roman(purpose)]).text([bold(line)]);
    }
    roff
}

/// The sections that clap does not generate.
fn last_sections(command: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for line in EXIT_CODES.lines().skip(1) {
        match line.trim_start().split_once("  ") {
            Some((code, meaning)) => {
                roff.control("TP", []).text([bold(code)]).text([roman(meaning)]);
            }
            None => {
                roff.control("PP", []).text([roman(line)]);
            }
        }
    }
    let others = match command {
        "" => "cxi.toml(5)",
        _ => "cxi(1) for the options of every command, cxi.toml(5) for settings",
    };
    roff.control("SH", ["SEE ALSO"]).text([roman(others)]);
    roff
}

/// The default of a setting on a machine, for its description.
pub(crate) fn default_of(key: &dyn AnyKey) -> String {
    // Another user's depends on that user.
    if key.name() == NODE_LOCK.name {
        return "/run/cxi/node.lock".to_owned();
    }
    let default = key.default(&Directories::Machine);
    // And a machine that an earlier version has begun to use goes on with its directory.
    match Path::new(&default).strip_prefix(node_directory()) {
        Ok(rest) => Path::new("/run/cxi-node").join(rest).display().to_string(),
        Err(_) => default,
    }
}

/// The page of the settings file.
fn settings() -> Roff {
    let mut roff = Roff::new();
    roff.control("TH", ["cxi.toml", "5", "", concat!("cxi ", env!("CARGO_PKG_VERSION"))]);
    roff.control("SH", ["NAME"]).text([roman("cxi.toml - settings of cxi and of its scripts")]);
    roff.control("SH", ["EXAMPLES"]);
    roff.control("EX", []);
    for line in [
        "wait = \"30s\"",
        "[node]",
        "nics = 4",
        "[pool]",
        "vnis = \"1024-32767\"",
        "[controller]",
        "records = \"/shared/cxi\"",
    ] {
        roff.text([roman(line)]);
    }
    roff.control("EE", []);
    roff.control("SH", ["DESCRIPTION"]).text([roman(format!(
        "{FILE}, or the file that --config or CXI_CONFIG names, has the settings of this machine, in \
         TOML. A variable that is not empty overrides a setting, and an option overrides both. A key \
         that does not exist is refused. A list may also be a text with commas, and a time has a \
         unit, such as 500ms, 30s or 5m, or is a number of seconds. cxi config check shows the \
         settings in effect, and where each comes from."
    ))]);
    roff.control("SH", ["SETTINGS"]);
    for key in ALL {
        roff.control("TP", []).text([bold(key.name())]);
        let default = match default_of(*key) {
            empty if empty.is_empty() => " There is no default.".to_owned(),
            default => format!(" The default is {default}."),
        };
        roff.text([roman(format!(
            "{}{default} Variable: {}.",
            key.about().trim_start(),
            key.variable()
        ))]);
    }
    roff.control("SH", ["SEE ALSO"]).text([roman("cxi(1), cxi-config-check(1)")]);
    roff
}
