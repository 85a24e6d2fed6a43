//! Installation of the libraries.

use std::fs;
use std::path::{Path, PathBuf};

use crate::headers::write_headers;
use crate::link::{Library, Product, make_links, private_libraries};
use crate::tool::Result;

/// Directories of an installation.
#[derive(Clone, Debug)]
pub struct Places {
    /// Prepended to all paths, for building packages: `DESTDIR`.
    pub destdir: PathBuf,
    /// Directory in which the installation is used, such as `/usr/local`.
    pub prefix: PathBuf,
    /// Directory for libraries: `lib` or `lib64` below the prefix, or an absolute path.
    pub libdir: PathBuf,
}

impl Places {
    fn installed(&self, below: &Path) -> Result<PathBuf> {
        let place = self.prefix.join(below);
        let relative = place
            .strip_prefix("/")
            .map_err(|_| format!("{}: expected an absolute prefix", self.prefix.display()))?;
        let directory = if self.destdir.as_os_str().is_empty() {
            place.clone()
        } else {
            self.destdir.join(relative)
        };
        fs::create_dir_all(&directory).map_err(|error| at(&directory, &error))?;
        Ok(directory)
    }
}

/// Installs a library with its pkg-config file and its headers. Returns the files. An existing header
/// from HPE is kept, because it has more.
///
/// # Errors
///
/// A file cannot be written.
pub fn install(library: &Library, places: &Places) -> Result<Vec<PathBuf>> {
    let libraries = places.installed(&places.libdir)?;
    let mut installed = Vec::new();
    for file in [library.shared(), library.archive()] {
        let name = file.file_name().ok_or("a library without a name")?;
        installed.push(copy(&file, &libraries.join(name))?);
    }
    make_links(library.product(), &libraries)?;
    let pc = places
        .installed(&places.libdir.join("pkgconfig"))?
        .join(format!("lib{}.pc", library.product().name));
    fs::write(&pc, pkg_config(library.product(), places)).map_err(|error| at(&pc, &error))?;
    installed.push(pc);

    let headers = places.installed(Path::new("include"))?;
    installed.extend(write_headers(library.product(), &headers)?);
    Ok(installed)
}

fn copy(from: &Path, to: &Path) -> Result<PathBuf> {
    // Do not write to an existing library: programs may have it mapped. Replace it instead.
    if fs::symlink_metadata(to).is_ok() {
        fs::remove_file(to).map_err(|error| at(to, &error))?;
    }
    fs::copy(from, to).map_err(|error| at(to, &error))?;
    Ok(to.to_owned())
}

fn pkg_config(product: &Product, places: &Places) -> String {
    // Joining replaces the prefix if the directory is absolute.
    let libdir = Path::new("${exec_prefix}").join(&places.libdir);
    format!(
        "prefix={prefix}\nexec_prefix=${{prefix}}\nlibdir={libdir}\n\
         includedir=${{prefix}}/include\n\n\
         Name: lib{name}\nDescription: {description}\nVersion: {version}\n\
         Cflags: -I${{includedir}}\nLibs: -L${{libdir}} -l{name}\nLibs.private: {private}\n",
        name = product.name,
        description = product.description,
        version = product.version,
        prefix = places.prefix.display(),
        libdir = libdir.display(),
        private = private_libraries(),
    )
}

pub(crate) fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
