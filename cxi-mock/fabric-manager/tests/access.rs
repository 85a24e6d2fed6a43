//! Authentication, how long tokens are valid, and what is lost at a restart.

mod support;

use std::time::Duration;

use cxi_fabric_manager::{Forget, MockFabricManager};
use support::{BASIC, configured, make_tree, reserve, send};

#[test]
fn w8_a_gateway_has_a_prefix_and_speaks_html() {
    let manager = configured(|config| {
        "/apis/fabric-manager/".clone_into(&mut config.prefix);
        config.access.gateway = true;
    });
    let base = format!("http://{}/apis/fabric-manager", manager.address());
    assert_eq!(manager.url(), base);
    assert_eq!(manager.multicasts_url(), format!("{base}/fabric/collectives/multicasts"));
    let path = "GET /apis/fabric-manager/fabric/collectives/jobs/";
    let refused = send(&manager, "Bearer old", path, "");
    assert_eq!(refused.status, 403);
    assert!(refused.head.contains("text/html"), "{}", refused.head);
    let made = send(
        &manager,
        BASIC,
        "POST /apis/fabric-manager/fabric/collectives/jobs",
        r#"{"jobID":"a-1","mcastLimit":1}"#,
    );
    assert_eq!(made.status, 200);
    let links = send(&manager, BASIC, path, "").json()["documentLinks"].clone();
    assert_eq!(links, serde_json::json!(["/fabric/collectives/jobs/a-1"]));
    assert_eq!(send(&manager, BASIC, "GET jobs/", "").status, 404);
}

#[test]
fn w9_tokens_end_by_time_by_number_and_by_order() {
    let manager = configured(|config| {
        config.access.client_secret = "a&b=%c".to_owned();
        config.access.token_requests = Some(2);
    });
    let token = |secret: &str| {
        let form = format!(
            "grant_type=client_credentials&client_id=wlm&client_secret={secret}&scope=openid"
        );
        send(&manager, "none", "POST /token", &form)
    };
    assert_eq!(token("wrong").status, 401);
    assert_eq!(send(&manager, "none", "POST /token", "grant_type=password").status, 400);
    // The form as Slurm sends it, and with the escapes that forms require.
    for secret in ["a&b=%c", "a%26b%3D%25c"] {
        let bearer = format!("Bearer {}", token(secret).text("access_token"));
        let list = || send(&manager, &bearer, "GET jobs/", "").status;
        assert_eq!([list(), list(), list()], [200, 200, 401]);
    }
    let bearer = || format!("Bearer {}", token("a&b=%c").text("access_token"));
    let list = |bearer: &str| send(&manager, bearer, "GET jobs/", "").status;
    let late = bearer();
    manager.advance(Duration::from_secs(300));
    assert_eq!(list(&late), 401);
    let forgotten = bearer();
    manager.expire_tokens();
    assert_eq!(list(&forgotten), 401);
    // The journal contains no secret.
    let journal = format!("{:?}", manager.journal());
    assert!(!journal.contains("a&b") && !journal.contains(&forgotten), "{journal}");
    assert!(journal.contains("Bearer ***"), "{journal}");
}

#[test]
fn a_restart_forgets_what_it_is_told_to() {
    let manager = MockFabricManager::start().unwrap();
    let before = reserve(&manager, "a-1", 1);
    assert_eq!(make_tree(&manager, &before, "a-1", "0", r#""0:00:01""#).status, 200);
    manager.restart(Forget::Nothing);
    assert_eq!(send(&manager, &before, "GET jobs/a-1", "").status, 200);
    manager.restart(Forget::Tokens);
    assert_eq!(send(&manager, &before, "GET jobs/a-1", "").status, 401);
    assert_eq!(manager.state().roots.len(), 1);
    manager.restart(Forget::Everything);
    manager.assert_quiet();
}
