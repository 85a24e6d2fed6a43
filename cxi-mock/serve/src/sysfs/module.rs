//! `/sys/module/cxi_ss1`: what the driver was loaded with.

use std::iter;
use std::sync::Arc;

use cxi_ioctl::DriverRelease;
use serde_json::{Map, Value};

use super::super::server::DRIVER;
use super::super::tree::Tree;
use cxi_mock::{ModuleParameters, Nic};

/// Name, type, mode and first release of each parameter of the driver.
const PARAMETERS: &str = include_str!("parameters.txt");

/// Describes the module of these NICs, which all run under one driver.
pub(crate) fn describe(tree: &mut Tree, nics: &[Arc<Nic>], alias: Option<&str>) {
    let (release, modelled) = nics.first().map_or((DriverRelease::Shs14_0_1, Map::new()), |nic| {
        (nic.config().release, values(&nic.config().params))
    });
    for parameter in PARAMETERS.lines() {
        let mut fields = parameter.split_whitespace();
        let (Some(name), Some(kind), Some(_mode), Some(since)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if since.parse().is_ok_and(|since: DriverRelease| since > release) {
            continue;
        }
        let value = modelled.get(name).map_or_else(|| unset(kind), printed);
        tree.value(&format!("module/parameters/{name}"), move || value.clone());
    }
    for driver in iter::once(DRIVER).chain(alias) {
        let place = format!("module/drivers/pci:{driver}");
        tree.link(&place, format!("../../../bus/pci/drivers/{driver}"));
    }
    tree.value("module/refcnt", || 1);
    tree.value("module/initstate", || "live");
}

/// The parameters that the mock uses, by name: fields are named after them.
fn values(params: &ModuleParameters) -> Map<String, Value> {
    match serde_json::to_value(params) {
        Ok(Value::Object(values)) => values,
        _ => Map::new(),
    }
}

/// A value as the kernel prints it.
fn printed(value: &Value) -> String {
    match value {
        Value::Bool(true) => "Y".to_owned(),
        Value::Bool(false) => "N".to_owned(),
        Value::Array(all) => all.iter().map(printed).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// A parameter that the mock does not use.
fn unset(kind: &str) -> String {
    if kind == "bool" { "N" } else { "0" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cxi_mock::NicConfig;

    fn tree(release: DriverRelease) -> Tree {
        let config = NicConfig::new()
            .release(release)
            .parameters(|params| params.disable_default_svc = false);
        let mut tree = Tree::new();
        describe(&mut tree, &[Nic::new(config).unwrap()], None);
        tree
    }

    #[test]
    fn parameters_come_with_their_release() {
        let path = "module/parameters/default_lnis_per_rgid";
        assert!(tree(DriverRelease::Shs13_0).find(path).is_none());
        assert!(tree(DriverRelease::Shs13_1).find(path).is_some());
        let path = "module/parameters/cass_sl_pml_rec_timeout_ms";
        assert!(tree(DriverRelease::Shs14_0_0).find(path).is_none());
        assert!(tree(DriverRelease::Shs14_0_1).find(path).is_some());
        let path = "module/parameters/rmu_pf_max_clients";
        assert!(tree(DriverRelease::Shs14_0_1).find(path).is_none());
        assert!(tree(DriverRelease::Main2026_07).find(path).is_some());
    }

    #[test]
    fn values_are_those_of_the_configuration() {
        let tree = tree(DriverRelease::Main2026_07);
        let read = |path| match tree.find(path) {
            Some(super::super::super::tree::Item::Attribute(attribute)) => attribute.read(),
            _ => panic!("an attribute"),
        };
        assert_eq!(read("module/parameters/disable_default_svc"), "N\n");
        assert_eq!(read("module/parameters/default_vnis"), "1,10,0,0\n");
        assert_eq!(read("module/parameters/pid_bits"), "9\n");
    }
}
