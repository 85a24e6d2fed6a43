//! Names of the counters of Cassini 1, by number.

use std::sync::LazyLock;

/// A number and a name on each line, in ascending order.
const TABLE: &str = include_str!("counters.txt");

/// Number of counters.
pub(crate) const COUNT: usize = 2528;

/// The name of each number.
static NAMES: LazyLock<[Option<&str>; COUNT]> = LazyLock::new(|| {
    let mut names = [None; COUNT];
    for (number, name) in TABLE.lines().filter_map(|line| line.split_once(' ')) {
        if let Some(place) = number.parse().ok().and_then(|at: usize| names.get_mut(at)) {
            *place = Some(name);
        }
    }
    names
});

/// Returns the number of counters that have a name.
pub(crate) fn named() -> usize {
    NAMES.iter().flatten().count()
}

/// The name of the file with the counter of that number.
pub(crate) fn name(number: u32) -> Option<&'static str> {
    *NAMES.get(number as usize)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_found_by_its_number() {
        let lines: Vec<_> = TABLE.lines().map(|line| line.split_once(' ').unwrap()).collect();
        assert_eq!(lines.len(), named());
        for (number, text) in lines {
            assert_eq!(name(number.parse().unwrap()), Some(text));
        }
        let found = (0..4000).filter(|number| name(*number).is_some()).count();
        assert_eq!(found, named());
        assert_eq!(name(u32::MAX), None);
    }
}
