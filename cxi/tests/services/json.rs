//! Services and devices as JSON.

use crate::common::{create, modest, modest_range, nic, range, root};
use cxi::{
    DeviceId, DriverRelease, Limit, Limits, Member, Resource, ServiceId, ServiceSetting,
    ServiceSpec, SettingForm, SettingValue, TrafficClasses, Vni, VniRange,
};
use serde_json::json;

fn read(text: &str) -> Result<ServiceSpec, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn specifications_have_the_form_of_hpe_templates() {
    let spec = modest(1024)
        .member(Member::Uid(1000))
        .traffic_classes(TrafficClasses::LOW_LATENCY | TrafficClasses::BEST_EFFORT)
        .limits(Limits::none().with(Resource::Txqs, Limit::new(8, 16).unwrap()))
        .build()
        .unwrap();
    let text = serde_json::to_value(spec).unwrap();
    assert_eq!(
        text,
        json!({
            "members": [{"type": "uid", "id": 1000}],
            "vnis": [1024],
            "tcs": ["LOW_LATENCY", "BEST_EFFORT"],
            "resource_limits": true,
            "limits": [
                {"name": "PTEs", "max": 0, "res": 0},
                {"name": "TXQs", "max": 16, "res": 8},
                {"name": "TGQs", "max": 0, "res": 0},
                {"name": "EQs", "max": 0, "res": 0},
                {"name": "CTs", "max": 0, "res": 0},
                {"name": "LEs", "max": 0, "res": 0},
                {"name": "TLEs", "max": 0, "res": 0},
                {"name": "ACs", "max": 0, "res": 0},
            ],
        })
    );
    assert_eq!(read(&text.to_string()), Ok(spec));

    let template = r#"{
        "restricted_members": 1, "members": [{"type": "gid", "id": 7}],
        "restricted_vnis": true, "vnis": [16, 17],
        "resource_limits": 1, "limits": [{"name": "ACs", "max": 4, "res": 2}],
        "tcs": ["tc_bulk data"], "enable": 0, "is_system_svc": 1, "cntr_pool_id": 2
    }"#;
    let spec = ServiceSpec::builder()
        .member(Member::Gid(7))
        .vnis([16, 17].map(|number| Vni::new(number).unwrap()))
        .limits(Limits::none().with(Resource::Acs, Limit::new(2, 4).unwrap()))
        .traffic_classes(TrafficClasses::BULK_DATA)
        .enabled(false)
        .system(true)
        .counter_pool(2)
        .build()
        .unwrap();
    assert_eq!(read(template), Ok(spec));
    // What is off or none by default is said only where it is not.
    let text = serde_json::to_value(spec).unwrap();
    for (name, value) in
        [("enable", json!(false)), ("is_system_svc", json!(true)), ("cntr_pool_id", json!(2))]
    {
        assert_eq!(text[name], value);
    }
    assert_eq!(read(&text.to_string()), Ok(spec));
    let exclusive = modest(1024).exclusive_vnis(true).build().unwrap();
    let text = serde_json::to_value(exclusive).unwrap();
    assert_eq!(text["exclusive_vnis"], json!(true));
    assert_eq!(read(&text.to_string()), Ok(exclusive));
}

#[test]
fn every_kind_of_vnis_survives() {
    let builder = ServiceSpec::builder;
    for spec in [
        builder().vni_range(range("1024-1039")),
        builder().unrestricted_vnis(),
        builder().vnis([]),
        builder().vnis([]).members([]),
        builder().unrestricted_vnis().member(Member::NetNs(4_026_532_000)),
    ] {
        let spec = spec.build().unwrap();
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(read(&text), Ok(spec), "{text}");
    }
    let range = serde_json::to_value("1024-1039".parse::<VniRange>().unwrap()).unwrap();
    assert_eq!(range, json!({"first": 1024, "last": 1039}));
}

#[test]
fn bad_specifications_say_where_and_why() {
    for (text, message) in [
        (r#"{"vnis": [65536]}"#, "invalid VNI 65536: expected 1 to 65535 at line 1"),
        (r#"{"vnis": [0]}"#, "invalid VNI 0: expected 1 to 65535 at line 1"),
        (
            r#"{"vnis": [1, 2, 3, 4, 5]}"#,
            "5 VNIs: a service can list at most 4; more need a VNI range at line 1",
        ),
        (r#"{"vnis": ["5"]}"#, "invalid type: string \"5\", expected u64 at line 1"),
        (
            r#"{"vni_range": {"first": 1030, "last": 1045}}"#,
            "VNI range of 16 from 1030: expected a start that is a multiple of 16, such as 1024 \
             or 1040 at line 1",
        ),
        (
            r#"{"vnis": [5], "members": [{"type": "user", "id": 1}]}"#,
            "unknown variant `user`, expected one of `uid`, `gid`, `net_ns`, `netns` at line 1",
        ),
        (
            r#"{"vnis": [5], "tcs": ["FAST"]}"#,
            "invalid traffic class 'FAST': expected dedicated-access, low-latency, bulk-data, \
             best-effort or eth at line 1",
        ),
        (
            r#"{"vnis": [5], "limits": [{"name": "XXs", "max": 1}]}"#,
            "invalid resource 'XXs': expected one of PTEs, TXQs, TGQs, EQs, CTs, LEs, TLEs, ACs at line 1",
        ),
        (
            r#"{"vnis": [5], "limits": [{"name": "ACs", "max": 1, "res": 2}]}"#,
            "ACs: 2 reserved but at most 1: expected a maximum no lower than the reservation at \
             line 1",
        ),
        (
            r#"{"vnis": [5], "limits": [{"name": "ACs", "max": 1}, {"name": "AC", "max": 2}]}"#,
            "ACs are limited twice: name each resource once at line 1",
        ),
        (
            r#"{"vnis": [5], "limits": [{"name": "ACs", "max": 70000}]}"#,
            "invalid value: integer `70000`, expected u16 at line 1",
        ),
        (r#"{"vnis": [5], "vnis": [6]}"#, "duplicate field `vnis` at line 1"),
        (
            r#"{"vnis": [5], "resource_limits": 2}"#,
            "invalid value: integer `2`, expected true, false, 1 or 0 at line 1",
        ),
        (r"{}", "no VNIs: name VNIs or a range, or ask for unrestricted VNIs"),
        (
            r#"{"vnis": [5], "resource_limits": true}"#,
            "resource_limits is on, but no limits are given",
        ),
        (
            r#"{"vnis": [5], "resource_limits": false, "limits": []}"#,
            "limits are given, but resource_limits is off",
        ),
        (r#"{"restricted_vnis": true}"#, "restricted_vnis is on, but no vnis are named"),
    ] {
        let error = read(text).unwrap_err();
        let (before, _) = error.split_once(" column ").unwrap_or((&error, ""));
        assert_eq!(before, message, "{text}");
    }
    let error = read(r#"{"vnis": [5], "vnni": 1}"#).unwrap_err();
    assert!(
        error.starts_with("unknown field `vnni`, expected one of `restricted_members`, `members`"),
        "{error}"
    );
}

#[test]
fn services_and_usage_have_stable_names() {
    let nic = nic(DriverRelease::Main2026_07);
    let device = root(&nic);
    let services = device.services();
    let id = create(&services, modest(1024).member(Member::Uid(7)));
    let service = serde_json::to_value(services.get(id).unwrap()).unwrap();
    let none = |name: &str| json!({"name": name, "max": 0, "res": 0});
    let names = ["PTEs", "TXQs", "TGQs", "EQs", "CTs", "LEs", "TLEs", "ACs"];
    assert_eq!(
        service,
        json!({
            "id": 2,
            "enable": true,
            "is_system_svc": false,
            "restricted_members": true,
            "members": [{"type": "uid", "id": 7}],
            "restricted_vnis": true,
            "vnis": [1024],
            "vni_range": null,
            "restricted_tcs": false,
            "tcs": [],
            "resource_limits": true,
            "limits": names.map(none),
            "cntr_pool_id": 0,
        })
    );
    let usage = serde_json::to_value(services.usage(id).unwrap()).unwrap();
    assert_eq!(
        usage,
        json!({
            "service": 2,
            "in_use": {
                "PTEs": 0, "TXQs": 0, "TGQs": 0, "EQs": 0, "CTs": 0,
                "LEs": null, "TLEs": null, "ACs": 0,
            },
            "tle_pool": 0,
        })
    );
    assert_eq!(serde_json::from_value::<cxi::Usage>(usage).unwrap(), services.usage(id).unwrap());
}

#[test]
fn device_information_has_stable_names() {
    let nic = nic(DriverRelease::Main2026_07);
    let info = root(&nic).info().unwrap();
    let text = serde_json::to_value(&info).unwrap();
    assert_eq!(
        text,
        json!({
            "device": "cxi0",
            "nid": 256,
            "nid_configured": true,
            "cassini_version": 33,
            "system_type": 2,
            "platform": "netsim",
            "device_rev": 1,
            "device_proto": 1,
            "vendor_id": 0x1590,
            "device_id": 0x371,
            "uc_nic": 0,
            "description": "Mock Cassini 2",
            "link_up": true,
            "link_speed": 400_000,
            "link_mtu": 2112,
            "retry_handler_eq": 0,
            "pid_bits": 9,
            "pid_count": 511,
            "pid_granule": 256,
            "rdzv_get_idx": text["rdzv_get_idx"],
            "rdzv_get_enabled": true,
            "min_free_shift": text["min_free_shift"],
            "amo_remap_to_pcie_fadd": null,
            "totals": {
                "PTEs": 2048, "TXQs": 1024, "TGQs": 512, "EQs": 2047, "CTs": 2047,
                "LEs": 16384, "TLEs": 2048, "ACs": 1022,
            },
            "pci_address": null,
            "driver": null,
            "virtual_function": null,
            "numa_node": null,
            "local_cpus": null,
        })
    );
    assert_eq!(serde_json::from_value::<cxi::DeviceInfo>(text).unwrap(), info);
}

#[test]
fn plain_values_are_checked_when_they_are_read() {
    assert!(serde_json::from_str::<DeviceId>(r#""cxi01""#).is_err());
    assert!(serde_json::from_str::<ServiceId>("0").is_err());
    assert!(serde_json::from_str::<Vni>("65536").is_err());
    assert!(serde_json::from_str::<cxi::LnisPerRgid>("9").is_err());
    assert!(serde_json::from_str::<Limit>(r#"{"max": 1, "res": 2}"#).is_err());
    let limit: Limit = serde_json::from_str(r#"{"max": 5}"#).unwrap();
    assert_eq!(limit, Limit::at_most(5));
}

#[test]
fn every_setting_has_its_key() {
    for setting in ServiceSetting::ALL {
        let (value, in_json) = match setting.form() {
            SettingForm::Switch => (SettingValue::Switch(true), json!(true)),
            _ => (SettingValue::Number(2), json!(2)),
        };
        let plain = modest_range("64-127").build().unwrap();
        let spec = modest_range("64-127").setting(setting, value).unwrap().build().unwrap();
        assert_ne!(spec, plain);
        let text = serde_json::to_value(spec).unwrap();
        assert_eq!(text[setting.key()], in_json);
        assert_eq!(read(&text.to_string()), Ok(spec));
        assert_eq!(serde_json::to_value(plain).unwrap().get(setting.key()), None);
        assert_eq!(serde_json::to_value(value).unwrap(), in_json);
    }
}
