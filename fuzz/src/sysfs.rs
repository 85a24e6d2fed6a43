//! Any tree of files, directories and links where the node's `/dev`, `/sys` and `/proc` are expected.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cxi::{Device, DeviceId, Host, ServiceId};
use cxi_job::{AuditOptions, Node};
use cxi_mock::{Nic, NicConfig};
use cxi_site::ProcFs;

use crate::input::Input;
use crate::told;

/// Files that the library reads. The NIC is `cxi0`, unless an input says otherwise.
const PLACES: [&str; 27] = [
    "dev/cxi0",
    "dev/cxi1",
    "sys/class/cxi_user/cxi0",
    "sys/class/cxi_user/cxi1",
    "sys/class/cxi_user/cxi4294967295",
    "sys/class/cxi_user/cxi_loopback",
    "sys/class/cxi_user/cxi0/device",
    "sys/class/cxi_user/cxi0/device/driver",
    "sys/class/cxi_user/cxi0/device/physfn",
    "sys/class/cxi_user/cxi0/device/resource0",
    "sys/class/cxi_user/cxi0/device/numa_node",
    "sys/class/cxi_user/cxi0/device/local_cpulist",
    "sys/class/cxi_user/cxi0/device/properties/nid",
    "sys/class/cxi_user/cxi0/device/properties/ats_enabled",
    "sys/class/cxi_user/cxi0/device/properties/rdzv_get_en",
    "sys/class/cxi_user/cxi0/device/properties/amo_remap_to_pcie_fadd",
    "sys/class/cxi_user/cxi0/clients/1/wait/1/intr",
    "sys/class/cxi/cxi0/device/telemetry/hni_pkts_sent_by_tc_0",
    "sys/class/cxi/cxi0/device/telemetry/ALL-in-binary",
    "sys/module/cxi_ss1/parameters/disable_default_svc",
    "sys/module/cxi_ss1/parameters/rmu_pf_max_clients",
    "sys/devices/pci0000:40/0000:41:00.0",
    "proc/self",
    "proc/self/status",
    "proc/self/uid_map",
    "proc/42/status",
    "proc/42/fd/3",
];

/// Contents of files.
const CONTENTS: [&[u8]; 10] = [
    b"",
    b"0\n",
    b"-1\n",
    b"0-15,32-47\n",
    b"0-4294967295\n",
    b"18446744073709551615@1700000000.999999999\n",
    b"5@7.1000000000\n",
    b"Name:\tapp\nUid:\t0\t1000\t0\t0\nGid:\t5\t100\t5\t5\nCapEff:\t000001ffffffffff\n",
    b"         0          0 4294967295\n",
    b"\xFF\xFE",
];

/// Links to what is not in the tree.
const OUTSIDE: [&str; 6] = [
    "/dev/zero",
    "/dev/null",
    "/dev/full",
    "net:[4026531840]",
    "/dev/cxi0 (deleted)",
    "/proc/self/nothing",
];

fn place(input: &mut Input<'_>) -> PathBuf {
    let index = usize::from(input.byte());
    if let Some(known) = PLACES.get(index) {
        return PathBuf::from(known);
    }
    // Another name next to a known one.
    let known = Path::new(PLACES[index % PLACES.len()]);
    let name = input.block();
    let usable = !name.is_empty() && name.len() < 64 && !name.contains(&0) && !name.contains(&b'/');
    let name = if usable && name != b"." && name != b".." { name } else { b"x" };
    known.with_file_name(std::ffi::OsStr::from_bytes(name))
}

/// Most things in a tree.
const MOST: usize = 64;

fn build(root: &Path, input: &mut Input<'_>) {
    for _ in 0..MOST {
        if input.is_empty() {
            return;
        }
        let kind = input.byte() % 6;
        let path = root.join(place(input));
        // What is in the way stays: the tree is as it can be.
        if let Some(directory) = path.parent() {
            let _ = fs::create_dir_all(directory);
        }
        let _ = match kind {
            0 => write(&path, input.choose(&CONTENTS)),
            1 => write(&path, input.block()),
            2 => fs::create_dir_all(&path),
            3 => symlink(root.join(place(input)), &path),
            4 => symlink(input.choose(&OUTSIDE), &path),
            _ => {
                // Large and empty, as the window of a physical function.
                let len = 1_u64 << (input.byte() % 40);
                File::create_new(&path).and_then(|file| file.set_len(len))
            }
        };
    }
}

/// A file that is not there yet: nothing is written through a link.
fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    File::create_new(path)?.write_all(content)
}

/// A tree in memory, where there is such a file system.
fn directory() -> std::io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("cxi-fuzz-");
    builder.tempdir_in("/dev/shm").or_else(|_| builder.tempdir())
}

/// Things in a tree, then everything that looks there.
///
/// # Panics
///
/// Never, unless the library does.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let look = input.byte();
    let Ok(root) = directory() else { return };
    for top in ["dev", "sys", "proc"] {
        if look & 1 == 0 {
            let _ = fs::create_dir(root.path().join(top));
        }
    }
    build(root.path(), &mut input);
    let sys = root.path().join("sys");
    let host = Host::with_roots(root.path().join("dev"), &sys);
    let proc = ProcFs::with_root(root.path().join("proc"));

    for found in told(host.devices()).unwrap_or_default() {
        assert_eq!(found.device().is_ok(), found.info().is_ok());
        let _ = told(found.into_parts());
    }
    if let Some(node) = told(Node::discover(&host)) {
        let _ = node.audit(&AuditOptions::default());
    }
    processes(&proc);

    let Ok(nic) = Nic::new(NicConfig::new()) else { return };
    let Ok(file) = nic.root() else { return };
    let device = Device::with_sysfs(DeviceId::new(0), Arc::new(file), &sys);
    asked(&device, &sys);
}

fn processes(proc: &ProcFs) {
    let users = proc.users_of(DeviceId::new(0));
    assert!(!users.to_string().is_empty());
    let _ = users.among(None);
    let _ = (proc.caller(), proc.in_user_namespace(), proc.has_sys_admin());
}

/// A NIC that answers, with this tree as its sysfs.
fn asked(device: &Device, sys: &Path) {
    let info = told(device.info()).expect("a NIC that answers, whatever sysfs says");
    let json = serde_json::to_string(&info).expect("what a NIC says as JSON");
    let again = serde_json::from_str(&json).ok();
    assert_eq!(again, Some(info), "{json}");
    told(device.driver()).expect("a NIC that answers, whatever sysfs says");
    told(device.availability()).expect("a NIC that answers, whatever sysfs says");
    for counter in told(device.telemetry_counters()).unwrap_or_default() {
        let _ = told(device.telemetry(&counter));
    }
    let _ = told(device.telemetry("../telemetry"));
    let _ = told(device.set_rdzv_get_enabled(true));
    let _ = told(device.set_amo_remap_to_pcie_fadd(None));
    let services = device.services();
    let _ = told(services.set_enabled(ServiceId::DEFAULT, true));
    if let Some(lni) = told(device.alloc_lni(ServiceId::DEFAULT))
        && let Some(wait) = told(lni.alloc_wait())
        && let Ok(interrupt) = wait.open(sys)
    {
        let _ = interrupt.wait(Some(Duration::ZERO));
    }
}

/// The trees of nodes as they are, and as they are not.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let place = |name: &str| {
        let index = PLACES.iter().position(|known| *known == name);
        u8::try_from(index.unwrap_or(0)).unwrap_or(0)
    };
    let pci = place("sys/devices/pci0000:40/0000:41:00.0");
    let device = "sys/class/cxi_user/cxi0/device";
    let of_device = |name: &str| place(&format!("{device}/{name}"));
    let node = [
        vec![0],
        vec![2, pci],
        vec![3, place(device), pci],
        vec![0, of_device("numa_node"), 1],
        vec![0, of_device("local_cpulist"), 3],
        vec![5, of_device("resource0"), 31],
        vec![0, of_device("properties/nid"), 1],
        vec![0, of_device("properties/rdzv_get_en"), 1],
        vec![0, of_device("properties/ats_enabled"), 1],
        vec![0, place(PLACES[17]), 5],
        vec![0, place(PLACES[19]), 1],
        vec![0, place(PLACES[20]), 1],
        vec![0, place(PLACES[16]), 1],
        vec![3, place("proc/self"), place("proc/42/status")],
        vec![0, place("proc/42/status"), 7],
        vec![4, place("proc/42/fd/3"), 4],
        vec![1, place("dev/cxi0"), 3, 1, 2, 3],
    ]
    .concat();
    let zero = (0..PLACES.len()).filter_map(|index| {
        let index = u8::try_from(index).ok()?;
        Some(vec![0, 4, index, 0, 0, 0, 3])
    });
    let endless: Vec<u8> = zero.clone().flatten().collect();
    let looped = (0..PLACES.len()).filter_map(|index| {
        let index = u8::try_from(index).ok()?;
        Some(vec![0, 3, index, index])
    });
    [node, endless].into_iter().chain(zero).chain(looped).collect()
}
