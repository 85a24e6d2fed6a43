//! Reads how the NICs are to be set up: a configuration file and `--set`.

use std::path::Path;

use serde_json::Value;

use super::error::ServeError;
use super::input;
use super::sysfs::switch;
use cxi_mock::{ModuleParameters, NicConfig};

/// What a configuration file says.
#[derive(Debug)]
pub(crate) enum Setup {
    /// NICs that are alike but for their addresses.
    Alike(NicConfig),
    /// Each NIC by itself.
    Each(Vec<NicConfig>),
    /// The NICs of each node.
    Nodes(Vec<Vec<NicConfig>>),
}

/// Reads a configuration: an object for NICs that are alike, a list of objects, or a list of such
/// lists. What is left out is as in `base`.
pub(crate) fn read(path: &Path, base: &NicConfig) -> Result<Setup, ServeError> {
    let text = input::read(path)?;
    let parsed = serde_json::from_slice(&text).map_err(|error| error.to_string());
    parsed
        .and_then(|value| from_value(value, base))
        .map_err(|error| ServeError::Input(format!("{}: {error}", path.display())))
}

fn from_value(value: Value, base: &NicConfig) -> Result<Setup, String> {
    match value {
        Value::Array(all) if all.first().is_some_and(Value::is_array) => all
            .into_iter()
            .enumerate()
            .map(|(index, node)| {
                match node {
                    Value::Array(nics) => list(nics, base),
                    other => Err(format!("{other}: expected a list of NICs")),
                }
                .map_err(|error| format!("node {index}: {error}"))
            })
            .collect::<Result<_, _>>()
            .map(Setup::Nodes),
        Value::Array(nics) => list(nics, base).map(Setup::Each),
        value => one(value, base).map(Setup::Alike),
    }
}

fn list(nics: Vec<Value>, base: &NicConfig) -> Result<Vec<NicConfig>, String> {
    nics.into_iter()
        .enumerate()
        .map(|(index, nic)| one(nic, base).map_err(|error| format!("NIC {index}: {error}")))
        .collect()
}

fn one(value: Value, base: &NicConfig) -> Result<NicConfig, String> {
    let mut config = serde_json::to_value(base).map_err(|error| error.to_string())?;
    merge(&mut config, value, "")?;
    serde_json::from_value(config).map_err(|error| error.to_string())
}

/// Lays what is given over the defaults.
fn merge(to: &mut Value, from: Value, at: &str) -> Result<(), String> {
    match (to, from) {
        (Value::Object(to), Value::Object(from)) => {
            for (key, value) in from {
                let path = format!("{at}{key}");
                let known = to.keys().cloned().collect::<Vec<_>>().join(", ");
                let field = to
                    .get_mut(&key)
                    .ok_or_else(|| format!("unknown field {path}: expected one of {known}"))?;
                merge(field, value, &format!("{path}."))?;
            }
            Ok(())
        }
        (Value::Object(_), from) => {
            let at = at.trim_end_matches('.');
            let place = if at.is_empty() { "the NIC" } else { at };
            Err(format!("{place} is {from}: expected an object"))
        }
        (to, from) => {
            *to = from;
            Ok(())
        }
    }
}

/// Sets a module parameter from `name=value`, with a value as `modprobe` takes it.
pub(crate) fn set(params: &mut ModuleParameters, assignment: &str) -> Result<(), ServeError> {
    assign(params, assignment).map_err(|error| ServeError::Input(format!("--set: {error}")))
}

fn assign(params: &mut ModuleParameters, assignment: &str) -> Result<(), String> {
    let (name, text) = assignment
        .split_once('=')
        .ok_or_else(|| format!("'{assignment}' has no value: expected parameter=value"))?;
    let mut all = serde_json::to_value(&*params).map_err(|error| error.to_string())?;
    let known = all
        .as_object()
        .map(|all| all.keys().cloned().collect::<Vec<_>>().join(", "))
        .unwrap_or_default();
    let value = all
        .get_mut(name)
        .ok_or_else(|| format!("the mock knows no parameter '{name}': it knows {known}"))?;
    *value = match value {
        Value::Bool(_) => switch(text)
            .map(Value::Bool)
            .ok_or_else(|| format!("{name} is '{text}': expected Y or N"))?,
        Value::Array(list) => {
            let mut numbers = text
                .split(',')
                .map(|number| integer(name, number))
                .collect::<Result<Vec<_>, _>>()?;
            if numbers.len() > list.len() {
                let most = list.len();
                return Err(format!(
                    "{name} has {} values: at most {most}",
                    numbers.len()
                ));
            }
            numbers.resize(list.len(), Value::from(0));
            Value::Array(numbers)
        }
        _ => integer(name, text)?,
    };
    *params = serde_json::from_value(all).map_err(|error| format!("{name}: {error}"))?;
    Ok(())
}

fn integer(name: &str, text: &str) -> Result<Value, String> {
    let number: u32 = text
        .parse()
        .map_err(|_| format!("{name} is '{text}': expected a number from 0"))?;
    Ok(Value::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<Setup, String> {
        from_value(serde_json::from_str(text).unwrap(), &NicConfig::new())
    }

    #[test]
    fn what_is_not_said_has_its_default() {
        let text = r#"{"release": "main", "params": {"pid_bits": 8}, "totals": {"txqs": 16}}"#;
        let Ok(Setup::Alike(config)) = config(text) else {
            panic!("one configuration");
        };
        assert_eq!(config.release, cxi_ioctl::DriverRelease::Main);
        assert_eq!((config.params.pid_bits, config.totals.txqs), (8, 16));
        assert_eq!(config.totals.tgqs, 512);
    }

    #[test]
    fn a_list_says_each_nic() {
        let Ok(Setup::Each(nics)) = config(r#"[{}, {"identity": {"nid": 7}}]"#) else {
            panic!("a list");
        };
        assert_eq!((nics.len(), nics[1].identity.nid), (2, 7));
    }

    #[test]
    fn a_list_of_lists_says_each_node() {
        let Ok(Setup::Nodes(nodes)) = config(r#"[[{}, {}], [{"identity": {"nid": 7}}]]"#) else {
            panic!("nodes");
        };
        assert_eq!((nodes[0].len(), nodes[1][0].identity.nid), (2, 7));
        let error = config("[[{}], {}]").unwrap_err();
        assert_eq!(error, "node 1: {}: expected a list of NICs");
    }

    #[test]
    fn errors_say_where() {
        let error = config(r#"{"params": {"pidbits": 8}}"#).unwrap_err();
        assert!(
            error.starts_with("unknown field params.pidbits: expected one of"),
            "{error}"
        );
        let error = config(r#"[{}, {"totals": 5}]"#).unwrap_err();
        assert_eq!(error, "NIC 1: totals is 5: expected an object");
    }

    #[test]
    fn parameters_are_set_as_for_modprobe() {
        let mut params = ModuleParameters::default();
        assign(&mut params, "disable_default_svc=N").unwrap();
        assign(&mut params, "default_vnis=7,8").unwrap();
        assign(&mut params, "pid_bits=8").unwrap();
        assert!(!params.disable_default_svc);
        assert_eq!((params.default_vnis, params.pid_bits), ([7, 8, 0, 0], 8));
        assert!(assign(&mut params, "pid_bits").is_err());
        assert!(assign(&mut params, "pid_bits=-1").is_err());
        assert!(assign(&mut params, "disable_default_svc=2").is_err());
        assert!(assign(&mut params, "default_vnis=1,2,3,4,5").is_err());
        let error = assign(&mut params, "nonsense=1").unwrap_err();
        assert!(error.contains("default_vnis"), "{error}");
    }
}
