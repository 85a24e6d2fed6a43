//! Links that restart repeatedly.

use std::time::{Duration, SystemTime};

use cxi::LinkHistory;

use super::super::node::NodeNic;
use super::{AuditOptions, Code, Finding};

const HOUR: Duration = Duration::from_secs(3600);

/// Numbers of restarts within a time that HPE's health checks accept.
const ACCEPTED: [(usize, Duration, &str); 2] =
    [(4, HOUR, "the last hour"), (9, Duration::from_secs(10 * 3600), "the last ten hours")];

/// Number of restarts that the driver keeps.
const KEPT: usize = 10;

/// Reports a link that restarted more often than is accepted.
pub(super) fn check(nic: &NodeNic, options: &AuditOptions<'_>) -> Option<Finding> {
    if nic.is_virtual_function() {
        return None;
    }
    let history = nic.device()?.link_history();
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(options.now.as_millis());
    let text = unstable(&history, now)?;
    Some(Finding::new(Code::LinkUnstable, nic.id(), None, text))
}

fn unstable(history: &LinkHistory, now: SystemTime) -> Option<String> {
    ACCEPTED.iter().find_map(|(accepted, time, words)| {
        let count = history.restarts_within(*time, now);
        let often = if count == KEPT { "at least " } else { "" };
        (count > *accepted).then(|| {
            format!(
                "the link restarted {often}{count} times within {words}, of which {accepted} are \
                 acceptable: look at its cable and at the port of the switch"
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(hours: &[u32], now: SystemTime) -> LinkHistory {
        let mut history = LinkHistory::default();
        history.restarts = hours.iter().map(|hours| now - *hours * HOUR).collect();
        history
    }

    #[test]
    fn four_in_an_hour_and_nine_in_ten_are_accepted() {
        let now = SystemTime::UNIX_EPOCH + 100 * HOUR;
        assert_eq!(unstable(&history(&[0; 4], now), now), None);
        assert_eq!(unstable(&history(&[5; 9], now), now), None);
        let text = unstable(&history(&[0, 0, 0, 1, 1, 9], now), now).unwrap();
        assert!(text.starts_with("the link restarted 5 times within the last hour"), "{text}");
        let text = unstable(&history(&[5; 10], now), now).unwrap();
        assert!(text.contains("at least 10 times within the last ten hours"), "{text}");
    }
}
