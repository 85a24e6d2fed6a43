//! Headers for C and C++.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::install::at;
use crate::link::{LIBCXI, Product};
use crate::tool::Result;

/// The first lines of our headers.
const OURS: &str = "cxi-capi";

const HPES: &str = include_str!("../../include/libcxi/libcxi.h");
const JOB: &str = include_str!("../../../job-capi/include/cxi_job.h");
const OWN: &str = include_str!("../../include/libcxi/cxi_rs.h");

/// Numbers and names of the counters, one per line.
const COUNTERS: &str = include_str!("../../src/counters.txt");

/// From this number on, the names are those of Cassini 1; Cassini 2 has other counters there.
const FIRST_OF_CASSINI_1: u32 = 1664;

/// Writes the headers of a library to a directory for `-I`, those of libcxi to `libcxi` below it.
/// Returns the files that were written. An existing header from HPE is kept, because it has
/// more.
///
/// # Errors
///
/// A file cannot be written.
pub fn write_headers(product: &Product, include: &Path) -> Result<Vec<PathBuf>> {
    if product.name != LIBCXI.name {
        let path = include.join("cxi_job.h");
        fs::create_dir_all(include).map_err(|error| at(include, &error))?;
        fs::write(&path, JOB).map_err(|error| at(&path, &error))?;
        return Ok(vec![path]);
    }
    let directory = include.join("libcxi");
    fs::create_dir_all(&directory).map_err(|error| at(&directory, &error))?;
    let counters = counters();
    let mut written = Vec::new();
    for (name, text) in [("libcxi.h", HPES), ("cxi_rs.h", OWN), ("cxi_counters.h", &counters)] {
        let path = directory.join(name);
        let there = fs::read_to_string(&path);
        if there.is_ok_and(|text| !text.contains(OURS)) {
            continue;
        }
        fs::write(&path, text).map_err(|error| at(&path, &error))?;
        written.push(path);
    }
    Ok(written)
}

/// The header with the numbers of the counters.
fn counters() -> String {
    let mut text = String::from(
        "/* SPDX-License-Identifier: MIT OR Apache-2.0\n *\n * Counters of Cassini 1. Written by \
         the build of cxi-capi.\n */\n#ifndef CXI_COUNTERS_H\n#define CXI_COUNTERS_H\n\n\
         enum c_cntr_type {\n",
    );
    let counters = COUNTERS.lines().filter_map(|line| line.split_once(' '));
    for (number, name) in counters {
        let own = number.parse().is_ok_and(|number: u32| number >= FIRST_OF_CASSINI_1);
        let prefix = if own { "C1" } else { "C" };
        // Writing to a string does not fail.
        let _ = writeln!(text, "\t{prefix}_CNTR_{} = {number},", name.to_uppercase());
    }
    text.push_str("};\n\n#endif\n");
    text
}
