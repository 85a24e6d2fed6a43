//! Our headers: two languages, and the layouts of HPE's.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cxi_capi_build::{LIBCXI, Places, compiler, install, write_headers};

use crate::compiled::Bench;
use crate::need_bench;
use cxi_test_kit::skip;
use cxi_tests::node::printed;

const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"];

/// A program compiles without a warning, if there is the compiler, and it has a C library.
fn check(bench: &Bench, compiler: &OsStr, language: [&str; 3], source: &Path) {
    let compile = |source: &Path| {
        Command::new(compiler)
            .args(language)
            .args(WARNINGS)
            .arg("-I")
            .arg(bench.include())
            .arg(source)
            .output()
    };
    let name = compiler.to_string_lossy();
    let empty = source.with_extension("empty");
    fs::write(&empty, "#include <stdint.h>\ntypedef int empty;\n").expect("a file");
    match compile(&empty) {
        Ok(output) if output.status.success() => {
            let output = compile(source).expect("the compiler is there");
            assert!(output.status.success(), "{output:?}");
        }
        Ok(_) => skip(format_args!("{name} has no C library")),
        Err(error) => skip(format_args!("there is no {name}: {error}")),
    }
}

#[test]
fn compile_as_c_and_as_cpp_without_a_warning() {
    let bench = need_bench!();
    let source = program(bench, "plain", "");
    check(bench, "cc".as_ref(), ["-std=c11", "-x", "c"], &source);
    check(bench, "c++".as_ref(), ["-std=c++17", "-x", "c++"], &source);
}

/// The sizes and offsets of the recorded interface, for the structs that our header has; also for
/// aarch64, if there is a compiler.
#[test]
fn layouts_are_those_of_hpe() {
    let bench = need_bench!();
    let ours = fs::read_to_string(bench.include().join("libcxi/libcxi.h")).expect("our header");
    let recorded = Bench::text("cxi_decl.h");
    let asserts: Vec<&str> = recorded
        .lines()
        .filter(|line| line.starts_with("_Static_assert("))
        .filter(|line| {
            let name = line.split_once("struct ").or_else(|| line.split_once("union "));
            let end = |name: &str| name.find([',', ')', ' ']).unwrap_or(name.len());
            name.is_some_and(|(_, name)| {
                let name = &name[..end(name)];
                ours.contains(&format!("struct {name} {{\n"))
                    || ours.contains(&format!("union {name} {{\n"))
            })
        })
        .collect();
    assert!(asserts.len() > 60, "{} asserts", asserts.len());
    let source = program(bench, "layouts", &asserts.join("\n"));
    for compiler in [compiler(), "aarch64-linux-gnu-gcc".into()] {
        check(bench, &compiler, ["-std=c11", "-x", "c"], &source);
    }
}

/// No offset can be asserted of a bit field.
#[test]
fn the_flags_of_a_service_are_the_bits_that_the_driver_reads() {
    let bench = need_bench!();
    let flags = [
        ("restricted_members", 0x01),
        ("restricted_vnis", 0x02),
        ("restricted_tcs", 0x04),
        ("resource_limits", 0x08),
        ("enable", 0x10),
        ("is_system_svc", 0x20),
        ("cntr_pool_id", 0x40),
    ];
    let print = |(name, _): (&str, u8)| {
        format!(
            "\tmemset(&desc, 0, sizeof desc);\n\tdesc.{name} = 1;\n\
             \tprintf(\"%d\\n\", *(unsigned char *)&desc);\n"
        )
    };
    let body: String = flags.into_iter().map(print).collect();
    let source = bench.place("bits.c");
    let text = format!(
        "#include <stdio.h>\n#include <string.h>\n#include <libcxi/libcxi.h>\n\
         int main(void)\n{{\n\tstruct cxi_svc_desc desc;\n{body}\treturn 0;\n}}\n"
    );
    fs::write(&source, text).expect("a file");
    let program = bench.build(&source, &[]);
    let output = Command::new(program).output().expect("it starts");
    let bits: Vec<String> = flags.iter().map(|(_, bit)| bit.to_string()).collect();
    assert_eq!(printed(&output), bits.join("\n"));
}

/// All that the header declares is in the library.
#[test]
fn what_is_declared_can_be_linked() {
    let bench = need_bench!();
    let names = declared(bench);
    assert!(names.len() > 20, "{names:?}");
    let use_of = |name: &String| format!("\tprintf(\"%d\\n\", (void *){name} != NULL);\n");
    let uses: Vec<String> = names.iter().map(use_of).collect();
    let uses = uses.concat();
    let source = bench.place("declared.c");
    let text = format!(
        "#include <stdio.h>\n#include <libcxi/libcxi.h>\n#include <libcxi/cxi_rs.h>\n\
         int main(void)\n{{\n{uses}\tprintf(\"%d\\n\", (void *)cxi_last_error != NULL);\n\
         \treturn 0;\n}}\n"
    );
    fs::write(&source, text).expect("a file");
    let arguments = bench.link_arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let program = bench.build(&source, &arguments);
    let output = Command::new(program).output().expect("it starts");
    assert_eq!(printed(&output), vec!["1"; names.len() + 1].join("\n"));
}

#[test]
fn classes_have_their_names() {
    let bench = need_bench!();
    let count = "sizeof cxi_tc_strs / sizeof *cxi_tc_strs == CXI_TC_MAX";
    let best = "cxi_tc_strs[CXI_TC_BEST_EFFORT]";
    let source = bench.place("classes.c");
    let text = format!(
        "#include <stdio.h>\n#include <libcxi/libcxi.h>\n_Static_assert({count}, \"\");\n\
         int main(void)\n{{\n\tputs({best});\n\treturn 0;\n}}\n"
    );
    fs::write(&source, text).expect("a file");
    let output = Command::new(bench.build(&source, &[])).output().expect("it starts");
    assert_eq!(printed(&output), "BEST_EFFORT");
}

#[test]
fn an_installation_is_found_where_its_file_says() {
    let bench = need_bench!();
    for (libdir, written) in [("lib64", "${exec_prefix}/lib64"), ("/usr/lib64", "/usr/lib64")] {
        let destdir = bench.place("root").join(libdir.replace('/', ""));
        let places =
            Places { destdir: destdir.clone(), prefix: "/usr".into(), libdir: libdir.into() };
        let files = install(&bench.library, &places).expect("it is installed");
        let file = destdir.join("usr/lib64/pkgconfig/libcxi.pc");
        assert!(files.contains(&file), "{files:?}");
        let text = fs::read_to_string(file).expect("a file");
        assert!(text.contains(&format!("\nlibdir={written}\n")), "{text}");
    }
}

/// A header that is not ours stays where it is.
#[test]
fn hpes_header_is_not_written_over() {
    let bench = need_bench!();
    let include = bench.place("with-hpe");
    fs::create_dir_all(include.join("libcxi")).expect("a directory");
    let theirs = include.join("libcxi/libcxi.h");
    fs::write(&theirs, "/* HPE's */\n").expect("a file");
    let written = write_headers(&LIBCXI, &include).expect("the others are written");
    assert_eq!(written.len(), 2);
    assert_eq!(fs::read_to_string(theirs).expect("a file"), "/* HPE's */\n");
}

fn declared(bench: &Bench) -> Vec<String> {
    let ours = fs::read_to_string(bench.include().join("libcxi/libcxi.h")).expect("our header");
    ours.lines()
        .filter(|line| line.starts_with("int cxil_") || line.starts_with("void cxil_"))
        .filter_map(|line| line.split([' ', '(']).nth(1).map(str::to_owned))
        .collect()
}

fn program(bench: &Bench, name: &str, more: &str) -> PathBuf {
    let source = bench.place(&format!("{name}.h.c"));
    let text = format!(
        "#include <libcxi/libcxi.h>\n#include <libcxi/cxi_rs.h>\n{more}\n\
         int main(void)\n{{\n\treturn cxi_rsrc_type_to_str(CXI_RSRC_TYPE_AC)[0] != 'A';\n}}\n"
    );
    fs::write(&source, text).expect("a file");
    source
}
