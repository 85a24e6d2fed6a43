//! Differences that a command would make in a file, as `diff -u` shows it.

use std::path::Path;

/// Number of lines to show around a difference.
const AROUND: usize = 3;

/// The differences between two texts, as one piece. The earlier text is `None` for a new file.
pub(super) fn unified(path: &Path, before: Option<&str>, after: &str) -> String {
    let old: Vec<&str> = before.unwrap_or_default().lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
        pairs.take_while(|(old, new)| old == new).count()
    };
    let first = same(&mut old.iter().zip(&new));
    let last = same(&mut old[first..].iter().rev().zip(new[first..].iter().rev()));
    let (start, after_it) = (first.saturating_sub(AROUND), last.min(AROUND));
    let (old_end, new_end) = (old.len() - last, new.len() - last);
    let path = path.display();
    let from = if before.is_some() { path.to_string() } else { "/dev/null".to_owned() };
    let range = |lines: &[&str], end: usize| {
        let count = end + after_it - start;
        // As diff has it: a file without lines ends before its first one.
        let line = if lines.is_empty() { 0 } else { start + 1 };
        format!("{line},{count}")
    };
    let mut text = format!(
        "--- {from}\n+++ {path}\n@@ -{} +{} @@\n",
        range(&old, old_end),
        range(&new, new_end)
    );
    let mut add = |sign: char, lines: &[&str]| {
        for line in lines {
            // A file that somebody has edited may have anything in it.
            text.extend([sign]);
            text.extend(line.chars().map(|c| if c.is_control() && c != '\t' { '?' } else { c }));
            text.push('\n');
        }
    };
    add(' ', &old[start..first]);
    add('-', &old[first..old_end]);
    add('+', &new[first..new_end]);
    add(' ', &old[old_end..old_end + after_it]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_with_what_is_around_it() {
        let path = Path::new("/a");
        let new = unified(path, None, "x\ny\n");
        assert_eq!(new, "--- /dev/null\n+++ /a\n@@ -0,0 +1,2 @@\n+x\n+y\n");
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let changed = unified(path, Some(before), &before.replace('5', "five\nand a half"));
        assert_eq!(
            changed,
            "--- /a\n+++ /a\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+and a half\n 6\n 7\n 8\n"
        );
        let repeated = unified(path, Some("a\na\n"), "a\na\na\n");
        assert_eq!(repeated, "--- /a\n+++ /a\n@@ -1,2 +1,3 @@\n a\n a\n+a\n");
        let shorter = unified(path, Some("a\nb\u{1b}\n"), "a\n");
        assert_eq!(shorter, "--- /a\n+++ /a\n@@ -1,2 +1,1 @@\n a\n-b?\n");
    }
}
