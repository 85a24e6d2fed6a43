//! Bars that show usage.

use std::env;

/// Characters of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Palette {
    used: char,
    reserved: char,
    rest: char,
}

const ASCII: Palette = Palette {
    used: '#',
    reserved: '=',
    rest: '.',
};

const BLOCKS: Palette = Palette {
    used: '█',
    reserved: '▒',
    rest: '░',
};

impl Palette {
    /// Blocks, where the locale has them.
    pub(crate) fn of_locale() -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .filter_map(env::var_os)
            .find(|value| !value.is_empty());
        let utf8 = locale.is_some_and(|value| {
            let value = value.to_string_lossy().to_ascii_lowercase();
            value.contains("utf-8") || value.contains("utf8")
        });
        if utf8 { BLOCKS } else { ASCII }
    }

    /// What the characters mean.
    pub(crate) fn legend(self) -> String {
        let Self {
            used,
            reserved,
            rest,
        } = self;
        format!("{used} in use  {reserved} reserved, not in use  {rest} up to the maximum")
    }

    /// A bar of `width` characters for `max` units. Anything above zero shows as one character at
    /// least, so that a small reservation does not look like none.
    pub(crate) fn bar(self, width: usize, used: u32, reserved: u32, max: u32) -> String {
        if max == 0 {
            return String::new();
        }
        let cells = |amount: u32| {
            let amount = amount.min(max) as usize;
            let cells = amount * width / max as usize;
            if amount > 0 { cells.max(1) } else { 0 }
        };
        let used = cells(used);
        let reserved = cells(reserved).max(used) - used;
        let rest = width - used - reserved;
        let run = |character: char, count: usize| std::iter::repeat_n(character, count);
        run(self.used, used)
            .chain(run(self.reserved, reserved))
            .chain(run(self.rest, rest))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        assert_eq!(ASCII.bar(10, 0, 0, 100), "..........");
        assert_eq!(ASCII.bar(10, 20, 50, 100), "##===.....");
        assert_eq!(ASCII.bar(10, 70, 50, 100), "#######...");
        assert_eq!(ASCII.bar(10, 100, 100, 100), "##########");
    }

    #[test]
    fn little_is_not_nothing() {
        assert_eq!(ASCII.bar(10, 0, 1, 16384), "=.........");
        assert_eq!(ASCII.bar(10, 1, 0, 16384), "#.........");
    }

    #[test]
    fn more_than_the_maximum_stays_within_the_bar() {
        assert_eq!(ASCII.bar(4, 9, 9, 8), "####");
        assert_eq!(ASCII.bar(4, 1, 1, 0), "");
    }
}
