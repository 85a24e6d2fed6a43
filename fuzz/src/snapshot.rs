//! Any JSON as the saved state of a mock node.

use cxi_mock::{MockNode, NicConfig, NodeSnapshot};

/// A state that is accepted must be one that is saved as the same again.
///
/// # Panics
///
/// When it is not.
pub fn run(data: &[u8]) {
    let Ok(snapshot) = serde_json::from_slice::<NodeSnapshot>(data) else {
        return;
    };
    match MockNode::restore(&snapshot) {
        Ok(node) => {
            let saved = node.snapshot();
            let again = MockNode::restore(&saved);
            assert!(
                again.is_ok(),
                "a saved state can be restored: {:?}",
                again.err()
            );
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error has a text"),
    }
}

/// The state of a node as it starts.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    MockNode::alike(1, &NicConfig::new())
        .ok()
        .and_then(|node| serde_json::to_vec(&node.snapshot()).ok())
        .into_iter()
        .collect()
}
