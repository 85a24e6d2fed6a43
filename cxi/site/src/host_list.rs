//! Lists of nodes as Slurm and Flux write them: `n[1-3,7],login1`.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

/// Far more than the largest machines have: a list from outside must not exhaust memory.
const MOST: usize = 1 << 20;
/// Digits of a number in brackets: no node has more.
const LONGEST_NUMBER: usize = 9;

/// A list of nodes, in order.
///
/// ```
/// use cxi_site::HostList;
///
/// let nodes: HostList = "n[08-10],login1".parse()?;
/// assert_eq!(nodes.names(), ["n08", "n09", "n10", "login1"]);
/// assert_eq!(nodes.position("n09"), Some(1));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostList {
    text: String,
    names: Vec<String>,
    /// The first position of each name: every node looks for itself in the list of every job.
    positions: HashMap<String, usize>,
}

impl HostList {
    fn new(text: String, names: Vec<String>) -> Self {
        let mut positions = HashMap::with_capacity(names.len());
        for (position, name) in names.iter().enumerate() {
            positions.entry(name.clone()).or_insert(position);
        }
        Self { text, names, positions }
    }

    /// All names, in order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The position of a node in the list, from 0.
    #[must_use]
    pub fn position(&self, node: &str) -> Option<usize> {
        self.positions.get(node).copied()
    }

    /// Returns whether a node is in the list.
    #[must_use]
    pub fn contains(&self, node: &str) -> bool {
        self.positions.contains_key(node)
    }

    /// Both lists, this one first.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let text = format!("{},{}", self.text, other.text);
        Self::new(text, [&self.names[..], &other.names].concat())
    }
}

impl FromStr for HostList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!(
                "invalid list of nodes '{text}': {what}: expected a list such as n[1-3,7],login1"
            )
        };
        let too_many = || wrong(&format!("more than {MOST} nodes"));
        let (mut names, mut rest) = (Vec::new(), text);
        loop {
            // One entry: what is before each bracket, with each number inside.
            let mut entry = vec![String::new()];
            loop {
                let end = rest.find(['[', ',', ']']).unwrap_or(rest.len());
                let (before, after) = rest.split_at(end);
                if before.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
                    return Err(wrong("it has a space"));
                }
                for name in &mut entry {
                    name.push_str(before);
                }
                rest = after;
                let Some(inside) = rest.strip_prefix('[') else { break };
                let (inside, after) =
                    inside.split_once(']').ok_or_else(|| wrong("a bracket is not closed"))?;
                let bad = || wrong(&format!("[{inside}]"));
                let ranges: Option<Vec<_>> = inside.split(',').map(numbers).collect();
                let ranges = ranges.ok_or_else(bad)?;
                // Counted first: the list comes from outside.
                let count = ranges.iter().map(|(range, _)| range.len()).sum::<usize>();
                if entry.len().saturating_mul(count) > MOST {
                    return Err(too_many());
                }
                let numbers = ranges.into_iter().flat_map(|(range, width)| {
                    range.map(move |number| format!("{number:0width$}"))
                });
                let numbers: Vec<String> = numbers.collect();
                let product = entry.iter();
                entry = product
                    .flat_map(|name| numbers.iter().map(move |number| format!("{name}{number}")))
                    .collect();
                rest = after;
            }
            if rest.starts_with(']') {
                return Err(wrong("a bracket is not opened"));
            }
            if entry.iter().any(String::is_empty) {
                return Err(wrong("a name is empty"));
            }
            names.append(&mut entry);
            if names.len() > MOST {
                return Err(too_many());
            }
            match rest.strip_prefix(',') {
                Some(after) => rest = after,
                None => return Ok(Self::new(text.to_owned(), names)),
            }
        }
    }
}

/// A number or a range of them, and how many digits they have at least.
fn numbers(range: &str) -> Option<(std::ops::Range<usize>, usize)> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let number = |text: &str| {
        let digits = text.len() <= LONGEST_NUMBER && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<usize>().ok()).flatten()
    };
    let width = if first.starts_with('0') { first.len() } else { 0 };
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some((first..last + 1, width))
}

impl fmt::Display for HostList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The CPUs of the node at a position of Slurm's `SLURM_JOB_CPUS_PER_NODE`, such as `2(x3),1`.
///
/// # Errors
///
/// The list is invalid, or shorter.
pub fn cpus_at(list: &str, position: usize) -> Result<u32, String> {
    let wrong = || format!("invalid CPUs per node '{list}': expected a list such as 2(x3),1");
    let mut first = 0_usize;
    for entry in list.split(',') {
        let (cpus, times) = match entry.split_once("(x") {
            Some((cpus, times)) => (cpus, times.strip_suffix(')').ok_or_else(wrong)?),
            None => (entry, "1"),
        };
        let cpus: u32 = cpus.parse().map_err(|_| wrong())?;
        let times: usize = times.parse().map_err(|_| wrong())?;
        first = first.saturating_add(times);
        if position < first {
            return Ok(cpus);
        }
    }
    Err(format!("CPUs per node '{list}' are for {first} nodes: there is no node {}", position + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_list() {
        for (list, names) in [
            ("n1", "n1"),
            ("n[1-3,7],login1", "n1 n2 n3 n7 login1"),
            ("nid[0098-0101]", "nid0098 nid0099 nid0100 nid0101"),
            ("r[1-2]n[3-4]-ib", "r1n3-ib r1n4-ib r2n3-ib r2n4-ib"),
        ] {
            let list: HostList = list.parse().unwrap();
            assert_eq!(list.names().join(" "), names);
        }
    }

    #[test]
    fn a_name_is_at_its_first_position() {
        for list in [
            "n[1-3,7],login1",
            "n[098-101,1-3]",
            "n[1-11][1-11],n11[1-2]",
            "n[01,1,0-1][1,01]",
            "n1,n[1-2],n1[2-3]x",
        ] {
            let list: HostList = list.parse().unwrap();
            let names = list.names();
            for name in names {
                let first = names.iter().position(|other| other == name);
                assert_eq!(list.position(name), first, "{name} in {list}");
            }
            for absent in ["", "n", "n0", "n001", "n4", "n1x", "n12y", "n1111111111111"] {
                let there = names.iter().any(|name| name == absent);
                assert_eq!(list.contains(absent), there, "{absent} in {list}");
            }
        }
    }

    #[test]
    fn searching_does_not_go_through_the_list() {
        // That would take 10^10 comparisons.
        let large: HostList = "n[1-100000]".parse().unwrap();
        for (position, name) in large.names().iter().enumerate() {
            assert_eq!(large.position(name), Some(position));
        }
        assert!(!large.contains("n0") && !large.contains("n100001") && !large.contains("n01"));
    }

    #[test]
    fn an_invalid_list_is_refused_with_the_reason() {
        for (list, what) in [
            ("", "a name is empty"),
            ("n1,", "a name is empty"),
            ("n[1-2", "a bracket is not closed"),
            ("n1]", "a bracket is not opened"),
            ("n[2-1]", "[2-1]"),
            ("n[a]", "[a]"),
            ("n 1", "it has a space"),
            ("n[0-999999999]", "more than 1048576 nodes"),
        ] {
            let error = list.parse::<HostList>().unwrap_err();
            assert!(error.contains(&format!(": {what}: expected")), "{error}");
        }
    }

    #[test]
    fn cpus_of_one_node() {
        for (position, cpus) in [(0, 2), (2, 2), (3, 1), (4, 16)] {
            assert_eq!(cpus_at("2(x3),1,16", position), Ok(cpus));
        }
        assert!(cpus_at("2(x3),1", 4).unwrap_err().ends_with("there is no node 5"));
        for list in ["", "x", "2(x", "2(x3", "2(3)"] {
            assert!(cpus_at(list, 0).unwrap_err().contains("expected a list such as"), "{list}");
        }
    }
}
