//! The shell commands of the documents: each block `sh` runs in a directory of its own, on a mock
//! node. One marked `root` runs only as root; one marked `no_run` is left to its reader, and the
//! text before it says why.

mod node;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use node::{Directory, SERVER, is_root, skip};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// What a new user types in the repository, as what it starts.
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
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        let body: Vec<_> = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| *line != "```")
            .collect();
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
    for directory in ["docs", "docs/integration"] {
        let entries = fs::read_dir(root.join(directory)).expect("documents");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        found.extend(paths.filter(|path| path.extension().is_some_and(|it| it == "md")));
    }
    found
}

impl Block {
    /// Whether it can run here; says if not.
    fn is_possible(&self, bin: &Path, served: bool) -> bool {
        for mark in &self.marks {
            match mark.as_str() {
                "no_run" => return false,
                "root" if is_root() => {}
                "root" => {
                    skip(&format!("{} needs root", self.at));
                    return false;
                }
                mark => panic!("{}: unknown mark {mark}: expected root or no_run", self.at),
            }
        }
        if self.is_served() && !served {
            skip(&format!("{} needs a served node", self.at));
            return false;
        }
        if self.script.contains(OF_THE_REPOSITORY[0].0) && !bin.join("cxi-demo").exists() {
            skip(&format!("{} needs cxi-demo, built", self.at));
            return false;
        }
        true
    }

    /// Whether it starts a node of its own.
    fn is_served(&self) -> bool {
        self.script.contains("cxi-mock")
    }

    fn run(&self, bin: &Path) -> Result<(), String> {
        let directory = Directory::new();
        let mut script = self.script.clone();
        for (typed, started) in OF_THE_REPOSITORY {
            script = script.replace(typed, started);
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("timeout");
        command
            .args(["120", "sh", "-euc", &script])
            .current_dir(directory.path())
            .env("PATH", format!("{}:{path}", bin.display()));
        if !self.is_served() {
            command.env("CXI_MOCK", directory.join("mock.json"));
        }
        let output = command.output().expect("a shell");
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{}: {}\n{said}", self.at, output.status))
    }
}

#[test]
fn commands_of_the_documents_work() {
    let _limit = node::limit();
    let bin = Directory::new();
    let demo = Path::new(SERVER).with_file_name("cxi-demo");
    let programs = [
        ("cxi", Path::new(env!("CARGO_BIN_EXE_test-cxi"))),
        ("cxi-cni", Path::new(env!("CARGO_BIN_EXE_test-cxi-cni"))),
        ("cxi-demo", &demo),
        ("cxi-mock", Path::new(SERVER)),
    ];
    for (name, program) in programs {
        symlink(program, bin.join(name)).expect("a link");
    }
    let served = node::possible();
    let blocks: Vec<_> = documents().iter().flat_map(|path| blocks(path)).collect();
    assert!(
        blocks.len() > 20,
        "only {}: what do fences look like?",
        blocks.len()
    );
    let bin = bin.path();
    let possible = blocks.iter().filter(|block| block.is_possible(bin, served));
    let failed: Vec<_> = possible.filter_map(|block| block.run(bin).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
