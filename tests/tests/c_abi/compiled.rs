//! The library under test, and C programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use cxi_capi_build::{LIBCXI, LIBCXI_JOB, Library, Product, compiler, write_headers};
use cxi_tests::node;
use lzma_rust2::XzReader;
use tempfile::TempDir;

/// Recorded behavior of HPE's library. `pack-vectors` next to it packs it.
const VECTORS: &[u8] = include_bytes!("../../../cxi/capi/tests/vectors.tar.xz");

/// The C programs, and the cases that are recorded from HPE's library.
const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cxi/capi/tests");

/// Directory and compiled libraries that all tests share.
pub(crate) struct Bench {
    directory: TempDir,
    pub(crate) library: Library,
    /// That of the scheduler layer.
    pub(crate) job: Library,
}

/// Leaves a test if there is no C compiler here.
#[macro_export]
macro_rules! need_bench {
    () => {
        match $crate::compiled::bench() {
            Some(bench) => bench,
            None => return cxi_test_kit::skip("there is no C compiler (CC, or cc)"),
        }
    };
}

/// The library, made of this build's archive; `None` without a C compiler.
pub(crate) fn bench() -> Option<&'static Bench> {
    static BENCH: OnceLock<Option<Bench>> = OnceLock::new();
    BENCH.get_or_init(make).as_ref()
}

fn make() -> Option<Bench> {
    Command::new(compiler()).arg("--version").output().ok()?;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let make = |product| {
        write_headers(product, &directory.path().join("include")).expect("headers are written");
        Library::make(product, &archive(product), directory.path()).expect("the library is made")
    };
    let library = make(&LIBCXI);
    let job = make(&LIBCXI_JOB);
    let unpacked = directory.path().join("vectors");
    tar::Archive::new(XzReader::new(VECTORS, true)).unpack(unpacked).expect("a whole archive");
    Some(Bench { directory, library, job })
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Finds the archive that cargo made of a package for this test: the newest one next to it.
fn archive(product: &Product) -> PathBuf {
    let stem = product.cargo_archive();
    let stem = format!("{}-", stem.trim_end_matches(".a"));
    let test = std::env::current_exe().expect("a path");
    let directory = test.parent().expect("a directory");
    let made = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&stem) && name.ends_with(".a")
        })
        .max_by_key(|path| made(path))
        .expect("cargo has made an archive")
}

impl Bench {
    /// A file of the cases.
    pub(crate) fn case(name: &str) -> PathBuf {
        Path::new(CASES).join("cases").join(name)
    }

    /// The text of a file of the cases.
    pub(crate) fn text(name: &str) -> String {
        read(&Self::case(name))
    }

    /// The recordings of one release.
    pub(crate) fn vectors(&self, release: &str) -> String {
        read(&self.directory.path().join(format!("vectors/vectors-{release}.json")))
    }

    /// The archive as cargo made it, with the names of all functions in it.
    pub(crate) fn unstripped() -> PathBuf {
        archive(&LIBCXI)
    }

    /// A place for something that a test makes.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the directory that `-I` names for our headers.
    pub(crate) fn include(&self) -> PathBuf {
        self.place("include")
    }

    /// Directory of the library.
    pub(crate) fn libraries(&self) -> &Path {
        self.directory.path()
    }

    /// Compiles a C program of the cases, with more arguments.
    pub(crate) fn compile(&self, source: &str, arguments: &[&str]) -> PathBuf {
        self.build(&Self::case(source), arguments)
    }

    /// Compiles a C program in the directory of the tests.
    pub(crate) fn compile_own(&self, source: &str, arguments: &[&str]) -> PathBuf {
        let source = Path::new(CASES).join("c").join(source);
        self.build(&source, arguments)
    }

    /// Compiles a C program, with more arguments.
    pub(crate) fn build(&self, source: &Path, arguments: &[&str]) -> PathBuf {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or_default().replace("::", "-");
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        let program = self.place(&format!("{stem}-{test}"));
        let output = Command::new(compiler())
            .args(["-std=gnu11", "-O1", "-w", "-I"])
            .arg(self.include())
            .arg("-I")
            .arg(Self::case(""))
            .arg("-o")
            .arg(&program)
            .arg(source)
            .args(arguments)
            .output()
            .expect("the compiler runs");
        assert!(output.status.success(), "{output:?}");
        program
    }

    /// Arguments that link a program with the library.
    pub(crate) fn link_arguments(&self) -> Vec<String> {
        let directory = self.libraries().display();
        vec![
            format!("-L{directory}"),
            format!("-Wl,-rpath,{directory}"),
            "-lcxi".to_owned(),
            "-lpthread".to_owned(),
            "-ldl".to_owned(),
        ]
    }
}

/// Runs a program on its own served node; options stand in front of `--`.
pub(crate) fn served(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    node::server(["run"])
        .args(arguments)
        .env_remove("CXI_EXPLAIN")
        .envs(environment.iter().copied())
        .output()
        .expect("the server runs")
}

/// Returns whether a test can have a `/sys` and `/dev` of its own; says why not.
pub(crate) fn can_unshare() -> bool {
    let unshared = Command::new("unshare").args(["-m", "true"]).output();
    let can = unshared.is_ok_and(|output| output.status.success());
    if !can {
        cxi_test_kit::skip("it takes root and unshare(1) for a private /sys and /dev");
    }
    can
}
