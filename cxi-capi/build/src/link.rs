//! From an archive of Rust code to libraries for C.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tool::{Result, compiler, run};

/// What programs ask the loader for, the same in all releases.
pub const SONAME: &str = "libcxi.so.1";

/// The file, named as that of HPE's library of the development branch.
const FILE: &str = "libcxi.so.1.7.0";

const VERSION_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../libcxi.map");

/// What the standard library of Rust needs besides libc, and libc itself.
const SYSTEM: [&str; 3] = ["-lgcc_s", "-lpthread", "-ldl"];

/// The libraries, made in a directory.
#[derive(Clone, Debug)]
pub struct Library {
    directory: PathBuf,
}

impl Library {
    /// Makes `libcxi.so.1.7.0` with its two links, and `libcxi.a`, from what cargo made of
    /// cxi-capi.
    ///
    /// # Errors
    ///
    /// A C compiler or a tool of binutils is missing or fails.
    pub fn make(archive: &Path, directory: &Path) -> Result<Self> {
        let names = names()?;
        let library = Self {
            directory: directory.to_owned(),
        };
        library.link_shared(archive, &names)?;
        library.link_static(archive, &names)?;
        Ok(library)
    }

    /// The shared library.
    #[must_use]
    pub fn shared(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// The archive.
    #[must_use]
    pub fn archive(&self) -> PathBuf {
        self.directory.join("libcxi.a")
    }

    fn link_shared(&self, archive: &Path, names: &[String]) -> Result<()> {
        run(Command::new(compiler())
            .args(["-shared", "-o"])
            .arg(self.shared())
            .args(names.iter().map(|name| format!("-Wl,-u,{name}")))
            .arg(archive)
            .arg(format!("-Wl,--version-script={VERSION_SCRIPT}"))
            .arg(format!("-Wl,-soname,{SONAME}"))
            .args([
                "-Wl,--gc-sections",
                "-Wl,-z,relro,-z,now",
                "-Wl,--as-needed",
            ])
            .arg("-Wl,--no-undefined")
            .arg("-s")
            .args(SYSTEM))?;
        make_links(&self.directory)
    }

    /// One object that has no names but those of the API: what else is in there must not clash
    /// with another library of Rust in the same program.
    fn link_static(&self, archive: &Path, names: &[String]) -> Result<()> {
        let object = self.directory.join("libcxi.o");
        run(Command::new(compiler())
            .args(["-r", "-nostdlib", "-o"])
            .arg(&object)
            .args(names.iter().map(|name| format!("-Wl,-u,{name}")))
            .arg("-Wl,--gc-sections")
            .arg(archive))?;
        let keep = names
            .iter()
            .map(|name| format!("--keep-global-symbol={name}"));
        // What is left of the compiler's own form is none any more once it is linked, and tools
        // that know it stumble over it.
        let remains = [".llvmbc", ".llvmcmd", ".comment"].map(|name| format!("-R{name}"));
        run(Command::new("objcopy")
            .args(keep)
            .args(remains)
            .arg("--strip-debug")
            .arg(&object))?;
        let made = self.archive();
        // `ar` adds to what is there.
        if made.exists() {
            fs::remove_file(&made).map_err(|error| format!("{}: {error}", made.display()))?;
        }
        run(Command::new("ar").arg("crs").arg(&made).arg(&object))?;
        fs::remove_file(&object).map_err(|error| format!("{}: {error}", object.display()))
    }
}

/// What the archive needs besides what a C compiler links anyway, for pkg-config.
pub(crate) fn private_libraries() -> String {
    SYSTEM[1..].join(" ")
}

/// The links that the loader and the linker look for.
pub(crate) fn make_links(directory: &Path) -> Result<()> {
    for (link, target) in [(SONAME, FILE), ("libcxi.so", SONAME)] {
        let link = directory.join(link);
        if fs::symlink_metadata(&link).is_ok() {
            fs::remove_file(&link).map_err(|error| format!("{}: {error}", link.display()))?;
        }
        symlink(target, &link).map_err(|error| format!("{}: {error}", link.display()))?;
    }
    Ok(())
}

/// The names of the API: those that the version script exports.
fn names() -> Result<Vec<String>> {
    let script =
        fs::read_to_string(VERSION_SCRIPT).map_err(|error| format!("{VERSION_SCRIPT}: {error}"))?;
    let names = script
        .lines()
        .filter_map(|line| line.trim().strip_suffix(';'))
        .filter(|name| name.starts_with("cxi"));
    Ok(names.map(str::to_owned).collect())
}
