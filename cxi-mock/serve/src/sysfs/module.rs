//! `/sys/module/cxi_ss1`: what the driver was loaded with.

use std::sync::Arc;

use cxi_ioctl::DriverRelease;

use super::super::tree::Tree;
use cxi_mock::{ModuleParameters, Nic};

/// Name, type, mode and first release of each parameter of the driver.
const PARAMETERS: &str = include_str!("parameters.txt");

/// Describes the module of these NICs, which all run under one driver.
pub(crate) fn describe(nics: &[Arc<Nic>]) -> Tree {
    let mut tree = Tree::new();
    let (release, modelled) = nics
        .first()
        .map_or((DriverRelease::Shs14_0_1, Vec::new()), |nic| {
            (nic.config().release, values(&nic.config().params))
        });
    for parameter in PARAMETERS.lines() {
        let mut fields = parameter.split_whitespace();
        let (Some(name), Some(kind), Some(_mode), Some(since)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if since
            .parse()
            .is_ok_and(|since: DriverRelease| since > release)
        {
            continue;
        }
        let value = modelled
            .iter()
            .find(|(known, _)| *known == name)
            .map_or_else(|| unset(kind), |(_, value)| value.clone());
        tree.value(&format!("parameters/{name}"), move || value.clone());
    }
    tree.value("refcnt", || 1);
    tree.value("initstate", || "live");
    tree
}

/// A parameter that the mock uses, as the kernel prints it.
fn values(params: &ModuleParameters) -> Vec<(&'static str, String)> {
    let vnis: Vec<String> = params.default_vnis.iter().map(u32::to_string).collect();
    vec![
        ("active_qos_profile", params.active_qos_profile.to_string()),
        (
            "default_lnis_per_rgid",
            params.default_lnis_per_rgid.to_string(),
        ),
        (
            "default_svc_num_tles",
            params.default_svc_num_tles.to_string(),
        ),
        (
            "default_svc_test_mode",
            yes_or_no(params.default_svc_test_mode),
        ),
        ("default_vnis", vnis.join(",")),
        ("disable_default_svc", yes_or_no(params.disable_default_svc)),
        ("enable_rgid_sharing", yes_or_no(params.enable_rgid_sharing)),
        ("pe_total_les", params.pe_total_les.to_string()),
        ("pid_bits", params.pid_bits.to_string()),
        ("rdzv_get_en_default", yes_or_no(params.rdzv_get_en_default)),
    ]
}

fn yes_or_no(value: bool) -> String {
    if value { "Y" } else { "N" }.to_owned()
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
        describe(&[Nic::new(config).unwrap()])
    }

    #[test]
    fn parameters_come_with_their_release() {
        let path = "parameters/default_lnis_per_rgid";
        assert!(tree(DriverRelease::Shs13_0).find(path).is_none());
        assert!(tree(DriverRelease::Shs13_1).find(path).is_some());
        let path = "parameters/cass_sl_pml_rec_timeout_ms";
        assert!(tree(DriverRelease::Shs14_0_0).find(path).is_none());
        assert!(tree(DriverRelease::Shs14_0_1).find(path).is_some());
        let path = "parameters/rmu_pf_max_clients";
        assert!(tree(DriverRelease::Shs14_0_1).find(path).is_none());
        assert!(tree(DriverRelease::Main).find(path).is_some());
    }

    #[test]
    fn values_are_those_of_the_configuration() {
        let tree = tree(DriverRelease::Main);
        let read = |path| match tree.find(path) {
            Some(super::super::super::tree::Item::Attribute(attribute)) => attribute.read(),
            _ => panic!("an attribute"),
        };
        assert_eq!(read("parameters/disable_default_svc"), "N\n");
        assert_eq!(read("parameters/default_vnis"), "1,10,0,0\n");
        assert_eq!(read("parameters/pid_bits"), "9\n");
    }
}
