//! The SLINGSHOT_* variables: what is written, what is read, and the words of each refusal.

use std::ffi::OsString;
use std::process::Command;

use cxi::{DeviceId, Members, ServiceId, TrafficClasses, Vni, VniAccess, VniList};
use cxi_job::Grant;
use cxi_job::environment::{CLEAR, EnvironmentError, SlingshotEnv};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::says;

type Vars<'a> = &'a [(&'a str, &'a str)];

fn parse(vars: Vars<'_>) -> Result<Option<SlingshotEnv>, EnvironmentError> {
    SlingshotEnv::parse(|name| {
        let var = vars.iter().find(|(key, _)| *key == name);
        var.map(|(_, value)| OsString::from(value))
    })
}

fn vni(number: u16) -> Vni {
    Vni::new(number).unwrap()
}

fn service(number: u32) -> ServiceId {
    ServiceId::new(number).unwrap()
}

fn env(vnis: &[u16], services: &[(u32, u32)]) -> SlingshotEnv {
    let services = services.iter().map(|(device, id)| (DeviceId::new(*device), service(*id)));
    SlingshotEnv::new(vnis.iter().map(|number| vni(*number)), services, None).unwrap()
}

#[test]
fn reads_what_schedulers_write() {
    let flux = parse(&[
        ("SLINGSHOT_VNIS", "4034"),
        ("SLINGSHOT_DEVICES", "cxi0,cxi1,cxi2,cxi3"),
        ("SLINGSHOT_SVC_IDS", "11,11,12,11"),
        ("SLINGSHOT_TCS", "0x0a"),
    ])
    .unwrap()
    .unwrap();
    assert_eq!(flux.vnis(), [vni(4034)]);
    assert_eq!(flux.services().len(), 4);
    assert_eq!(flux.services()[2], (DeviceId::new(2), service(12)));
    let tcs = TrafficClasses::LOW_LATENCY | TrafficClasses::BEST_EFFORT;
    assert_eq!(flux.traffic_classes(), Some(tcs));

    let blanks = parse(&[
        ("SLINGSHOT_VNIS", " 1500, 1501 "),
        ("SLINGSHOT_DEVICES", "cxi1 ,cxi10"),
        ("SLINGSHOT_SVC_IDS", "2, 3"),
    ]);
    assert_eq!(blanks, Ok(Some(env(&[1500, 1501], &[(1, 2), (10, 3)]))));
    assert_eq!(parse(&[]), Ok(None));
    assert_eq!(parse(&[("SLINGSHOT_TCS", "0xa")]), Ok(None));
    let no_nic = parse(&[("SLINGSHOT_VNIS", "4034")]);
    assert_eq!(no_nic, Ok(Some(env(&[4034], &[]))));
}

/// A variable in place of the usual one, and why that is refused.
const REFUSED: &str = r#"SLINGSHOT_DEVICES="cxi0,cxi1,cxi2": 3 devices but 2 service IDs: SLINGSHOT_DEVICES and SLINGSHOT_SVC_IDS have one entry for each NIC
SLINGSHOT_SVC_IDS="11,-1": SLINGSHOT_SVC_IDS, entry 2: -1 stands for a NIC without a service: leave that NIC out of both lists, or libfabric takes another service there and ranks on different NICs cannot talk
SLINGSHOT_SVC_IDS="0,12": SLINGSHOT_SVC_IDS, entry 1: invalid service ID '0': expected 1 to 4294967295
SLINGSHOT_SVC_IDS="11,": SLINGSHOT_SVC_IDS, entry 2: nothing between the commas
SLINGSHOT_SVC_IDS="unset": SLINGSHOT_SVC_IDS is not set, but SLINGSHOT_DEVICES is
SLINGSHOT_VNIS="unset": SLINGSHOT_VNIS is not set, but SLINGSHOT_DEVICES is
SLINGSHOT_VNIS=" ": SLINGSHOT_VNIS is set but empty: unset it, or give it a value
SLINGSHOT_VNIS="4034:4035": SLINGSHOT_VNIS, entry 1: invalid VNI '4034:4035': expected 1 to 65535
SLINGSHOT_VNIS="4034,70000": SLINGSHOT_VNIS, entry 2: invalid VNI '70000': expected 1 to 65535
SLINGSHOT_VNIS="4034,4034": VNI 4034 is named twice
SLINGSHOT_DEVICES="cxi0,cxi0": cxi0 is named twice: a job has one service on each NIC
SLINGSHOT_DEVICES="cxi0,hsn1": SLINGSHOT_DEVICES, entry 2: invalid CXI device 'hsn1': expected 'cxi' and a number, such as cxi0
SLINGSHOT_TCS="10": SLINGSHOT_TCS is "10": expected 0x1 to 0xf (DEDICATED_ACCESS 1, LOW_LATENCY 2, BULK_DATA 4, BEST_EFFORT 8)"#;

#[test]
fn refusals_say_what_is_wrong_where_and_why() {
    let with = |name: &'static str, value: &'static str| {
        let mut vars = vec![
            ("SLINGSHOT_VNIS", "4034"),
            ("SLINGSHOT_DEVICES", "cxi0,cxi1"),
            ("SLINGSHOT_SVC_IDS", "11,12"),
            ("SLINGSHOT_TCS", "0xa"),
        ];
        vars.retain(|(key, _)| *key != name);
        if value != "unset" {
            vars.push((name, value));
        }
        parse(&vars).unwrap_err().to_string()
    };
    for line in REFUSED.lines() {
        let (name, rest) = line.split_once("=\"").unwrap();
        let (value, message) = rest.split_once("\": ").unwrap();
        assert_eq!(with(name, value), message, "{line}");
    }
    for bad in ["0x0", "0x10", "0x", "0x+a", "-1", "0xfff"] {
        assert!(with("SLINGSHOT_TCS", bad).starts_with("SLINGSHOT_TCS is "), "{bad}");
    }
    let error = parse(&[("SLINGSHOT_SVC_IDS", "1")]).unwrap_err().to_string();
    assert!(error.contains("DEVICES is not set"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_value_that_is_not_text_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let error = SlingshotEnv::parse(|name| {
        (name == "SLINGSHOT_VNIS").then(|| OsString::from_vec(vec![0xff]))
    });
    says(error, "SLINGSHOT_VNIS is not UTF-8 text");
}

fn granted(device: u32, id: u32, vnis: &[u16], traffic_classes: TrafficClasses) -> Value {
    let vnis = VniList::new(vnis.iter().map(|number| vni(*number))).unwrap();
    json!({
        "device": DeviceId::new(device),
        "service": service(id),
        "vnis": VniAccess::List(vnis),
        "traffic_classes": traffic_classes,
        "asked": null,
        "granted": null,
        "cuts": [],
        "lnis_per_rgid": null,
        "adopted": false,
    })
}

/// The environment of a grant with these services.
fn env_of(services: &[Value]) -> Result<SlingshotEnv, EnvironmentError> {
    let grant = json!({"members": Members::default(), "services": services, "left_out": []});
    serde_json::from_value::<Grant>(grant).unwrap().env()
}

#[test]
fn services_make_an_environment_in_the_order_of_the_nics() {
    let both = TrafficClasses::LOW_LATENCY | TrafficClasses::BEST_EFFORT;
    let env = env_of(&[
        granted(10, 7, &[1500, 1501], both | TrafficClasses::BULK_DATA),
        granted(2, 9, &[1500, 1501], both),
    ])
    .unwrap();
    assert_eq!(
        env.vars(),
        [
            ("SLINGSHOT_VNIS", "1500,1501".to_owned()),
            ("SLINGSHOT_DEVICES", "cxi2,cxi10".to_owned()),
            ("SLINGSHOT_SVC_IDS", "9,7".to_owned()),
            ("SLINGSHOT_TCS", "0xa".to_owned()),
        ]
    );
    let first = |classes| granted(0, 7, &[1500], classes);
    let second = |vni| granted(1, 9, &[vni], both);
    says(
        env_of(&[first(both), second(1501)]),
        "the service on cxi1 allows different VNIs from the one on cxi0: all must allow the same \
         VNIs in the same order",
    );
    let disjoint = env_of(&[first(TrafficClasses::BULK_DATA), second(1500)]).unwrap_err();
    let of_classes = matches!(disjoint, EnvironmentError::TrafficClasses { .. });
    assert!(of_classes, "{disjoint}");
    let none = env_of(&[]);
    assert_eq!(none, Err(EnvironmentError::NoService));
}

#[test]
fn a_program_gets_the_jobs_variables_and_no_others() {
    let mut command = Command::new("true");
    command.env("SLINGSHOT_TCS", "0xf").env("SLINGSHOT_DEVICES", "cxi7");
    env(&[4034], &[]).set_on(&mut command);
    for name in CLEAR {
        let set = command.get_envs().find(|(key, _)| *key == name).unwrap().1;
        let expected = (name == "SLINGSHOT_VNIS").then_some("4034");
        assert_eq!(set.map(|value| value.to_str().unwrap()), expected, "{name}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        vnis in proptest::collection::hash_set(1..=u16::MAX, 1..5),
        nics in proptest::collection::btree_map(0..100_u32, 1..=u32::MAX, 0..9),
        tcs in proptest::option::of(1..=0xf_u8),
    ) {
        let services = nics.iter().map(|(device, id)| (DeviceId::new(*device), service(*id)));
        let tcs = tcs.map(TrafficClasses::from_bits_truncate);
        let env = SlingshotEnv::new(vnis.iter().map(|number| vni(*number)), services, tcs).unwrap();
        let vars = env.vars();
        let again = SlingshotEnv::parse(|name| {
            vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
        });
        prop_assert!(vars.iter().all(|(name, value)| CLEAR.contains(name) && !value.contains("-1")));
        prop_assert_eq!(again, Ok(Some(env)));
    }
}

#[test]
fn a_sub_instance_inherits_unless_it_has_its_own() {
    let outer = |name: &'static str| (name == "SLINGSHOT_VNIS").then(|| OsString::from("4034"));
    let own = env(&[5000], &[(0, 3)]);
    let inherited = SlingshotEnv::inherit(Some(own.clone()), outer);
    assert_eq!(inherited, Ok(Some(own)));
    let inherited = SlingshotEnv::inherit(None, outer);
    assert_eq!(inherited, Ok(Some(env(&[4034], &[]))));
    assert_eq!(SlingshotEnv::inherit(None, |_| None), Ok(None));
}
