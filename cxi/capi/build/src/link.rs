//! Turns an archive of Rust code into libraries for C.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tool::{Result, compiler, run};

/// The soname, the same in all releases.
pub const SONAME: &str = "libcxi.so.1";

/// A library to build.
#[derive(Debug)]
pub struct Product {
    /// Its name, such as `cxi` for `-lcxi` and `libcxi.pc`.
    pub name: &'static str,
    /// The soname, by which programs ask the loader for it.
    pub soname: &'static str,
    /// The package whose archive is linked.
    pub package: &'static str,
    /// The directory of that package, relative to the parent of this one; it has the version script.
    pub(crate) directory: &'static str,
    pub(crate) file: &'static str,
    pub(crate) description: &'static str,
    /// The version that pkg-config reports.
    pub(crate) version: &'static str,
}

/// HPE's library. File and version are those of the development branch.
pub const LIBCXI: Product = Product {
    name: "cxi",
    soname: SONAME,
    package: "cxi-capi",
    directory: "capi",
    file: "libcxi.so.1.7.0",
    description: "User space CXI interface library",
    version: "1.9.0",
};

/// The scheduler layer.
pub const LIBCXI_JOB: Product = Product {
    name: "cxi_job",
    soname: "libcxi_job.so.0",
    package: "cxi-job-capi",
    directory: "job-capi",
    file: concat!("libcxi_job.so.", env!("CARGO_PKG_VERSION")),
    description: "Services of jobs on Slingshot NICs",
    version: env!("CARGO_PKG_VERSION"),
};

impl Product {
    /// The archive that cargo builds, such as `libcxi_capi.a`.
    #[must_use]
    pub fn cargo_archive(&self) -> String {
        format!("lib{}.a", self.package.replace('-', "_"))
    }

    fn version_script(&self) -> String {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        format!("{root}/{}/lib{}.map", self.directory, self.name)
    }

    /// The names of the API: those that the version script exports.
    ///
    /// # Errors
    ///
    /// The version script cannot be read.
    pub fn names(&self) -> Result<Vec<String>> {
        let path = self.version_script();
        let script = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let names = script
            .lines()
            .filter_map(|line| line.trim().strip_suffix(';'))
            .filter(|name| name.starts_with("cxi"));
        Ok(names.map(str::to_owned).collect())
    }
}

/// The libraries that Rust's standard library needs in addition to libc.
const SYSTEM: [&str; 3] = ["-lgcc_s", "-lpthread", "-ldl"];

/// Libraries that were built in a directory.
#[derive(Clone, Debug)]
pub struct Library {
    product: &'static Product,
    directory: PathBuf,
}

impl Library {
    /// Builds the shared library, its two links and the static library from the archive that cargo built.
    ///
    /// # Errors
    ///
    /// A C compiler or a tool of binutils is missing or fails.
    pub fn make(product: &'static Product, archive: &Path, directory: &Path) -> Result<Self> {
        let library = Self::make_shared(product, archive, directory)?;
        library.link_static(archive, &product.names()?)?;
        Ok(library)
    }

    /// Builds the shared library and its two links alone.
    ///
    /// # Errors
    ///
    /// A C compiler is missing or fails.
    pub fn make_shared(
        product: &'static Product,
        archive: &Path,
        directory: &Path,
    ) -> Result<Self> {
        let library = Self { product, directory: directory.to_owned() };
        library.link_shared(archive, &product.names()?)?;
        Ok(library)
    }

    /// Returns the library that is linked.
    pub(crate) fn product(&self) -> &'static Product {
        self.product
    }

    /// The shared library.
    #[must_use]
    pub fn shared(&self) -> PathBuf {
        self.directory.join(self.product.file)
    }

    /// The archive.
    #[must_use]
    pub fn archive(&self) -> PathBuf {
        self.directory.join(format!("lib{}.a", self.product.name))
    }

    fn link_shared(&self, archive: &Path, names: &[String]) -> Result<()> {
        run(Command::new(compiler())
            .args(["-shared", "-o"])
            .arg(self.shared())
            .args(names.iter().map(|name| format!("-Wl,-u,{name}")))
            .arg(archive)
            .arg(format!("-Wl,--version-script={}", self.product.version_script()))
            .arg(format!("-Wl,-soname,{}", self.product.soname))
            .args(["-Wl,--gc-sections", "-Wl,-z,relro,-z,now", "-Wl,--as-needed"])
            .arg("-Wl,--no-undefined")
            .arg("-s")
            .args(SYSTEM))?;
        make_links(self.product, &self.directory)
    }

    /// One object file that exports only the names of the API, so that nothing in it clashes with
    /// another Rust library in the same program.
    fn link_static(&self, archive: &Path, names: &[String]) -> Result<()> {
        let object = self.directory.join(format!("lib{}.o", self.product.name));
        run(Command::new(compiler())
            .args(["-r", "-nostdlib", "-o"])
            .arg(&object)
            .args(names.iter().map(|name| format!("-Wl,-u,{name}")))
            .arg("-Wl,--gc-sections")
            .arg(archive))?;
        let keep = names.iter().map(|name| format!("--keep-global-symbol={name}"));
        // Remove LLVM bitcode: it is no longer valid after linking, and tools that read it would fail.
        let remains = [".llvmbc", ".llvmcmd", ".comment"].map(|name| format!("-R{name}"));
        run(Command::new("objcopy").args(keep).args(remains).arg("--strip-debug").arg(&object))?;
        let made = self.archive();
        // `ar` would add to an existing archive.
        if made.exists() {
            fs::remove_file(&made).map_err(|error| format!("{}: {error}", made.display()))?;
        }
        run(Command::new("ar").arg("crs").arg(&made).arg(&object))?;
        fs::remove_file(&object).map_err(|error| format!("{}: {error}", object.display()))
    }
}

/// The libraries that the static library needs in addition to those that a C compiler links by
/// default, for pkg-config.
pub(crate) fn private_libraries() -> String {
    SYSTEM[1..].join(" ")
}

/// The links that the loader and the linker look for.
pub(crate) fn make_links(product: &Product, directory: &Path) -> Result<()> {
    let plain = format!("lib{}.so", product.name);
    for (link, target) in [(product.soname, product.file), (plain.as_str(), product.soname)] {
        let link = directory.join(link);
        if fs::symlink_metadata(&link).is_ok() {
            fs::remove_file(&link).map_err(|error| format!("{}: {error}", link.display()))?;
        }
        symlink(target, &link).map_err(|error| format!("{}: {error}", link.display()))?;
    }
    Ok(())
}
