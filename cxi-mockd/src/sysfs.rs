//! What the directory of a NIC's PCI function holds.

use std::fs;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use cxi_ioctl::abi::device::{CASSINI_1_0, CASSINI_1_1, CASSINI_2_0, DevInfoGetCmd, DevInfoUse};
use cxi_ioctl::{DriverRelease, Errno, PciAddress};

use super::tree::{Item, Tree};
use cxi_mock::{Credentials, Nic};

/// Names of the hardware counters.
const TELEMETRY: &str = include_str!("telemetry.txt");

/// RGIDs of a NIC.
const RGIDS: usize = 256;

/// Length of the register window: a physical function's is 2 GiB or more.
const REGISTERS: u64 = 2 << 30;
/// A virtual function's register window.
const VIRTUAL_REGISTERS: u64 = 64 << 20;

/// Describes the directory of a function.
pub(crate) fn describe(
    nic: &Arc<Nic>,
    number: u16,
    virtual_function: Option<u32>,
    address: PciAddress,
) -> Tree {
    let mut tree = Tree::new();
    pci(&mut tree, nic, virtual_function, address);
    properties(&mut tree, nic, virtual_function);
    if virtual_function.is_none() {
        board(&mut tree, nic, number);
        telemetry(&mut tree);
    }
    classes(&mut tree, number, address);
    network(&mut tree, nic, number, address);
    tree
}

/// What the NIC says about itself, as DEV_INFO_GET does.
fn info(nic: &Arc<Nic>) -> DevInfoUse {
    nic.open()
        .and_then(|client| {
            let transport = client.transport(Credentials::root());
            cxi_ioctl::execute(&transport, &DevInfoGetCmd::new())
                .map_err(cxi_ioctl::CommandError::errno)
        })
        .unwrap_or_else(|_| zerocopy::FromZeros::new_zeroed())
}

fn pci(tree: &mut Tree, nic: &Arc<Nic>, virtual_function: Option<u32>, address: PciAddress) {
    let identity = &nic.config().identity;
    let (vendor, device) = (identity.vendor_id, identity.device_id);
    tree.value("vendor", move || format!("{vendor:#06x}"));
    tree.value("device", move || format!("{device:#06x}"));
    tree.value("subsystem_vendor", move || format!("{vendor:#06x}"));
    tree.value("subsystem_device", || "0x0000");
    tree.value("class", || "0x020000");
    let revision = identity.device_rev;
    tree.value("revision", move || format!("{revision:#04x}"));
    tree.value("enable", || 1);
    tree.value("numa_node", || 0);
    let cpus = local_cpus();
    tree.text("local_cpulist", move || cpus.clone());
    for name in ["current_link_speed", "max_link_speed"] {
        tree.value(name, || "32.0 GT/s PCIe");
    }
    for name in ["current_link_width", "max_link_width"] {
        tree.value(name, || 16);
    }
    tree.text("uevent", move || {
        format!(
            "DRIVER=cxi_ss1\nPCI_CLASS=20000\nPCI_ID={vendor:04X}:{device:04X}\n\
             PCI_SUBSYS_ID={vendor:04X}:0000\nPCI_SLOT_NAME={address}\n"
        )
    });
    tree.link("driver", "../../../bus/pci/drivers/cxi_ss1");
    tree.link("subsystem", "../../../bus/pci");
    let physical = identity.pci_address;
    if virtual_function.is_some() {
        tree.link("physfn", format!("../{physical}"));
        tree.add("resource0", Item::Zeros(VIRTUAL_REGISTERS));
    } else {
        tree.add("resource0", Item::Zeros(REGISTERS));
        let count = nic.config().virtual_functions;
        tree.value("sriov_numvfs", move || count);
        tree.value("sriov_totalvfs", || 64);
        for function in 0..count {
            let address = super::server::address_of(nic, Some(function));
            tree.link(&format!("virtfn{function}"), format!("../{address}"));
        }
    }
}

/// The processors of the memory node that the NIC is said to sit at.
fn local_cpus() -> String {
    fs::read_to_string("/sys/devices/system/node/node0/cpulist")
        .or_else(|_| fs::read_to_string("/sys/devices/system/cpu/online"))
        .unwrap_or_else(|_| "0\n".to_owned())
}

fn properties(tree: &mut Tree, nic: &Arc<Nic>, virtual_function: Option<u32>) {
    let mut add = |name: &str, value: fn(&DevInfoUse) -> String| {
        let nic = Arc::clone(nic);
        tree.value(&format!("properties/{name}"), move || value(&info(&nic)));
    };
    add("nic_addr", |info| format!("{:#x}", info.nid));
    add("pid_bits", |info| info.pid_bits.to_string());
    add("pid_count", |info| info.pid_count.to_string());
    add("pid_granule", |info| info.pid_granule.to_string());
    add("min_free_shift", |info| info.min_free_shift.to_string());
    add("rdzv_get_idx", |info| info.rdzv_get_idx.to_string());
    add("rev", |info| info.device_rev.to_string());
    add("proto", |info| info.device_proto.to_string());
    add("platform", |info| info.device_platform.to_string());
    add("pct_eq", |info| info.pct_eq.to_string());
    add("uc_nic", |info| info.uc_nic.to_string());
    add("hpc_mtu", |info| info.link_mtu.to_string());
    add("speed", |info| info.link_speed.to_string());
    add("link", |info| u8::from(info.link_state != 0).to_string());
    add("num_ptes", |info| info.num_ptes.to_string());
    add("num_txqs", |info| info.num_txqs.to_string());
    add("num_tgqs", |info| info.num_tgqs.to_string());
    add("num_eqs", |info| info.num_eqs.to_string());
    add("num_cts", |info| info.num_cts.to_string());
    add("num_acs", |info| info.num_acs.to_string());
    add("num_tles", |info| info.num_tles.to_string());
    add("num_les", |info| info.num_les.to_string());
    add("cassini_version", |info| {
        let version = match info.cassini_version {
            CASSINI_1_0 => "1.0",
            CASSINI_1_1 => "1.1",
            CASSINI_2_0 => "2.0",
            _ => "unknown",
        };
        version.to_owned()
    });
    add("system_type_identifier", |info| {
        info.system_type_identifier.to_string()
    });
    let config = nic.config();
    nid(tree, nic);
    let fadd = config.identity.amo_remap_to_pcie_fadd;
    tree.value("properties/amo_remap_to_pcie_fadd", move || fadd);
    let rdzv = u8::from(config.identity.rdzv_get_en);
    tree.value("properties/rdzv_get_en", move || rdzv);
    tree.value("properties/driver_rev", || "[unknown]");
    tree.value("properties/current_esm_link_speed", || "Disabled");
    tree.value("properties/pcie_corr_err", || 0);
    tree.value("properties/pcie_uncorr_err", || 0);
    if config.release >= DriverRelease::Main {
        tree.value("properties/ats_enabled", || 0);
    }
    if virtual_function.is_none() {
        let nic = Arc::clone(nic);
        tree.value("properties/rgids_avail", move || {
            RGIDS.saturating_sub(nic.state().rgids.len())
        });
    }
}

/// The NIC address, which an administrator sets from 13.1 on.
fn nid(tree: &mut Tree, nic: &Arc<Nic>) {
    let path = "properties/nid";
    let source = Arc::clone(nic);
    let read = move || format!("{:#x}", source.hardware().nid());
    if nic.config().release < DriverRelease::Shs13_1 {
        return tree.value(path, read);
    }
    let target = Arc::clone(nic);
    tree.writable(path, read, move |text| {
        let digits = text
            .strip_prefix("0x")
            .map(|hex| u32::from_str_radix(hex, 16));
        let nid = digits.unwrap_or_else(|| text.parse());
        target.hardware().set_nid(nid.map_err(|_| Errno::EINVAL)?);
        Ok(())
    });
}

/// What the card and its microcontroller say.
fn board(tree: &mut Tree, nic: &Arc<Nic>, number: u16) {
    let description = nic.config().identity.fru_description.clone();
    tree.value("fru/description", move || description.clone());
    tree.value("fru/part_number", || "MOCK");
    tree.value("fru/serial_number", move || format!("MOCK{number:06}"));
    tree.value("uc/qspi_blob_version", || "mock");
    tree.value("port/media", || "electrical");
    tree.value("port/link_layer_retry", || "on");
    tree.value("port/loopback", || "off");
    tree.value("port/pause", || "pfc");
    let source = Arc::clone(nic);
    tree.value("port/speed", move || {
        format!("BS_{}G", info(&source).link_speed / 1000)
    });
    let source = Arc::clone(nic);
    tree.value("port/link", move || up_or_down(&info(&source)));
}

fn up_or_down(info: &DevInfoUse) -> &'static str {
    if info.link_state == 0 { "down" } else { "up" }
}

/// Nothing moves on a mock: all counters stand at zero, now.
fn telemetry(tree: &mut Tree) {
    for counter in TELEMETRY.lines() {
        tree.value(&format!("telemetry/{counter}"), || {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            format!("0@{}.{:09}", now.as_secs(), now.subsec_nanos())
        });
    }
}

fn classes(tree: &mut Tree, number: u16, address: PciAddress) {
    for class in ["cxi", "cxi_user"] {
        let directory = format!("{class}/cxi{number}");
        tree.link(
            &format!("{directory}/device"),
            format!("../../../{address}"),
        );
        tree.link(
            &format!("{directory}/subsystem"),
            format!("../../../../../class/{class}"),
        );
    }
    tree.text(&format!("cxi/cxi{number}/uevent"), String::new);
    tree.text(&format!("cxi_user/cxi{number}/uevent"), move || {
        format!("DEVNAME=cxi{number}\nDEVMODE=0666\n")
    });
    tree.add(&format!("cxi_user/cxi{number}/clients"), Item::Clients);
}

/// The network device, without which libfabric takes the link as down.
fn network(tree: &mut Tree, nic: &Arc<Nic>, number: u16, address: PciAddress) {
    let name = network_device(number);
    let directory = format!("net/{name}");
    let path = |file: &str| format!("{directory}/{file}");
    tree.link(&path("device"), format!("../../../{address}"));
    tree.link(&path("subsystem"), "../../../../../class/net");
    let index = 1000 + u32::from(number);
    tree.text(&path("uevent"), move || {
        format!("INTERFACE={name}\nIFINDEX={index}\n")
    });
    tree.value(&path("ifindex"), move || index);
    tree.value(&path("type"), || 1);
    tree.value(&path("mtu"), || 9000);
    tree.value(&path("duplex"), || "full");
    tree.value(&path("addr_assign_type"), || 3);
    tree.value(&path("addr_len"), || 6);
    let mut add = |file: &str, value: fn(&DevInfoUse) -> String| {
        let nic = Arc::clone(nic);
        tree.value(&path(file), move || value(&info(&nic)));
    };
    add("address", |info| {
        let [_, high, middle, low] = info.nid.to_be_bytes();
        format!("02:00:00:{high:02x}:{middle:02x}:{low:02x}")
    });
    add("operstate", |info| up_or_down(info).to_owned());
    add("carrier", |info| u8::from(info.link_state != 0).to_string());
    add("speed", |info| info.link_speed.to_string());
    add("flags", |info| {
        let running = if info.link_state == 0 { 0 } else { 0x40 };
        format!("{:#x}", 0x1003 | running)
    });
    for counter in [
        "rx_bytes",
        "rx_packets",
        "rx_errors",
        "rx_dropped",
        "tx_bytes",
        "tx_packets",
        "tx_errors",
        "tx_dropped",
    ] {
        tree.value(&path(&format!("statistics/{counter}")), || 0);
    }
}

/// The network device's name.
pub(crate) fn network_device(number: u16) -> String {
    format!("hsn{number}")
}
