//! The parts of a document that a run renews; everything between them was written by people.

/// Puts `content` in the place of what stands between the marks of a part.
pub(crate) fn renew(document: &str, part: &str, content: &str) -> Result<String, String> {
    let start = format!("<!-- figures: {part} -->\n");
    let (before, rest) = document
        .split_once(&start)
        .ok_or_else(|| format!("the document has no line '{}'", start.trim()))?;
    let end = "<!-- end -->";
    let (_, after) = rest
        .split_once(end)
        .ok_or_else(|| format!("the document has no '{end}' behind '{}'", start.trim()))?;
    Ok(format!(
        "{before}{start}\n{}\n\n{end}{after}",
        content.trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_wrote_stays() {
        let document =
            "a\n<!-- figures: x -->\nold\n<!-- end -->\nb\n<!-- figures: y -->\n<!-- end -->\n";
        let renewed = renew(document, "x", "new\n").unwrap();
        assert_eq!(
            renewed,
            "a\n<!-- figures: x -->\n\nnew\n\n<!-- end -->\nb\n<!-- figures: y -->\n<!-- end -->\n"
        );
        assert_eq!(renew(&renewed, "x", "new").unwrap(), renewed);
        assert!(renew(document, "z", "").is_err());
    }
}
