//! Names of the counters of Cassini 1, by number.

/// A number and a name on each line, in ascending order.
const TABLE: &str = include_str!("counters.txt");

/// How many numbers there are.
pub(crate) const COUNT: usize = 2528;

/// How many numbers have a name.
pub(crate) const NAMED: usize = {
    let (text, mut lines, mut at) = (TABLE.as_bytes(), 0, 0);
    while at < text.len() {
        lines += (text[at] == b'\n') as usize;
        at += 1;
    }
    lines
};

/// Start and length of each name in the table.
const PLACES: [(u16, u8); COUNT] = {
    let text = TABLE.as_bytes();
    let mut places = [(0, 0); COUNT];
    let mut at = 0;
    while at < text.len() {
        let mut number = 0;
        while text[at] != b' ' {
            number = number * 10 + (text[at] - b'0') as usize;
            at += 1;
        }
        let start = at + 1;
        while text[at] != b'\n' {
            at += 1;
        }
        places[number] = (start as u16, (at - start) as u8);
        at += 1;
    }
    places
};

const _: () = assert!(TABLE.len() <= u16::MAX as usize);

/// The name of the file with the counter of that number.
pub(crate) fn name(number: u32) -> Option<&'static str> {
    static NAMES: [(u16, u8); COUNT] = PLACES;
    let (start, len) = *NAMES.get(number as usize)?;
    let start = usize::from(start);
    TABLE
        .get(start..start + usize::from(len))
        .filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_found_by_its_number() {
        let lines: Vec<_> = TABLE
            .lines()
            .map(|line| line.split_once(' ').unwrap())
            .collect();
        assert_eq!(lines.len(), NAMED);
        for (number, text) in lines {
            assert_eq!(name(number.parse().unwrap()), Some(text));
        }
        let named = (0..4000).filter(|number| name(*number).is_some()).count();
        assert_eq!(named, NAMED);
        assert_eq!(name(u32::MAX), None);
    }
}
