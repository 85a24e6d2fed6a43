//! `cxi fabric show --svg`: how long each pair takes, as a heat map.

use super::meeting::Answers;
use super::verdict::{NicVerdict, Verdict, microseconds, shown};
use crate::output::svg::{self, rect, text, upwards};

const LEFT: f64 = 110.0;
const CELL: f64 = 18.0;
const ROW: f64 = 24.0;
/// Room for a letter of a column's name.
const LETTER: f64 = 8.0;
/// Pairs that take up to this many times the median have the palest color, the second, and so on.
const STEPS: [(f64, &str); 5] =
    [(1.5, "#e5f5e0"), (2.0, "#a1d99b"), (3.0, "#fdd49e"), (6.0, "#fc8d59"), (f64::MAX, "#d7301f")];
const NOT_REACHED: &str = "#000000";

pub(super) fn svg(verdict: &Verdict) -> String {
    let (mut body, mut y) = (String::new(), 8.0);
    for nic in &verdict.nics {
        y = matrix(&mut body, y, nic, verdict);
    }
    let legend =
        "Rows ask, columns answer. Orange, red: slow. Black: not reached. White: not asked.";
    text(&mut body, 8.0, y + 14.0, legend, "normal");
    #[allow(clippy::cast_precision_loss, reason = "a number of nodes")]
    let width = (LEFT + CELL * verdict.nodes.len() as f64 + 20.0).max(620.0);
    svg::whole(width, y + ROW, &body)
}

/// Rows are the nodes that ask, columns those that answer.
fn matrix(body: &mut String, mut y: f64, nic: &NicVerdict, verdict: &Verdict) -> f64 {
    let longest = verdict.nodes.iter().map(|node| node.as_str().len()).max().unwrap_or_default();
    #[allow(clippy::cast_precision_loss, reason = "the length of a name")]
    let head = LETTER * longest as f64;
    y += ROW + head;
    text(body, 8.0, y - 7.0, &nic.device.to_string(), "bold");
    let mut x = LEFT;
    for to in &verdict.nodes {
        upwards(body, x + 12.0, y - 4.0, to.as_str());
        x += CELL;
    }
    for from in &verdict.nodes {
        text(body, 8.0, y + 13.0, from.as_str(), "normal");
        let mut x = LEFT;
        for to in &verdict.nodes {
            // Of many nodes, most pairs are not asked.
            if let Some(answers) = nic.answers(from, to).filter(|_| from != to) {
                let (color, about) = match answers {
                    Answers { problem: Some(problem), .. } => (NOT_REACHED, problem.clone()),
                    Answers { median_ns: Some(time), .. } => {
                        (color(*time, nic.median_ns), shown(*time))
                    }
                    _ => (STEPS[4].1, "all repeated".to_owned()),
                };
                let about = format!("{from} to {to}: {about}");
                rect(body, (x, y), (CELL - 2.0, CELL - 2.0), color, 1.0, &about);
            }
            x += CELL;
        }
        y += CELL;
    }
    y + 8.0
}

fn color(time: u64, median: Option<u64>) -> &'static str {
    let share = microseconds(time) / microseconds(median.unwrap_or(time).max(1));
    let step = STEPS.iter().find(|(most, _)| share <= *most);
    step.map_or(NOT_REACHED, |(_, color)| color)
}
