//! The documents: their links, and their shell commands. The blocks `sh` of a page run from top to
//! bottom in one directory, on the mock nodes that they name themselves, as for a reader who pastes
//! them. One marked `root` runs only as root; one marked `no_run` is left to its reader,
//! and the text before it says why.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use cxi_test_kit::{Directory, is_root, skip};
use cxi_tests::node::{self, cxi_mock, errors};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Commands that a new user types in the repository, with the programs that they start.
const OF_THE_REPOSITORY: [(&str, &str); 2] = [
    ("cargo run --package cxi-demo", "cxi-demo"),
    ("cargo run --quiet --package cxi-mockd --", "cxi-mock"),
];

/// Commands of a document, under a fence of three backticks.
struct Block {
    at: String,
    marks: Vec<String>,
    script: String,
}

fn blocks(document: &Path) -> Vec<Block> {
    let text = fs::read_to_string(document).expect("a document");
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let body: Vec<_> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let mut marks = info.split(' ').map(str::to_owned);
        match marks.next().as_deref() {
            Some("sh") => blocks.push(Block {
                at: format!("{}:{}", document.display(), number + 1),
                marks: marks.collect(),
                script: body.join("\n"),
            }),
            language => assert_ne!(language, Some("console"), "{}", document.display()),
        }
    }
    blocks
}

fn documents() -> Vec<PathBuf> {
    let root = fs::canonicalize(ROOT).expect("the repository");
    let mut found = vec![root.join("README.md")];
    for directory in ["docs", "docs/guide", "docs/integration"] {
        let entries = fs::read_dir(root.join(directory)).expect("documents");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        found.extend(paths.filter(|path| path.extension().is_some_and(|it| it == "md")));
    }
    found
}

impl Block {
    /// Returns whether it can run here; says if not.
    fn is_possible(&self, bin: &Path, served: bool) -> bool {
        for mark in &self.marks {
            match mark.as_str() {
                "no_run" => return false,
                "root" if is_root() => {}
                "root" => {
                    skip(format_args!("{} needs root", self.at));
                    return false;
                }
                mark => panic!("{}: unknown mark {mark}: expected root or no_run", self.at),
            }
        }
        if self.is_served() && !served {
            skip(format_args!("{} needs a served node", self.at));
            return false;
        }
        if self.script.contains(OF_THE_REPOSITORY[0].0) && !bin.join("cxi-demo").exists() {
            skip(format_args!("{} needs cxi-demo, built", self.at));
            return false;
        }
        true
    }

    /// Returns whether it starts its own node.
    fn is_served(&self) -> bool {
        self.script.contains("cxi-mock")
    }

    /// Returns whether a reader who pastes it gets the node that the text speaks of, with NICs or
    /// without.
    fn names_its_node(&self) -> bool {
        let mut commands = self.script.lines().filter_map(|line| line.split("cxi ").nth(1));
        let takes_a_node = commands
            .any(|rest| !["explain", "--version"].iter().any(|free| rest.starts_with(free)));
        let named = ["CXI_MOCK=", "--mock"].iter().any(|name| self.script.contains(name));
        self.is_served() || !takes_a_node || named
    }

    fn run(&self, bin: &Path, directory: &Directory) -> Result<(), String> {
        let mut script = self.script.clone();
        for (typed, started) in OF_THE_REPOSITORY {
            script = script.replace(typed, started);
        }
        let output = shell(&script, directory, bin).output().expect("a shell");
        if output.status.success() {
            return Ok(());
        }
        let said = errors(&output);
        Err(format!("{}: {}\n{said}", self.at, output.status))
    }
}

fn shell(script: &str, directory: &Directory, bin: &Path) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("timeout");
    command
        .args(["120", "sh", "-euc", script])
        .current_dir(directory.path())
        .env("PATH", format!("{}:{path}", bin.display()))
        .env_remove("CXI_MOCK");
    command
}

/// The programs that the documents start, in a directory.
fn programs() -> Directory {
    let bin = Directory::new();
    for (name, program) in [
        ("cxi", Path::new(env!("CARGO_BIN_EXE_test-cxi"))),
        ("cxi-cni", Path::new(env!("CARGO_BIN_EXE_test-cxi-cni"))),
        ("cxi-demo", &Path::new(cxi_mock()).with_file_name("cxi-demo")),
        ("cxi-mock", Path::new(cxi_mock())),
    ] {
        symlink(program, bin.join(name)).expect("a link");
    }
    bin
}

/// Address of this repository, for links from the book to files that are not in it.
const PUBLISHED: &str = "https://github.com/cxi-rs/cxi/tree/main/";

/// The text of a document without its code.
fn prose(document: &Path) -> String {
    let text = fs::read_to_string(document).expect("a document");
    let outside = text.split("\n```").step_by(2);
    outside.collect::<Vec<_>>().join("\n")
}

/// Returns the names of headings in links.
fn anchors(document: &Path) -> Vec<String> {
    let text = prose(document);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
        let name = heading.trim_start_matches('#').trim().to_lowercase();
        name.chars().filter(kept).collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

/// Returns the reason for which a link of a document leads nowhere.
fn is_broken(document: &Path, link: &str) -> Option<&'static str> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path.strip_prefix(PUBLISHED) {
        Some(path) => Path::new(ROOT).join(path),
        None if path.contains("://") => return None,
        None if path.is_empty() => document.to_owned(),
        None => document.with_file_name(path),
    };
    if !target.exists() {
        return Some("there is no such file");
    }
    let known = anchor.is_empty() || target.is_dir() || anchors(&target).contains(&anchor.into());
    (!known).then_some("there is no such heading")
}

/// Returns the targets of a document's links.
fn links(document: &Path) -> Vec<String> {
    let text = prose(document);
    let links = text.split("](").skip(1);
    let links = links.filter_map(|rest| rest.split(')').next());
    links.map(str::to_owned).collect()
}

/// The first pages of the crates, which registries show, too.
fn pages_of_crates() -> Vec<PathBuf> {
    let below = |directory: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).expect("a directory");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    };
    let is_crate = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        path.is_dir() && name.is_some_and(|name| name.starts_with("cxi"))
    };
    let of_crates = below(Path::new(ROOT)).into_iter().filter(is_crate);
    let of_crates = of_crates.flat_map(|path| [below(&path), vec![path]].concat());
    let pages = of_crates.map(|path| path.join("README.md"));
    pages.filter(|page| page.exists()).collect()
}

#[test]
fn links_of_the_documents_lead_somewhere() {
    let root = Path::new(ROOT);
    let mut all = [documents(), pages_of_crates()].concat();
    all.extend(["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(|name| root.join(name)));
    let mut broken = Vec::new();
    for document in &all {
        for link in links(document) {
            if let Some(why) = is_broken(document, &link) {
                broken.push(format!("{}: {link}: {why}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn pages_of_crates_have_links_that_work_on_a_registry() {
    let pages = pages_of_crates();
    assert!(pages.len() > 10, "{pages:?}");
    for page in &pages {
        for link in links(page) {
            let works = link.contains("://") || link.starts_with('#');
            assert!(works, "{}: {link}: expected the whole address", page.display());
        }
    }
}

#[test]
fn every_page_is_in_the_summary_of_the_book() {
    let docs = fs::canonicalize(ROOT).expect("the repository").join("docs");
    let summary = prose(&docs.join("SUMMARY.md"));
    for document in documents() {
        if let Ok(page) = document.strip_prefix(&docs) {
            let link = format!("]({})", page.display());
            let known = page.ends_with("SUMMARY.md") || summary.contains(&link);
            assert!(known, "docs/SUMMARY.md does not list {}", page.display());
        }
    }
}

#[test]
fn the_picture_of_the_readme_is_what_the_command_prints() {
    let docs = fs::canonicalize(ROOT).expect("the repository").join("docs");
    let (directory, bin) = (Directory::new(), programs());
    let script = format!("{0}/record {0}/demo.sh", docs.display());
    let recorded = shell(&script, &directory, bin.path()).output();
    let recorded = recorded.expect("docs/record runs");
    let picture = fs::read(docs.join("demo.svg")).expect("a picture");
    let again = "PATH=$PWD/target/debug:$PATH docs/record docs/demo.sh > docs/demo.svg";
    assert!(recorded.stdout == picture, "{again}\n{}", errors(&recorded));
}

/// With `CXI_WRITE_SCREENS=1`, it is written anew.
#[test]
fn screens_of_the_guide_are_what_the_command_prints() {
    let path = Path::new(ROOT).join("docs/guide/screens.md");
    let page = fs::read_to_string(&path).expect("the page");
    let (directory, bin) = (Directory::new(), programs());
    let print = |script: &str| {
        let script = format!("export CXI_MOCK=node.json LC_ALL=C\n{script}");
        let output = shell(&script, &directory, bin.path()).output();
        let output = output.expect("a shell");
        assert!(output.stderr.is_empty(), "{script}: {}", errors(&output));
        String::from_utf8(output.stdout).expect("text")
    };
    for setup in blocks(&path) {
        print(&setup.script);
    }
    let mut parts = page.split("```text\n$ ");
    let mut now = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (shown, after) = part.split_once("```").expect("the end of a screen");
        let typed = shown.lines().next().expect("a command");
        now += &["```text\n$ ", typed, "\n", &print(typed), "```", after].concat();
    }
    if std::env::var_os("CXI_WRITE_SCREENS").is_some() {
        fs::write(&path, &now).expect("the page can be written");
    }
    assert!(
        now == page,
        "CXI_WRITE_SCREENS=1 cargo test --package cxi-tests --test documents screens"
    );
}

#[test]
fn commands_of_the_documents_work() {
    let bin = programs();
    let served = node::possible();
    let mut failed = Vec::new();
    let mut count = 0;
    for page in documents() {
        let directory = Directory::new();
        for block in blocks(&page) {
            count += 1;
            if !block.is_possible(bin.path(), served) {
                continue;
            }
            if !block.names_its_node() {
                failed.push(format!("{}: expected export CXI_MOCK=node.json, or --mock", block.at));
                continue;
            }
            failed.extend(block.run(bin.path(), &directory).err());
        }
    }
    assert!(count > 20, "only {count} blocks: what do fences look like?");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
