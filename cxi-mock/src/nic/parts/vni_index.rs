//! Numbers by VNI.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// VNIs whose numbers are side by side.
const PAGE: usize = 64;

/// Numbers by VNI, any number of them each. Adding and removing takes the same time however many
/// VNIs have one.
#[derive(Clone, Debug, Default)]
pub(crate) struct VniIndex {
    pages: Vec<Option<Box<Page>>>,
}

#[derive(Clone, Debug)]
struct Page {
    /// VNIs that have a number.
    used: usize,
    vnis: [Numbers; PAGE],
}

/// The numbers of a VNI: one in almost all cases.
#[derive(Clone, Debug, Default)]
enum Numbers {
    #[default]
    None,
    One(u32),
    Many(BTreeSet<u32>),
}

impl Numbers {
    fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

fn place(vni: u16) -> (usize, usize) {
    (usize::from(vni) / PAGE, usize::from(vni) % PAGE)
}

impl VniIndex {
    pub(crate) fn insert(&mut self, vni: u16, number: u32) {
        let (page, index) = place(vni);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| {
            Box::new(Page {
                used: 0,
                vnis: [const { Numbers::None }; PAGE],
            })
        });
        let numbers = &mut page.vnis[index];
        match numbers {
            Numbers::None => {
                *numbers = Numbers::One(number);
                page.used += 1;
            }
            Numbers::One(one) => {
                let both = BTreeSet::from([*one, number]);
                *numbers = Numbers::Many(both);
            }
            Numbers::Many(many) => {
                many.insert(number);
            }
        }
    }

    pub(crate) fn remove(&mut self, vni: u16, number: u32) {
        let (page, index) = place(vni);
        let Some(Some(page)) = self.pages.get_mut(page) else {
            return;
        };
        let numbers = &mut page.vnis[index];
        let last = match numbers {
            Numbers::None => false,
            Numbers::One(one) => *one == number,
            Numbers::Many(many) => many.remove(&number) && many.is_empty(),
        };
        if last {
            *numbers = Numbers::None;
            page.used -= 1;
        }
    }

    /// The numbers of a VNI, ascending.
    pub(crate) fn numbers(&self, vni: u16) -> impl Iterator<Item = u32> {
        let (page, index) = place(vni);
        let page = self.pages.get(page).and_then(Option::as_deref);
        let (one, many) = match page.map(|page| &page.vnis[index]) {
            None | Some(Numbers::None) => (None, None),
            Some(Numbers::One(one)) => (Some(*one), None),
            Some(Numbers::Many(many)) => (None, Some(many)),
        };
        one.into_iter().chain(many.into_iter().flatten().copied())
    }

    /// Whether a VNI of the range has a number.
    pub(crate) fn any_in(&self, range: RangeInclusive<u16>) -> bool {
        let ((first_page, first), (last_page, last)) = (place(*range.start()), place(*range.end()));
        let pages = self.pages.iter().enumerate().skip(first_page);
        pages
            .take_while(|(number, _)| *number <= last_page)
            .filter_map(|(number, page)| Some((number, page.as_ref()?)))
            .filter(|(_, page)| page.used > 0)
            .any(|(number, page)| {
                let from = if number == first_page { first } else { 0 };
                let to = if number == last_page { last } else { PAGE - 1 };
                page.vnis[from..=to].iter().any(|vni| !vni.is_none())
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(index: &VniIndex, vni: u16) -> Vec<u32> {
        index.numbers(vni).collect()
    }

    #[test]
    fn a_vni_has_any_number_of_numbers() {
        let mut index = VniIndex::default();
        for number in [7, 3, 5, 3] {
            index.insert(70, number);
        }
        index.insert(71, 3);
        assert_eq!(numbers(&index, 70), [3, 5, 7]);
        assert_eq!(numbers(&index, 71), [3]);
        assert!(numbers(&index, 6).is_empty());
        assert!(numbers(&index, u16::MAX).is_empty());
        for number in [3, 9, 7, 5, 5] {
            index.remove(70, number);
        }
        index.remove(71, 4);
        assert!(numbers(&index, 70).is_empty());
        assert_eq!(numbers(&index, 71), [3]);
        index.remove(9999, 1);
        index.insert(70, 1);
        index.insert(70, 1);
        assert_eq!(numbers(&index, 70), [1]);
    }

    #[test]
    fn ranges_see_their_vnis_and_no_others() {
        let mut index = VniIndex::default();
        for vni in [1, 63, 64, 200, u16::MAX] {
            index.insert(vni, 1);
        }
        for (range, any) in [
            (1..=1, true),
            (2..=62, false),
            (2..=63, true),
            (64..=64, true),
            (65..=199, false),
            (65..=200, true),
            (128..=65_534, true),
            (201..=65_534, false),
            (201..=u16::MAX, true),
        ] {
            assert_eq!(index.any_in(range.clone()), any, "{range:?}");
        }
        index.remove(200, 1);
        assert!(!index.any_in(65..=65_534));
    }
}
