//! Id sets: syntax in and out, set operations against a model, and the place of every error.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use cxi_site::IdSet;
use proptest::prelude::*;

fn set(text: &str) -> IdSet {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn the_debug_form_is_short() {
    let ids: IdSet = "5-7,9".parse().unwrap();
    assert_eq!(format!("{ids:?}"), "IdSet(5-7,9)");
}

#[test]
fn prints_what_it_reads_in_canonical_form() {
    for (input, plain) in [
        ("", ""),
        ("[]", ""),
        ("0", "0"),
        ("[7]", "7"),
        ("1024-65535", "1024-65535"),
        ("5,7,9-12", "5,7,9-12"),
        ("[0-3,8]", "0-3,8"),
        ("3,2,4,5", "2-5"),
        ("4-4", "4"),
        ("63,64,65", "63-65"),
        ("0-65535", "0-65535"),
    ] {
        let set = set(input);
        assert_eq!(set.to_string(), plain, "{input:?}");
    }
}

#[test]
fn errors_name_the_place_and_what_would_be_right() {
    const ID: &str = "an id (a decimal number up to 65535)";
    const MORE: &str = "',', '-' or the end";
    let refused = |input: &str, message: String| {
        let error = input.parse::<IdSet>().expect_err(input);
        assert_eq!(error.to_string(), message, "{input:?}");
    };
    for (input, at, expected, found) in [
        (",1", 0, ID, "','"),
        ("1,", 2, ID, "the end"),
        ("1,,2", 2, ID, "','"),
        ("-5", 0, ID, "'-'"),
        ("+1", 0, ID, "'+'"),
        ("1, 2", 2, ID, "a blank"),
        ("[[1]]", 1, ID, "'['"),
        ("1,ƒ", 2, ID, "'ƒ'"),
        ("1 ", 1, MORE, "a blank"),
        ("0x10", 1, MORE, "'x'"),
        ("1]", 1, MORE, "']'"),
        ("5-7-9", 3, "',' or the end", "'-'"),
        ("[1]]", 3, "the end", "']'"),
        ("[1", 2, "']' because the set starts with '['", "the end"),
    ] {
        refused(input, format!("byte {at}: expected {expected}, found {found}"));
    }
    let last = "the last id of the range that starts with 5";
    refused("5-", format!("byte 2: expected {last}, found the end"));
    for (input, at, problem) in [
        ("012", 0, "starts with 0: write it without leading zeros"),
        ("1-02", 2, "starts with 0: write it without leading zeros"),
        ("1,65536", 2, "is too large: the largest is 65535"),
        ("99999999999999999999", 0, "is too large: the largest is 65535"),
        ("1-8,5", 4, "5 is in the set twice"),
    ] {
        refused(input, format!("byte {at}: id {problem}"));
    }
    let descending = "range runs from 9 down to 7: the smaller id comes first";
    refused("1,9-7", format!("byte 2: {descending}"));
    assert_eq!("7,3-1".parse::<IdSet>().unwrap_err().position(), 2);
}

#[test]
fn gaps_and_ends_of_the_full_set() {
    let full = IdSet::from(0..=u16::MAX);
    assert_eq!(full.len(), 65_536);
    assert!(full.ranges().eq([0..=u16::MAX]));
    assert_eq!(full.last(), Some(65_535));
    assert_eq!(IdSet::new().last(), None);
    assert!(IdSet::new().is_subset(&full));
}

fn hash(set: &IdSet) -> u64 {
    let mut hasher = DefaultHasher::new();
    set.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn sets_are_equal_if_their_ids_are() {
    // However far they once reached.
    let mut shrunk = set("1,65,40000");
    shrunk.remove(40000);
    assert_eq!(shrunk, set("1,65"));
    assert_eq!(hash(&shrunk), hash(&set("1,65")));
    for other in ["1,66", "2,65", "1", "1,65,66", "1,40000"] {
        assert_ne!(shrunk, set(other), "{other}");
        assert_ne!(hash(&shrunk), hash(&set(other)), "{other}");
    }
}

#[test]
fn blocks_start_at_multiples_of_their_size() {
    let ids = set("1,3-5,62-67,100-107,128-255,1024-65535");
    for (from, size, block) in [
        (0, 1, Some(1)),
        (2, 1, Some(3)),
        (0, 2, Some(4)),
        (5, 2, Some(62)),
        (5, 4, Some(64)),
        (65, 4, Some(100)),
        (0, 8, Some(128)),
        (0, 32, Some(128)),
        (0, 64, Some(128)),
        (129, 64, Some(192)),
        (0, 128, Some(128)),
        (129, 128, Some(1024)),
        (0, 512, Some(1024)),
        (0, 2048, Some(2048)),
        (2049, 2048, Some(4096)),
        (0, 32768, Some(32768)),
        (32769, 32768, None),
        (65535, 1, Some(65535)),
        (65535, 2, None),
        (0, 0, None),
        (0, 3, None),
    ] {
        assert_eq!(ids.next_block_from(from, size), block, "{size} from {from}");
    }
}

fn model() -> impl Strategy<Value = BTreeSet<u16>> {
    // Dense at the ends, where runs of ids touch, merge and split most often.
    let id = prop_oneof![0..200_u16, 65_400..=u16::MAX, any::<u16>()];
    proptest::collection::btree_set(id, 0..120)
}

fn set_of(model: &BTreeSet<u16>) -> IdSet {
    model.iter().copied().collect()
}

proptest! {
    #[test]
    fn text_round_trip(ids in model()) {
        let set = set_of(&ids);
        prop_assert_eq!(&set.to_string().parse::<IdSet>().unwrap(), &set);
        prop_assert_eq!(&format!("[{set}]").parse::<IdSet>().unwrap(), &set);
        prop_assert_eq!(set.len(), ids.len());
        prop_assert!(set.iter().eq(ids.iter().copied()));
    }

    #[test]
    fn operations_agree_with_a_plain_set(a in model(), b in model()) {
        let (x, y) = (set_of(&a), set_of(&b));
        prop_assert_eq!(x.union(&y), set_of(&a.union(&b).copied().collect()));
        prop_assert_eq!(x.intersection(&y), set_of(&a.intersection(&b).copied().collect()));
        prop_assert_eq!(x.difference(&y), set_of(&a.difference(&b).copied().collect()));
        prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
        prop_assert_eq!(x.first(), a.first().copied());
        prop_assert_eq!(x.last(), a.last().copied());
    }

    #[test]
    fn ranges_and_searches_agree_with_a_plain_set(ids in model(), low: u16, length in 0..1000_u16) {
        let high = low.saturating_add(length);
        let mut ids = ids;
        let mut set = set_of(&ids);
        prop_assert_eq!(set.next_from(low), ids.range(low..).next().copied());
        set.insert_range(low..=high);
        ids.extend(low..=high);
        prop_assert_eq!(&set, &set_of(&ids));
        let ranges: Vec<_> = set.ranges().collect();
        prop_assert!(ranges.iter().cloned().flatten().eq(ids));
        prop_assert!(ranges.is_sorted_by(|a, b| *a.end() + 1 < *b.start()));
    }

    #[test]
    fn blocks_agree_with_a_plain_set(
        runs in proptest::collection::vec((0..1024_u16, 1..400_u16), 0..6),
        low in 0..1200_u16,
        power in 0..10_u32,
    ) {
        let mut ids = IdSet::new();
        for (first, length) in runs {
            ids.insert_range(first..=first + length);
        }
        let size = 1 << power;
        let starts = (0..=u16::MAX).step_by(size.into()).skip_while(|start| *start < low);
        let block = starts
            .take_while(|start| *start < 2048)
            .find(|start| (*start..*start + size).all(|id| ids.contains(id)));
        prop_assert_eq!(ids.next_block_from(low, size), block);
    }

    #[test]
    fn single_changes_agree_with_a_plain_set(changes in proptest::collection::vec((any::<bool>(), 0..300_u16), 0..200)) {
        let (mut set, mut plain) = (IdSet::new(), BTreeSet::new());
        for (insert, id) in changes {
            if insert {
                prop_assert_eq!(set.insert(id), plain.insert(id));
            } else {
                prop_assert_eq!(set.remove(id), plain.remove(&id));
            }
            prop_assert_eq!(set.len(), plain.len());
        }
        prop_assert_eq!(set, set_of(&plain));
    }

    #[test]
    fn no_text_panics(text in "[\\[\\]0-9,ƒ -]{0,12}") {
        if let Err(error) = text.parse::<IdSet>() {
            prop_assert!(error.position() <= text.len());
        }
    }
}
