//! A plugin that is killed leaves nothing that its record does not lead to.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cxi::{DeviceId, Member, ServiceId, ServiceSpec, Vni};
use cxi_ioctl::{Intercept, Transport as _};
use cxi_job::Node;
use cxi_job::cluster::ServiceRecords;
use cxi_job::owners::OwnedService;
use cxi_mock::Credentials;
use cxi_test_kit::Pod;

use crate::pod;
use crate::support::Site;

/// So many commands go through on all NICs together; at the next one the process ends.
fn mortal(site: &Site, commands: u64) -> Node {
    let left = Arc::new(AtomicU64::new(u64::MAX));
    let files = site.mock.devices(&Credentials::root()).unwrap().into_iter();
    let node = Node::from_transports(files.map(|(number, file)| {
        let left = Arc::clone(&left);
        let file = Intercept::new(file, move |file, request| {
            let one_less = |left: u64| left.checked_sub(1);
            let spent = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
            // Unwinding gives up locks as a kill does, and writes no files.
            assert!(spent.is_ok(), "killed");
            file.submit(request)
        });
        (number, file)
    }));
    left.store(commands, Ordering::SeqCst);
    node
}

/// Kills a command after so many commands to the NICs; `false` if it ended before.
fn killed(site: &Site, command: &str, container: &str, netns: &str, commands: u64) -> bool {
    assert!(commands < 1000, "it never ends");
    let variables = [
        ("CNI_COMMAND", command),
        ("CNI_CONTAINERID", container),
        ("CNI_IFNAME", "eth0"),
        ("CNI_NETNS", netns),
    ];
    let node = mortal(site, commands);
    let call = AssertUnwindSafe(|| site.call_on(node, &variables));
    catch_unwind(call).map(|answer| answer.unwrap()).is_err()
}

/// Kills a command for `one` after every number of commands to the NICs; how often it was.
fn kill(site: &Site, command: &str, netns: &str, after: impl Fn(&Site, u64)) -> u64 {
    let mut commands = 0;
    while killed(site, command, "one", netns, commands) {
        after(site, commands);
        commands += 1;
    }
    commands
}

#[test]
fn add_can_be_killed_at_any_command() {
    let pod = pod!();
    let site = Site::new();
    let netns = pod.netns().display().to_string();
    let kills = kill(&site, "ADD", &netns, |site, commands| {
        // As often by DEL as by the next ADD.
        if commands % 2 == 0 {
            site.del("one").unwrap();
            assert_eq!(site.services().len(), 0, "after {commands} commands");
            assert_eq!(site.records().len(), 0, "after {commands} commands");
        }
    });
    assert!(kills > 8, "{kills}");
    site.check("one", &pod).unwrap();
    assert_eq!((site.services().len(), site.records().len()), (2, 1));
}

#[test]
fn del_can_be_killed_at_any_command() {
    let pod = pod!();
    let site = Site::new();
    site.add("one", &pod).unwrap();
    let kills = kill(&site, "DEL", "", |site, commands| {
        let left = site.services().len();
        assert!(left == 0 || site.records().len() == 1, "after {commands}");
    });
    assert!(kills > 2, "{kills}");
    assert_eq!((site.services().len(), site.records().len()), (0, 0));
}

/// Services without a record are a killed call's if they have its VNIs, and nobody else's name or
/// namespace.
#[test]
fn del_leaves_what_others_made_with_the_same_vnis() {
    let (one, two) = (pod!(), pod!());
    let netns = |pod: &Pod| pod.netns().display().to_string();
    let site = Site::new();
    let of_two = || -> Vec<_> {
        let Member::NetNs(inode) = two.member() else { unreachable!() };
        let devices = site.devices();
        let services = devices.iter().flat_map(|device| {
            let services = device.services().list().unwrap().into_iter();
            services.map(move |service| (device.id(), service.id()))
        });
        let netns = |(device, service): &(DeviceId, ServiceId)| {
            let device = devices.iter().find(|found| found.id() == *device).unwrap();
            device.services().netns(*service).unwrap() == Some(inode)
        };
        services.filter(netns).collect()
    };
    let mut most = 0;
    for commands in 0..1000 {
        if !killed(&site, "ADD", "two", &netns(&two), commands) {
            break;
        }
        let records = site.records().len();
        for commands in 0..1000 {
            assert!(killed(&site, "ADD", "one", &netns(&one), commands));
            if site.records().len() > records {
                break;
            }
        }
        let before = of_two();
        site.del("one").unwrap();
        assert_eq!(of_two(), before, "after {commands} commands");
        site.del("two").unwrap();
        assert_eq!(site.services().len(), 0, "after {commands} commands");
        most = most.max(before.len());
    }
    assert_eq!(most, 2, "a service on each NIC was there");
}

#[test]
fn del_leaves_a_recorded_service_without_members() {
    let pod = pod!();
    let site = Site::new();
    let device = site.devices().remove(0);
    let spec = ServiceSpec::builder().vni(Vni::new(1024).unwrap()).members([]).enabled(false);
    let id = device.services().create(&spec.build().unwrap()).unwrap();
    let made = device.services().get(id).unwrap();
    let records = ServiceRecords::new(site.state().with_file_name("services"));
    records.add(OwnedService::of(device.id(), &made), "an administrator").unwrap();
    let netns = pod.netns().display().to_string();
    let _ = (0..1000).find(|commands| {
        assert!(killed(&site, "ADD", "one", &netns, *commands));
        !site.records().is_empty()
    });
    site.del("one").unwrap();
    assert_eq!(site.services(), [made]);
}

/// An administrator destroys a pod's service, and the next pod gets its number.
#[test]
fn a_number_is_the_last_pods() {
    let (one, two) = (pod!(), pod!());
    let netns = |pod: &Pod| pod.netns().display().to_string();
    for commands in 0..1000 {
        let site = Site::new();
        site.add("one", &one).unwrap();
        for device in site.devices() {
            let services = device.services();
            for service in services.list().unwrap() {
                if !service.id().is_default() {
                    services.destroy(service.id()).unwrap();
                }
            }
        }
        let is_done = !killed(&site, "ADD", "two", &netns(&two), commands);
        let before = site.services();
        site.del("one").unwrap();
        if is_done {
            assert_eq!(site.services(), before);
            site.check("two", &two).unwrap();
        }
        site.del("two").unwrap();
        assert_eq!(site.services().len(), 0, "after {commands} commands");
        if is_done {
            break;
        }
    }
}
