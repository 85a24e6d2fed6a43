//! `libcxi_job.so.0`: its names and header, what C programs do with it, and the examples.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use cxi_capi_build::{LIBCXI_JOB, compiler};
use etcd::Etcd;

use crate::compiled::{Bench, served};
use crate::need_bench;
use cxi_test_kit::skip;
use cxi_tests::node::{possible, printed};

#[path = "../../../cxi/vni-etcd/tests/server/mod.rs"]
mod etcd;

/// Types of the entry points in C.
const TYPES: [(&str, &str); 8] = [
    ("Text", "const char *"),
    ("Handle", "cxi_job_node *"),
    ("Out<Handle>", "cxi_job_node **"),
    ("Out<*mut c_char>", "char **"),
    ("Out<*mut *mut c_char>", "char ***"),
    ("u64", "uint64_t "),
    ("c_int", "int "),
    ("*const c_char", "const char *"),
];

const API: &str = include_str!("../../../cxi/job-capi/src/api.rs");
const HEADER: &str = include_str!("../../../cxi/job-capi/include/cxi_job.h");

fn in_c(rust: &str) -> &'static str {
    let known = TYPES.iter().find(|(name, _)| *name == rust.trim());
    known.unwrap_or_else(|| panic!("unknown type {rust}")).1
}

/// Without what may differ: blanks, and a `const` for a node that is not changed.
fn plain(text: &str) -> String {
    let text = text.replace("const cxi_job_node", "cxi_job_node");
    text.split_whitespace().collect()
}

#[test]
fn the_header_declares_what_the_library_defines() {
    let defined: BTreeSet<String> = API
        .split("extern \"C\" fn ")
        .skip(1)
        .map(|function| {
            let (name, rest) = function.split_once('(').expect("arguments");
            let (arguments, rest) = rest.split_once(") -> ").expect("a result");
            let result = rest.split_once(" {").expect("a body").0;
            let arguments: Vec<String> = arguments
                .split(',')
                .filter_map(|argument| argument.split_once(':'))
                .map(|(name, kind)| format!("{}{}", in_c(kind), name.trim()))
                .collect();
            let arguments =
                if arguments.is_empty() { "void".to_owned() } else { arguments.join(",") };
            plain(&format!("{}{name}({arguments})", in_c(result)))
        })
        .collect();
    let declared: BTreeSet<String> = HEADER
        .split(';')
        .filter_map(|text| text.rsplit_once("*/\n").or_else(|| text.rsplit_once("\n\n")))
        .map(|(_, declaration)| plain(declaration))
        .filter(|declaration| declaration.contains("cxi_job_") && declaration.ends_with(')'))
        .collect();
    assert_eq!(declared, defined);
    assert_eq!(defined.len(), LIBCXI_JOB.names().expect("a script").len());
}

#[test]
fn the_header_compiles_as_c_and_as_cpp_without_a_warning() {
    let bench = need_bench!();
    let source = bench.place("job-header.c");
    fs::write(&source, "#include <cxi_job.h>\nint main() { return 0; }\n").expect("a file");
    for (compiler, standard, language) in [("cc", "-std=c11", "c"), ("c++", "-std=c++17", "c++")] {
        let output = Command::new(compiler)
            .args([standard, "-x", language, "-Wall", "-Wextra", "-Wpedantic"])
            .args(["-Werror", "-fsyntax-only", "-I"])
            .arg(bench.include())
            .arg(&source)
            .output();
        match output {
            Ok(output) => assert!(output.status.success(), "{output:?}"),
            Err(error) => skip(format_args!("there is no {compiler}: {error}")),
        }
    }
}

#[test]
fn the_library_exports_its_own_names_alone() {
    let bench = need_bench!();
    let output = match Command::new("nm")
        .args(["-D", "--defined-only", "--with-symbol-versions"])
        .arg(bench.job.shared())
        .output()
    {
        Ok(output) => output,
        Err(error) => return skip(format_args!("there is no nm: {error}")),
    };
    let exported: BTreeSet<String> = printed(&output)
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2).map(str::to_owned))
        .collect();
    let names = LIBCXI_JOB.names().expect("a script").into_iter();
    let expected = names.map(|name| format!("{name}@@CXI_JOB_0")).chain(["CXI_JOB_0".to_owned()]);
    assert_eq!(exported, expected.collect());
}

/// Arguments that link with both libraries.
fn link_arguments(bench: &Bench) -> Vec<String> {
    let mut arguments = vec!["-lcxi_job".to_owned()];
    arguments.splice(0..0, bench.link_arguments().into_iter().take(2));
    arguments.extend(bench.link_arguments().into_iter().skip(2));
    arguments
}

#[test]
fn jobs_get_all_nics_or_none() {
    let bench = need_bench!();
    if !possible() {
        return;
    }
    let arguments = link_arguments(bench);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let program = bench.compile_own("job.c", &arguments).display().to_string();
    for release in ["shs-12.0", "shs-14.0.1", "main"] {
        let spool = tempfile::tempdir().expect("a directory");
        let place = spool.path().display().to_string();
        let run = ["--release", release, "--nics", "2", "--", &program, &place];
        assert_eq!(printed(&served(&run, &[])), "ok", "{release}");
    }
}

/// Compiles an example as a plugin, without a warning.
fn plugin(bench: &Bench, name: &str) -> PathBuf {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../cxi/job-capi/examples");
    let source = format!("{examples}/{name}.c");
    let lines = fs::read_to_string(&source).expect("an example").lines().count();
    assert!(lines < 150, "{name}: {lines} lines");
    let made = bench.place(&format!("{name}.so"));
    let output = Command::new(compiler())
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"])
        .arg("-I")
        .arg(bench.include())
        .arg("-o")
        .arg(&made)
        .arg(source)
        .args(link_arguments(bench))
        .output()
        .expect("the compiler runs");
    assert!(output.status.success(), "{output:?}");
    made
}

#[test]
fn the_examples_take_a_job_through_its_life() {
    let bench = need_bench!();
    if !possible() {
        return;
    }
    let batch = plugin(bench, "prolog_epilog").display().to_string();
    let shell = plugin(bench, "shell_plugin").display().to_string();
    let host = bench.compile_own("plugin_host.c", &["-ldl"]);
    let host = host.display().to_string();
    let spool = tempfile::tempdir().expect("a directory");
    let place = spool.path().display().to_string();
    let run = ["--nics", "2", "--", &host, &batch, &shell, &place];
    let output = served(&run, &[]);
    let text = printed(&output);
    let of = |who: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(who));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(of("job "), of("task "));
    assert_eq!(of("job ")[..2], ["SLINGSHOT_VNIS=1024", "SLINGSHOT_DEVICES=cxi0,cxi1"]);
    assert!(text.ends_with("\nend"), "{text}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("prolog of job 8: "), "{said}");
}

#[test]
fn a_program_in_python_takes_a_job_through_a_site() {
    let bench = need_bench!();
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("there is no python3");
    }
    if !possible() {
        return;
    }
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../cxi/job-capi/examples/site.py");
    let lines = fs::read_to_string(example).expect("an example");
    assert!(lines.lines().count() <= 80);
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().display().to_string();
    let libraries = bench.libraries().display().to_string();
    let run = ["--nics", "2", "--", "python3", example, &place];
    let told = "reserved: [1024]\n\
                services on: cxi0 cxi1\n\
                environment: 1024\n\
                jobs: 4711 running\n\
                orphans: 0\n\
                ended: 4711\n\
                services: destroyed destroyed\n\
                draining: 1\n\
                free: 16\n\
                refused: ";
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/../cxi/job-capi/python");
    let environment = [
        ("LD_LIBRARY_PATH", &*libraries),
        ("PYTHONPATH", module),
        ("PYTHONDONTWRITEBYTECODE", "1"),
    ];
    let said = printed(&served(&run, &environment));
    assert!(said.starts_with(told), "{said}");
    assert!(said.contains("no decision of the controller"), "{said}");
    // With the pool in etcd.
    let Some(etcd) = Etcd::start() else { return };
    let spool = tempfile::tempdir().expect("a directory");
    let place = spool.path().display().to_string();
    let run = ["--nics", "2", "--", "python3", example, &place];
    let url = etcd.url();
    let store = [("CXI_VNI_STORE", "etcd"), ("CXI_ETCD_ENDPOINTS", &*url)];
    let in_etcd = [&environment[..], &store].concat();
    assert!(printed(&served(&run, &in_etcd)).starts_with(told));
    assert!(!spool.path().join("pool.json").exists());
    let epoch = fs::read_to_string(spool.path().join("epoch"));
    assert_eq!(epoch.expect("this machine leads"), "1\n");
}
