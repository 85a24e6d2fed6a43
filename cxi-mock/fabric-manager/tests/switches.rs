//! The switches have the trees that can be used.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cxi_fabric_manager::{Forget, MockFabricManager, TreeChange};
use support::{configured, make_tree, reserve, send};

/// A fabric manager, and the changes to its switches since the last call.
struct Site {
    manager: MockFabricManager,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn new(manager: MockFabricManager) -> Self {
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&seen);
        manager.program(move |change| {
            log.lock().unwrap().push(match change {
                TreeChange::Made { id, nics, root, timeout, .. } => {
                    assert_eq!(timeout, Duration::from_secs(20));
                    format!("{id}: {nics:x?} from {root:x}")
                }
                TreeChange::Deleted { id, .. } => format!("{id}: none"),
                _ => "?".to_owned(),
            });
        });
        Self { manager, seen }
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

#[test]
fn switches_have_the_trees_whose_requests_were_answered() {
    let site = Site::new(MockFabricManager::start().unwrap());
    let token = reserve(&site.manager, "a-1", 4);
    let make = |step, nics| make_tree(&site.manager, &token, "a-1", step, nics).status;
    assert_eq!(make("0", r#""1:44:33","1:44:34""#), 200);
    assert_eq!(site.seen(), ["1: [14433, 14434] from 14433"]);
    assert_eq!(make("1", r#""1:44:33","1:44:34""#), 200);
    assert_eq!(site.seen(), ["2: [14433, 14434] from 14434"]);
    assert_eq!(make("1", r#""1:44:33","1:44:34""#), 507);
    assert_eq!(site.seen(), [""; 0]);

    let delete = "DELETE multicasts/1";
    assert_eq!(send(&site.manager, &token, delete, "").status, 200);
    assert_eq!(site.seen(), ["1: none"]);
    assert_eq!(send(&site.manager, &token, delete, "").status, 404);
    site.manager.release("a-1").unwrap();
    assert_eq!(site.seen(), ["2: none"]);
    assert!(site.manager.release("a-1").is_err());

    let token = site.manager.reserve("a-2", 1).unwrap();
    let answer = make_tree(&site.manager, &format!("Bearer {token}"), "a-2", "0", r#""0:00:01""#);
    assert_eq!(answer.status, 200);
    assert_eq!(site.seen(), ["1: [1] from 1"]);
    site.manager.restart(Forget::Everything);
    assert_eq!(site.seen(), ["1: none"]);
}

/// While a tree is being created or deleted, it cannot be used.
#[test]
fn trees_that_take_their_time_are_in_switches_meanwhile_not() {
    let site = Site::new(configured(|config| {
        (config.settings.creation_ms, config.settings.deletion_ms) = (1000, 1000);
    }));
    let token = reserve(&site.manager, "a-1", 1);
    let make = || make_tree(&site.manager, &token, "a-1", "0", r#""0:00:01""#).status;
    assert_eq!((make(), site.seen()), (409, vec![]));
    site.manager.advance(Duration::from_secs(1));
    assert_eq!((make(), site.seen()), (200, vec!["1: [1] from 1".to_owned()]));
    let delete = "DELETE multicasts/1";
    assert_eq!(send(&site.manager, &token, delete, "").status, 409);
    assert_eq!(site.seen(), ["1: none"]);
}
