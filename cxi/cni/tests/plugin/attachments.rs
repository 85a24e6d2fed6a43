//! State of a pod from ADD to DEL.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use cxi::{Member, ServiceSpec, Vni};
use cxi_cni::Code;
use cxi_ioctl::DriverRelease;
use cxi_job::{JobRequest, Node};
use cxi_mock::NicConfig;
use serde_json::{Value, json};

use crate::pod;
use crate::support::{Site, refused};

fn members(site: &Site) -> Vec<Member> {
    let services = site.services();
    let members = services.iter().map(|service| service.members().unwrap());
    members.flat_map(|members| members.iter().collect::<Vec<_>>()).collect()
}

#[test]
fn a_pod_has_a_service_on_every_nic_until_it_goes() {
    let pod = pod!();
    for version in ["0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let previous = json!({"cniVersion": version, "ips": [{"address": "10.0.0.2/16"}], "x": 1});
        let site =
            Site::new().set("cniVersion", json!(version)).set("prevResult", previous.clone());
        let result: Value = serde_json::from_str(&site.add("one", &pod).unwrap()).unwrap();
        assert_eq!(result, previous);
        assert_eq!(members(&site), [pod.member(), pod.member()]);
        assert!(site.services().iter().all(cxi::Service::is_enabled));
        assert_eq!(site.records().len(), 1);
        // Only root reads the records; users find those of their jobs next to them.
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let state = site.state();
        assert_eq!((mode(&state), mode(state.parent().unwrap())), (0o700, 0o755));
        if version != "0.3.1" {
            assert_eq!(site.check("one", &pod).unwrap(), "");
        }
        for _ in 0..2 {
            assert_eq!(site.del("one").unwrap(), "");
            assert_eq!((site.services().len(), site.records().len()), (0, 0));
        }
    }
}

#[test]
fn alone_it_has_a_result_of_its_own() {
    let pod = pod!();
    let site = Site::new().set("cniVersion", json!("1.0.0"));
    assert_eq!(site.add("one", &pod).unwrap(), r#"{"cniVersion":"1.0.0"}"#);
}

#[test]
fn a_pod_gets_all_nics_or_none_and_does_not_start() {
    let pod = pod!();
    for (fault, code) in [
        ("cxi1:SVC_ALLOC:ENOSPC", Code::TryAgain),
        ("cxi1:SVC_ALLOC:EPERM", Code::Nic),
        ("cxi1:SVC_SET_NETNS:EIO", Code::Nic),
    ] {
        let site = Site::new();
        site.fault(fault);
        refused(site.add("one", &pod), code);
        assert_eq!(site.services().len(), 0, "{fault}");
        assert_eq!(site.records().len(), 0, "{fault}");
    }
    let site = Site::new().set_cxi("nics", json!(["cxi0", "cxi2"]));
    refused(site.add("one", &pod), Code::Nic);
    let site = Site::new().set_cxi("nics", json!(["cxi1"]));
    site.add("one", &pod).unwrap();
    assert_eq!(site.services().len(), 1);
}

#[test]
fn what_cannot_be_undone_stays_on_record() {
    let pod = pod!();
    let site = Site::new();
    site.fault("cxi1:SVC_ALLOC:EPERM");
    site.fault("cxi0:SVC_DESTROY:EIO:times=2");
    refused(site.add("one", &pod), Code::Nic);
    assert_eq!((site.services().len(), site.records().len()), (1, 1));
    site.del("one").unwrap();
    assert_eq!((site.services().len(), site.records().len()), (0, 0));
}

#[test]
fn a_busy_service_keeps_its_record_and_the_other_nic_is_freed() {
    let pod = pod!();
    let site = Site::new();
    site.add("one", &pod).unwrap();
    site.fault("cxi0:SVC_DESTROY:EBUSY:times=2");
    let said = refused(site.del("one"), Code::TryAgain);
    assert!(said.contains("cxi0: service 2"), "{said}");
    assert_eq!((site.services().len(), site.records().len()), (1, 1));
    // Tried again within one call.
    let site = site.set_cxi("retryBusySeconds", json!(20));
    site.del("one").unwrap();
    assert_eq!((site.services().len(), site.records().len()), (0, 0));
}

#[test]
fn what_another_pod_left_with_the_same_inode_goes_first() {
    let pod = pod!();
    let site = Site::new();
    site.add("gone", &pod).unwrap();
    site.fault("SVC_DESTROY:EBUSY:times=1");
    let said = refused(site.add("new", &pod), Code::TryAgain);
    assert!(said.contains("cannot be removed"), "{said}");
    let site = site.set_cxi("vnis", json!({"source": "static", "vnis": [1025]}));
    site.add("new", &pod).unwrap();
    let vnis: Vec<_> = site.services().iter().map(|s| s.vnis().to_string()).collect();
    assert_eq!(vnis, ["1025", "1025"]);
    assert_eq!(site.records().len(), 1);
    // The DEL that comes late has nothing to do with the new pod.
    site.del("gone").unwrap();
    site.check("new", &pod).unwrap();
}

/// A pod that could use them does not start, but they may be in use: nothing of them changes.
#[test]
fn services_of_other_programs_for_the_namespace_are_left_alone() {
    let pod = pod!();
    let site = Site::new();
    // As other programs make them: the list does not say that the namespace is a member.
    let device = &site.devices()[0];
    let stranger = ServiceSpec::builder().members([]).vni(Vni::new(4001).unwrap()).enabled(false);
    let stranger = device.services().create(&stranger.build().unwrap()).unwrap();
    let Member::NetNs(inode) = pod.member() else { unreachable!() };
    device.services().set_netns(stranger, inode).unwrap();
    // And one that the list shows.
    let request = JobRequest::builder().member(pod.member()).vni(Vni::new(4000).unwrap());
    let node = Node::from_devices(site.devices());
    node.allocate(&request.build().unwrap()).unwrap();
    fs::create_dir_all(site.state()).unwrap();
    let damaged = site.state().join("blue:gone:eth0.json");
    fs::write(&damaged, "{").unwrap();
    let before = site.services();
    let said = refused(site.add("new", &pod), Code::Nic);
    for (device, service) in [("cxi0", 2), ("cxi0", 3), ("cxi1", 2)] {
        let named =
            format!("\n{device}: service {service}; cxi service destroy -d {device} {service} ");
        assert!(said.contains(&named), "{said}");
    }
    assert!(said.contains("blue:gone:eth0.json"), "{said}");
    assert_eq!(site.services(), before);
    fs::remove_file(damaged).unwrap();
    assert_eq!(site.records().len(), 0);
    for device in site.devices() {
        for service in device.services().list().unwrap() {
            if !service.id().is_default() {
                device.services().destroy(service.id()).unwrap();
            }
        }
    }
    site.add("new", &pod).unwrap();
}

#[test]
fn a_record_of_another_network_does_not_name_what_comes_after_it() {
    let pod = pod!();
    let site = Site::new();
    site.add("gone", &pod).unwrap();
    let site = site.set("name", json!("green"));
    site.add("new", &pod).unwrap();
    assert_eq!((site.services().len(), site.records().len()), (2, 2));
    let site = site.set("name", json!("blue"));
    site.del("gone").unwrap();
    let site = site.set("name", json!("green"));
    site.check("new", &pod).unwrap();
    assert_eq!((site.services().len(), site.records().len()), (2, 1));
}

#[test]
fn two_interfaces_of_a_pod_are_two_attachments() {
    let pod = pod!();
    let site = Site::new();
    site.add("one", &pod).unwrap();
    site.pod("ADD", "one", "net1", &pod.netns()).unwrap();
    assert_eq!((site.services().len(), site.records().len()), (4, 2));
    site.del("one").unwrap();
    site.pod("CHECK", "one", "net1", &pod.netns()).unwrap();
    refused(site.check("one", &pod), Code::Changed);
    // A second ADD without DEL replaces the first one's.
    site.pod("ADD", "one", "net1", &pod.netns()).unwrap();
    assert_eq!((site.services().len(), site.records().len()), (2, 1));
}

#[test]
fn records_of_an_earlier_boot_are_ignored() {
    let pod = pod!();
    let site = Site::new();
    site.add("one", &pod).unwrap();
    let path = &site.records()[0];
    let mut record: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    record["record"]["boot"] = json!("an earlier one");
    fs::write(path, record.to_string()).unwrap();
    site.del("one").unwrap();
    assert_eq!((site.services().len(), site.records().len()), (2, 0));
}

#[test]
fn check_says_what_is_wrong_on_which_nic() {
    let (pod, other) = (pod!(), pod!());
    let site = Site::new();
    site.add("one", &pod).unwrap();
    let said = refused(site.check("one", &other), Code::Changed);
    assert!(said.contains("network namespace"), "{said}");
    let device = &site.devices()[1];
    let id = site.services()[1].id();
    device.services().set_enabled(id, false).unwrap();
    let said = refused(site.check("one", &pod), Code::Changed);
    assert_eq!(said, "cxi1: service 2 is disabled");
    device.services().destroy(id).unwrap();
    let said = refused(site.check("one", &pod), Code::Changed);
    assert!(said.starts_with("cxi1: there is no service 2"), "{said}");
}

#[test]
fn garbage_collection_takes_back_what_is_not_listed() {
    let (one, two) = (pod!(), pod!());
    let site = Site::new();
    site.add("one", &one).unwrap();
    site.add("two", &two).unwrap();
    let gc = |site: &Site| site.call(&[("CNI_COMMAND", "GC")]);
    refused(gc(&site), Code::Configuration);
    let key = "cni.dev/valid-attachments";
    let site = site.set("name", json!("green")).set(key, json!([]));
    assert_eq!(gc(&site).unwrap(), "");
    assert_eq!(site.services().len(), 4, "of another network");

    let listed = json!([{"containerID": "two", "ifname": "eth0"}]);
    let site = site.set("name", json!("blue")).set(key, listed);
    // Goes on after an error, and reports it.
    let damaged = site.state().join("blue:three:eth0.json");
    fs::write(&damaged, "{").unwrap();
    let said = refused(gc(&site), Code::Decoding);
    assert!(said.contains("blue:three:eth0.json"), "{said}");
    assert_eq!(members(&site), [two.member(), two.member()]);
    fs::remove_file(damaged).unwrap();
    assert_eq!(gc(&site).unwrap(), "");
    assert_eq!(site.records().len(), 1);
}

#[test]
fn status_says_whether_a_pod_could_start() {
    let status = |site: &Site| site.call(&[("CNI_COMMAND", "STATUS")]);
    let site = Site::new();
    assert_eq!(status(&site).unwrap(), "");
    let pods = [pod!(), pod!(), pod!()];
    for (number, pod) in pods.iter().enumerate() {
        site.add(&number.to_string(), pod).unwrap();
    }
    let said = refused(status(&site), Code::NotServing);
    assert!(said.contains("cxi1: no more such job fits"), "{said}");
    let large = Site::new().set_cxi("cores", json!(300));
    status(&large).unwrap();
    large.add("one", &pods[0]).unwrap();
    let said = refused(status(&large), Code::NotServing);
    assert!(said.contains("cxi0: no more such job fits"), "{said}");
    let old = Site::with(&NicConfig::new().release(DriverRelease::Shs13_1));
    let said = refused(status(&old), Code::NotServing);
    assert!(said.contains("expected SHS 14.0.0 or later"), "{said}");
    let missing = Site::new().set_cxi("nics", json!(["cxi2"]));
    let said = refused(status(&missing), Code::NotServing);
    assert!(said.ends_with("cxi2: the node has no such NIC"), "{said}");
}

#[test]
fn pods_with_a_size_share_a_nic() {
    let pods = [pod!(), pod!(), pod!(), pod!()];
    let unlimited = Site::new();
    let sized = Site::new().set_cxi("cores", json!(4));
    for (number, pod) in pods.iter().enumerate() {
        let answer = unlimited.add(&number.to_string(), pod);
        assert_eq!(answer.is_ok(), number < 3, "three TLE pools");
        sized.add(&number.to_string(), pod).unwrap();
    }
    assert_eq!((unlimited.services().len(), sized.services().len()), (6, 8));
}
