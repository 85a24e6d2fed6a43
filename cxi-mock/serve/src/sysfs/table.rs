//! Compares the table of files in `docs/SYSFS.md` with what is served.

use std::collections::BTreeSet;
use std::sync::Arc;

use cxi_ioctl::DriverRelease;
use cxi_mock::{Card, Nic, NicConfig};

use super::super::topology::Machine;
use super::super::tree::{Item, Tree};
use super::{address_of, describe};

const PAGE: &str = include_str!("../../../../docs/SYSFS.md");

/// The patterns of the table, each with the release that its row names.
fn rows() -> Vec<(&'static str, &'static str)> {
    let mut rows = Vec::new();
    for line in PAGE.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [files, _, from, _] = cells[..] else { continue };
        rows.extend(files.split_whitespace().map(|file| (file.trim_matches('`'), from)));
    }
    rows
}

/// Returns whether a path is one of a pattern, in which `*` is a part of a name.
fn is_of(path: &str, pattern: &str) -> bool {
    let mut names = path.split('/');
    let mut patterns = pattern.split('/');
    loop {
        match (names.next(), patterns.next()) {
            (None, None) => return true,
            (Some(name), Some(pattern)) => match pattern.split_once('*') {
                Some((start, end)) if name.starts_with(start) && name.ends_with(end) => {}
                None if name == pattern => {}
                _ => return false,
            },
            _ => return false,
        }
    }
}

fn trees(release: DriverRelease) -> Vec<Tree> {
    let machine = Machine::read(None);
    let profiles = 1..=3;
    let mut trees = Vec::new();
    for (card, profile) in
        Card::ALL.into_iter().flat_map(|card| profiles.clone().map(move |p| (card, p)))
    {
        let config = NicConfig::new()
            .release(release)
            .card(card)
            .virtual_functions(1)
            .parameters(|params| params.active_qos_profile = profile);
        // The mock's model has only the first two profiles.
        let Ok(nic) = Nic::new(config) else { continue };
        for function in [None, Some(0)] {
            let place = (function, address_of(&nic, function));
            let nothing = Arc::default();
            trees.push(describe(&nic, (0, 0), place, &machine.locality(0), &nothing));
        }
    }
    trees
}

/// The files and links of trees, and directories without any.
fn leaves(trees: &[Tree]) -> BTreeSet<String> {
    let mut leaves = BTreeSet::new();
    for tree in trees {
        let all: Vec<_> = tree.all().map(|(path, _)| path).collect();
        for (path, item) in tree.all() {
            let has_entries = all
                .iter()
                .any(|other| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')));
            let is_leaf = !matches!(item, Item::Directory) || !has_entries;
            if is_leaf && !path.is_empty() {
                leaves.insert(path.to_owned());
            }
        }
    }
    leaves
}

#[test]
fn every_file_is_in_the_table_and_the_table_has_no_other() {
    let rows = rows();
    assert!(rows.len() > 100, "{rows:?}");
    for release in DriverRelease::ALL {
        let leaves = leaves(&trees(release));
        for path in &leaves {
            assert!(rows.iter().any(|(pattern, _)| is_of(path, pattern)), "{release}: {path}");
        }
        for (pattern, from) in &rows {
            let since = from.parse::<DriverRelease>();
            let expected = since.map_or(true, |since: DriverRelease| release >= since);
            // No profile that the mock has contains this class.
            let is_there = leaves.iter().any(|path| is_of(path, pattern))
                || *pattern == "traffic_classes/ethernet/ethernet2";
            assert_eq!(is_there, expected, "{release}: {pattern}");
        }
    }
}
