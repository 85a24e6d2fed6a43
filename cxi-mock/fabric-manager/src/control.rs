//! The control interface of the mock, on a separate port.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::{Answer, Delivery, Request};
use crate::model::Forget;
use crate::server::Shared;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vnis {
    job: String,
    vnis: Vec<u16>,
}

/// Executes an order.
pub(crate) fn obey(
    shared: &Arc<Shared>,
    address: SocketAddr,
    order: &Request,
) -> (Answer, Delivery) {
    let answer = match execute(shared, address, order) {
        Ok(answer) => answer,
        Err(message) => Answer::error(400, &message),
    };
    (answer, Delivery::Whole)
}

fn execute(shared: &Arc<Shared>, address: SocketAddr, order: &Request) -> Result<Answer, String> {
    match (order.method.as_str(), order.path.as_str()) {
        ("GET", "/state") => return shown(200, &shared.api().model().state()),
        ("GET", "/quiet") => {
            let state = shared.api().model().state();
            return shown(if state.is_quiet() { 200 } else { 409 }, &state);
        }
        ("GET", "/journal") => return shown(200, &shared.api().journal),
        ("DELETE", "/journal") => shared.api().journal.clear(),
        ("POST", "/faults") => shared.api().faults.push(read(order)?),
        ("DELETE", "/faults") => shared.api().faults.clear(),
        ("POST", "/restart") => {
            let forget: Forget = member(order, "forget")?;
            shared.change(|api| api.restart(forget));
        }
        ("POST", "/clock") => {
            let advance_ms = member(order, "advance_ms")?;
            shared.advance(Duration::from_millis(advance_ms));
        }
        ("POST", "/expire-tokens") => shared.api().authenticator.forget(),
        ("POST", "/listening") => {
            let listening = member(order, "listening")?;
            Shared::set_listening(shared, address, listening)
                .map_err(|error| format!("cannot listen on {address}: {error}"))?;
        }
        ("POST", "/vnis") => {
            let Vnis { job, vnis } = read(order)?;
            shared.api().model_mut().expect_vnis(&job, vnis);
        }
        (method, path) => {
            return Ok(Answer::error(
                404,
                &format!(
                    "{method} {path}: expected GET /state, /quiet or /journal, POST /faults, /restart, /clock, \
                     /expire-tokens, /listening or /vnis, or DELETE /faults or /journal"
                ),
            ));
        }
    }
    Ok(Answer::json(200, &json!({})))
}

fn read<T: DeserializeOwned>(order: &Request) -> Result<T, String> {
    serde_json::from_slice(&order.body).map_err(|error| format!("{}: {error}", order.path))
}

/// The only member of an order.
fn member<T: DeserializeOwned>(order: &Request, name: &str) -> Result<T, String> {
    let mut members: BTreeMap<String, T> = read(order)?;
    let value = members.remove(name).filter(|_| members.is_empty());
    value.ok_or_else(|| format!("{}: expected {name} alone", order.path))
}

fn shown(status: u16, what: &impl serde::Serialize) -> Result<Answer, String> {
    let what: Value = serde_json::to_value(what).map_err(|error| error.to_string())?;
    Ok(Answer::json(status, &what))
}
