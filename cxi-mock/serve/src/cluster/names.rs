//! Names and addresses of nodes.

use std::fs;
use std::net::Ipv4Addr;

/// The name of a node, counted from 0: the first one is n1.
pub(super) fn name(number: usize) -> String {
    format!("n{}", number + 1)
}

/// The number of a node of a cluster, by its name.
pub(super) fn number(text: &str, nodes: usize) -> Result<usize, String> {
    (0..nodes)
        .find(|number| name(*number) == text)
        .ok_or_else(|| format!("no node {text}: expected n1 to {}", name(nodes - 1)))
}

/// Returns the address at which daemons of a node are reached. Each node has its own address even
/// if all share the network, so that two daemons can listen on the same port.
pub(super) fn address(number: usize, own_network: bool) -> Ipv4Addr {
    let first =
        if own_network { Ipv4Addr::new(10, 77, 0, 1) } else { Ipv4Addr::new(127, 77, 0, 1) };
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    Ipv4Addr::from_bits(first.to_bits().saturating_add(number))
}

/// The real `/etc/hosts`, followed by the nodes.
pub(super) fn hosts(nodes: usize, own_network: bool) -> String {
    let mut text = fs::read_to_string("/etc/hosts").unwrap_or_default();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let line = |node| format!("{}\t{}\n", address(node, own_network), name(node));
    text.extend((0..nodes).map(line));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_numbers() {
        assert_eq!(number("n1", 4), Ok(0));
        assert_eq!(number("n4", 4), Ok(3));
        for unknown in ["n0", "n5", "n01", "", "4"] {
            let error = number(unknown, 4).unwrap_err();
            assert_eq!(error, format!("no node {unknown}: expected n1 to n4"));
        }
    }

    #[test]
    fn addresses_differ() {
        assert_eq!(address(0, false), Ipv4Addr::new(127, 77, 0, 1));
        assert_eq!(address(255, true), Ipv4Addr::new(10, 77, 1, 0));
        assert!(hosts(2, true).ends_with("10.77.0.1\tn1\n10.77.0.2\tn2\n"));
    }
}
