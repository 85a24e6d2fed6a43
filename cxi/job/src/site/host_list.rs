//! Lists of nodes as Slurm and Flux write them: `n[1-3,7],login1`.

use std::fmt;
use std::str::FromStr;

/// Far more than the largest machines have: a list from outside must not exhaust memory.
const MOST: usize = 1 << 20;
/// Digits of a number in brackets: all such numbers are a `u32`.
const LONGEST_NUMBER: usize = 9;

/// A list of nodes, in order.
///
/// ```
/// use cxi_job::site::HostList;
///
/// let nodes: HostList = "n[08-10],login1".parse()?;
/// assert_eq!(nodes.names(), ["n08", "n09", "n10", "login1"]);
/// assert_eq!(nodes.position("n09"), Some(1));
/// # Ok::<_, String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostList {
    text: String,
    patterns: Vec<Vec<Part>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Numbers(Vec<Numbers>),
}

/// `first` to `last`, with at least `width` digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    first: u32,
    last: u32,
    width: usize,
}

impl Numbers {
    const fn count(&self) -> usize {
        (self.last - self.first) as usize + 1
    }
}

impl HostList {
    /// All names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.patterns
            .iter()
            .flat_map(|parts| expand(parts))
            .collect()
    }

    /// The position of a node in the list, from 0.
    #[must_use]
    pub fn position(&self, node: &str) -> Option<usize> {
        let mut before = 0;
        self.patterns.iter().find_map(|parts| {
            let place = place_in(parts, node).map(|place| before + place);
            before += count(parts);
            place
        })
    }

    /// Whether a node is in the list.
    #[must_use]
    pub fn contains(&self, node: &str) -> bool {
        self.position(node).is_some()
    }

    /// Both lists.
    pub(super) fn and(&self, other: &Self) -> Self {
        Self {
            text: format!("{},{}", self.text, other.text),
            patterns: [&self.patterns[..], &other.patterns].concat(),
        }
    }
}

fn expand(parts: &[Part]) -> Vec<String> {
    parts
        .iter()
        .fold(vec![String::new()], |names, part| match part {
            Part::Text(text) => names.into_iter().map(|name| name + text).collect(),
            Part::Numbers(ranges) => {
                let of_name = |name: String| {
                    let numbers = ranges.iter().flat_map(|range| {
                        let width = range.width;
                        (range.first..=range.last).map(move |number| format!("{number:0width$}"))
                    });
                    numbers
                        .map(move |number| format!("{name}{number}"))
                        .collect::<Vec<_>>()
                };
                names.into_iter().flat_map(of_name).collect()
            }
        })
}

/// The first position of a name among those of a pattern.
fn place_in(parts: &[Part], name: &str) -> Option<usize> {
    let Some((part, rest)) = parts.split_first() else {
        return name.is_empty().then_some(0);
    };
    match part {
        Part::Text(text) => place_in(rest, name.strip_prefix(text.as_str())?),
        Part::Numbers(ranges) => {
            // The number ends anywhere in the digits where another number follows: n[1-11][1-11].
            let digits = name.bytes().take_while(u8::is_ascii_digit).count();
            let places = (1..=digits.min(LONGEST_NUMBER)).filter_map(|length| {
                let (number, behind) = name.split_at(length);
                Some(place_of(number, ranges)? * count(rest) + place_in(rest, behind)?)
            });
            places.min()
        }
    }
}

/// The first position of a number among those of ranges.
fn place_of(number: &str, ranges: &[Numbers]) -> Option<usize> {
    let value = number.parse().ok()?;
    let mut before = 0;
    ranges.iter().find_map(|range| {
        let width = range.width;
        let is_here =
            (range.first..=range.last).contains(&value) && format!("{value:0width$}") == number;
        let place = is_here.then(|| before + (value - range.first) as usize);
        before += range.count();
        place
    })
}

fn count(parts: &[Part]) -> usize {
    parts.iter().fold(1, |product: usize, part| match part {
        Part::Text(_) => product,
        Part::Numbers(ranges) => product.saturating_mul(ranges.iter().map(Numbers::count).sum()),
    })
}

impl FromStr for HostList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!(
                "invalid list of nodes '{text}': {what}: expected a list such as n[1-3,7],login1"
            )
        };
        let (mut patterns, mut parts, mut name) = (Vec::new(), Vec::new(), String::new());
        let mut rest = text.chars();
        while let Some(letter) = rest.next() {
            match letter {
                '[' => {
                    if !name.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut name)));
                    }
                    let (inside, after) = rest
                        .as_str()
                        .split_once(']')
                        .ok_or_else(|| wrong("a bracket is not closed"))?;
                    let ranges: Option<Vec<_>> = inside.split(',').map(numbers).collect();
                    let ranges = ranges.ok_or_else(|| wrong(&format!("[{inside}]")))?;
                    parts.push(Part::Numbers(ranges));
                    rest = after.chars();
                }
                ',' => end_of_name(&mut patterns, &mut parts, &mut name).map_err(wrong)?,
                ']' => return Err(wrong("a bracket is not opened")),
                letter if letter.is_whitespace() || letter.is_control() => {
                    return Err(wrong("it has a space"));
                }
                letter => name.push(letter),
            }
        }
        end_of_name(&mut patterns, &mut parts, &mut name).map_err(wrong)?;
        let nodes = patterns
            .iter()
            .map(|parts| count(parts))
            .fold(0, usize::saturating_add);
        if nodes > MOST {
            return Err(wrong(&format!("more than {MOST} nodes")));
        }
        let text = text.to_owned();
        Ok(Self { text, patterns })
    }
}

fn end_of_name(
    patterns: &mut Vec<Vec<Part>>,
    parts: &mut Vec<Part>,
    name: &mut String,
) -> Result<(), &'static str> {
    if !name.is_empty() {
        parts.push(Part::Text(std::mem::take(name)));
    }
    if parts.is_empty() {
        return Err("a name is empty");
    }
    patterns.push(std::mem::take(parts));
    Ok(())
}

fn numbers(range: &str) -> Option<Numbers> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let number = |text: &str| {
        let digits = text.len() <= LONGEST_NUMBER && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u32>().ok()).flatten()
    };
    let width = if first.starts_with('0') {
        first.len()
    } else {
        0
    };
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some(Numbers { first, last, width })
}

impl fmt::Display for HostList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl serde::Serialize for HostList {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> serde::Deserialize<'de> for HostList {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
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
    Err(format!(
        "CPUs per node '{list}' are for {first} nodes: there is no node {}",
        position + 1
    ))
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
            for name in &names {
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
    fn searching_does_not_expand_the_list() {
        // Expanding for each search would make 10^10 names.
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
        assert!(
            cpus_at("2(x3),1", 4)
                .unwrap_err()
                .ends_with("there is no node 5")
        );
        for list in ["", "x", "2(x", "2(x3", "2(3)"] {
            assert!(
                cpus_at(list, 0)
                    .unwrap_err()
                    .contains("expected a list such as"),
                "{list}"
            );
        }
    }
}
