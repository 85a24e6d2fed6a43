//! Finding the NICs of a node, on trees made of files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::says;
use cxi::{Device, DeviceId, DriverRelease, Errno, ErrorKind, Host, PciAddress, Platform};
use cxi_mock::{Nic, NicConfig};
use tempfile::TempDir;

/// A node's `/dev` and `/sys`.
struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        fs::create_dir(tree.dev()).unwrap();
        fs::create_dir_all(tree.sys().join("class/cxi_user")).unwrap();
        tree
    }

    fn dev(&self) -> std::path::PathBuf {
        self.0.path().join("dev")
    }

    fn sys(&self) -> std::path::PathBuf {
        self.0.path().join("sys")
    }

    fn host(&self) -> Host {
        Host::with_roots(self.dev(), self.sys())
    }

    /// A NIC in sysfs with its PCI directory.
    fn nic(&self, name: &str, pci: &str) -> std::path::PathBuf {
        let directory = self.sys().join("devices/pci0000:40").join(pci);
        fs::create_dir_all(directory.join("telemetry")).unwrap();
        for class in ["cxi_user", "cxi"] {
            let link = self.sys().join("class").join(class).join(name);
            fs::create_dir_all(&link).unwrap();
            symlink(&directory, link.join("device")).unwrap();
        }
        directory
    }
}

fn ids(host: &Host) -> Vec<String> {
    let found = host.devices().unwrap();
    found.iter().map(|nic| nic.id().to_string()).collect()
}

#[test]
fn a_node_without_nics_has_an_empty_list() {
    let empty = tempfile::tempdir().unwrap();
    let host = Host::with_roots(empty.path().join("no"), empty.path().join("nothing"));
    assert!(host.devices().unwrap().is_empty());
    assert!(Tree::new().host().devices().unwrap().is_empty());
}

#[test]
fn nics_are_listed_by_number_and_other_names_are_no_nics() {
    let tree = Tree::new();
    for name in ["cxi10", "cxi2", "cxi0"] {
        tree.nic(name, &format!("0000:4{}:00.0", name.len()));
    }
    for name in ["cxi", "cxi_loop", "cxi01", "cxi-1", "cxi3x"] {
        fs::create_dir(tree.sys().join("class/cxi_user").join(name)).unwrap();
    }
    assert_eq!(ids(&tree.host()), ["cxi0", "cxi2", "cxi10"]);
}

/// A container may have device nodes and no sysfs.
#[test]
fn device_nodes_are_looked_for_where_sysfs_has_no_nic() {
    let tree = Tree::new();
    for name in ["cxi7", "cxi2", "null"] {
        fs::write(tree.dev().join(name), "").unwrap();
    }
    assert_eq!(ids(&tree.host()), ["cxi2", "cxi7"]);
    tree.nic("cxi0", "0000:41:00.0");
    assert_eq!(ids(&tree.host()), ["cxi0"]);
    // All of /dev is not read for a NIC that sysfs names.
    fs::remove_dir_all(tree.dev()).unwrap();
    fs::write(tree.dev(), "").unwrap();
    assert_eq!(tree.host().device_ids().unwrap(), [DeviceId::new(0)]);
}

#[test]
fn a_nic_that_cannot_be_used_is_listed_with_the_reason() {
    let tree = Tree::new();
    tree.nic("cxi0", "0000:41:00.0");
    tree.nic("cxi1", "0000:42:00.0");
    // Not a CXI device: a file takes any write and answers nothing.
    fs::write(tree.dev().join("cxi1"), "").unwrap();
    let found = tree.host().devices().unwrap();
    let reasons: Vec<_> = found.iter().map(|nic| nic.info().unwrap_err().to_string()).collect();
    assert_eq!(
        reasons[0],
        format!("cxi0: cannot open {}: there is no such device", tree.dev().join("cxi0").display())
    );
    assert!(
        reasons[1].starts_with("cxi1: DEV_INFO_GET: the driver wrote 0 bytes of response"),
        "{}",
        reasons[1]
    );
    assert_eq!(found[0].device().unwrap_err().errno(), Errno::ENOENT);
    let mut found = found.into_iter();
    assert!(found.next().unwrap().into_parts().is_err());
}

#[test]
fn a_directory_that_cannot_be_read_is_an_error() {
    let tree = Tree::new();
    let class = tree.sys().join("class/cxi_user");
    fs::remove_dir(&class).unwrap();
    fs::write(&class, "").unwrap();
    let error = tree.host().devices().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Sysfs { .. }));
    assert_eq!(error.errno(), Errno::ENOTDIR);
    assert!(error.to_string().starts_with(&class.display().to_string()));
}

fn mock(sys: &Path) -> Device {
    let nic = Nic::new(NicConfig::new().release(DriverRelease::Main2026_07)).unwrap();
    let file = nic.root().unwrap();
    Device::with_sysfs(DeviceId::new(0), Arc::new(file), sys)
}

#[test]
fn sysfs_adds_what_the_driver_does_not_answer() {
    let tree = Tree::new();
    let bare = mock(&tree.sys()).info().unwrap();
    assert_eq!((bare.pci_address, bare.driver, bare.virtual_function), (None, None, None));

    let directory = tree.nic("cxi0", "0000:41:00.0");
    let driver = tree.sys().join("bus/pci/drivers/cxi_ss1");
    fs::create_dir_all(&driver).unwrap();
    symlink(driver, directory.join("driver")).unwrap();
    fs::write(directory.join("numa_node"), "1\n").unwrap();
    fs::write(directory.join("local_cpulist"), "0-15,32-47\n").unwrap();
    let window = fs::File::create(directory.join("resource0")).unwrap();
    window.set_len(1 << 31).unwrap();

    let info = mock(&tree.sys()).info().unwrap();
    assert_eq!(info.pci_address, Some(PciAddress { domain: 0, bus: 0x41, device: 0, function: 0 }));
    assert_eq!(info.driver.as_deref(), Some("cxi_ss1"));
    assert_eq!(info.virtual_function, Some(false));
    assert_eq!(info.numa_node, Some(1));
    assert_eq!(info.local_cpus.as_deref(), Some("0-15,32-47"));
    assert_eq!(info.platform, Platform::Netsim);
    assert!(!info.is_retry_handler_running());

    // A smaller window is a virtual function's; so is one with a physical function.
    window.set_len((1 << 31) - 1).unwrap();
    assert_eq!(mock(&tree.sys()).info().unwrap().virtual_function, Some(true));
    window.set_len(1 << 31).unwrap();
    symlink("..", directory.join("physfn")).unwrap();
    assert_eq!(mock(&tree.sys()).info().unwrap().virtual_function, Some(true));
    // No node is -1.
    fs::write(directory.join("numa_node"), "-1\n").unwrap();
    assert_eq!(mock(&tree.sys()).info().unwrap().numa_node, None);
}

#[test]
fn telemetry_is_read_on_request() {
    let tree = Tree::new();
    let directory = tree.nic("cxi0", "0000:41:00.0").join("telemetry");
    fs::write(directory.join("pct_sct_timeouts"), "17@1700000000.000000042\n").unwrap();
    fs::write(directory.join("bad"), "17\n").unwrap();
    let device = mock(&tree.sys());
    assert_eq!(device.telemetry_counters().unwrap(), ["bad", "pct_sct_timeouts"]);
    let reading = device.telemetry("pct_sct_timeouts").unwrap();
    assert_eq!(reading.value, 17);
    assert_eq!(reading.time, Duration::new(1_700_000_000, 42));

    let error = device.telemetry("bad").unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("bad: invalid reading '17': expected value@seconds.nanoseconds"),
        "{error}"
    );
    assert_eq!(device.telemetry("none").unwrap_err().errno(), Errno::ENOENT);
    says(
        device.telemetry("../../secret"),
        "cxi0: invalid counter name '../../secret': expected a file name",
    );
    let nic = crate::common::nic(DriverRelease::Main2026_07);
    says(crate::common::root(&nic).telemetry("x"), "cxi0: this device has no entry in sysfs");
}

#[test]
fn properties_are_switched_through_sysfs() {
    let tree = Tree::new();
    let directory = tree.nic("cxi0", "0000:41:00.0").join("properties");
    let device = mock(&tree.sys());
    assert_eq!(device.set_rdzv_get_enabled(false).unwrap_err().errno(), Errno::ENOENT);
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("rdzv_get_en"), "1\n").unwrap();
    fs::write(directory.join("amo_remap_to_pcie_fadd"), "-1\n").unwrap();
    device.set_rdzv_get_enabled(false).unwrap();
    device.set_amo_remap_to_pcie_fadd(Some(5)).unwrap();
    let read = |name| fs::read_to_string(directory.join(name)).unwrap();
    assert_eq!(read("rdzv_get_en"), "0");
    assert_eq!(read("amo_remap_to_pcie_fadd"), "5");
    device.set_amo_remap_to_pcie_fadd(None).unwrap();
    assert_eq!(read("amo_remap_to_pcie_fadd"), "-1");

    assert_eq!((device.free_rgids(), device.rdzv_get_default()), (None, None));
    fs::write(directory.join("rgids_avail"), "243\n").unwrap();
    assert_eq!(device.free_rgids(), Some(243));
    let parameters = tree.sys().join("module/cxi_ss1/parameters");
    fs::create_dir_all(&parameters).unwrap();
    for (text, on) in [("Y\n", true), ("N\n", false)] {
        fs::write(parameters.join("rdzv_get_en_default"), text).unwrap();
        assert_eq!(device.rdzv_get_default(), Some(on));
    }
}

#[test]
fn the_card_its_link_and_pci_express_are_in_sysfs() {
    let tree = Tree::new();
    let bare = mock(&tree.sys());
    assert_eq!(bare.hardware(), cxi::Hardware::default());
    let directory = tree.nic("cxi0", "0000:41:00.0");
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for (name, text) in [
        ("fru/part_number", "P43012-001\n"),
        ("fru/serial_number", "GR21120003\n"),
        ("uc/qspi_blob_version", "1.6.0.326\n"),
        ("net/hsn0/address", "02:00:00:00:00:12\n"),
        ("net/hsn0.7/address", "02:00:00:00:00:12\n"),
        ("current_link_speed", "16.0 GT/s PCIe\n"),
        ("current_link_width", "16\n"),
        ("properties/current_esm_link_speed", "Disabled\n"),
        ("port/link", "up\n"),
        ("port/speed", "BS_200G\n"),
        ("port/media", "electrical\n"),
        ("port/link_layer_retry", "on\n"),
        ("port/loopback", "off\n"),
        ("port/pause", "pfc/802.1qbb\n"),
        ("aer_dev_correctable", "RxErr 2\nBadTLP 0\nTOTAL_ERR_COR 2\n"),
        ("aer_dev_fatal", "Undefined 0\nTOTAL_ERR_FATAL 0\n"),
    ] {
        write(name, text);
    }
    let found = bare.hardware();
    let words = |text: Option<String>| text.unwrap();
    assert_eq!(words(found.part_number.clone()), "P43012-001");
    assert_eq!(words(found.serial_number.clone()), "GR21120003");
    assert_eq!(words(found.firmware.clone()), "1.6.0.326");
    assert_eq!(words(found.network_device.clone()), "hsn0");
    assert_eq!(words(found.mac_address.clone()), "02:00:00:00:00:12");
    assert_eq!(words(found.pcie_speed.clone()), "16.0 GT/s PCIe");
    assert_eq!(found.pcie_width, Some(16));
    assert_eq!(words(found.link_state.clone()), "up");
    assert_eq!(words(found.link_speed.clone()), "BS_200G");
    assert_eq!(words(found.link_media.clone()), "electrical");
    assert_eq!(words(found.link_layer_retry.clone()), "on");
    assert_eq!(words(found.loopback.clone()), "off");
    assert_eq!(words(found.pause.clone()), "pfc/802.1qbb");
    let errors: Vec<_> = found.aer_correctable.iter().collect();
    assert_eq!(errors, [(&"BadTLP".to_owned(), &0), (&"RxErr".to_owned(), &2)]);
    assert_eq!(found.aer_fatal.len(), 1);
    assert!(found.aer_nonfatal.is_empty());

    // Drivers for Cassini 2 number their ports, and a link may be faster than PCI Express knows.
    write("port/0/link/state", "down\n");
    write("port/0/link/config/pause_map", "none\n");
    write("properties/current_esm_link_speed", "25.0 GT/s\n");
    let found = bare.hardware();
    assert_eq!(words(found.link_state), "down");
    assert_eq!(words(found.pause), "none");
    assert_eq!(words(found.link_speed), "BS_200G");
    assert_eq!(words(found.pcie_speed), "25.0 GT/s");
}
