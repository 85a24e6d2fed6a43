//! Files about the NICs that programs read, and their changes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Output;

use cxi_test_kit::Directory;
use cxi_tests::node::{
    self, DEVICE, Run, Served, client, errors, need_node, printed, refused, run, script, server,
};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};

/// Commands by which libcxi finds its devices, in shell.
const DISCOVER: &str = r#"
for directory in /sys/class/cxi_user/cxi*; do
    number=${directory#/sys/class/cxi_user/cxi}
    function=$(realpath $directory/device)
    driver=$(basename $(realpath $function/driver))
    size=$(stat -L -c %s $function/resource0)
    [ $size -ge 2147483648 ] && kind=physical || kind=virtual
    [ -e $function/physfn ] && kind="$kind of $(basename $(realpath $function/physfn))"
    echo cxi$number $(basename $function) $driver $kind $(cat $function/vendor $function/device)
done
"#;

#[test]
fn devices_are_found_as_libcxi_does() {
    need_node!();
    assert_eq!(
        script(&["--nics", "2"], DISCOVER),
        "cxi0 0000:41:00.0 cxi_ss1 physical 0x1590 0x0371\n\
         cxi1 0000:42:00.0 cxi_ss1 physical 0x1590 0x0371"
    );
}

#[test]
fn virtual_functions_are_smaller() {
    need_node!();
    let directory = Directory::new();
    let config = directory.write("config.json", r#"{"virtual_functions": 2}"#);
    assert_eq!(
        script(&["--config", &config], DISCOVER),
        "cxi0 0000:41:00.0 cxi_ss1 physical 0x1590 0x0371\n\
         cxi1 0000:41:00.1 cxi_ss1 virtual of 0000:41:00.0 0x1590 0x0371\n\
         cxi2 0000:41:00.2 cxi_ss1 virtual of 0000:41:00.0 0x1590 0x0371"
    );
}

/// As administrators and the driver's tests do it.
#[test]
fn virtual_functions_come_and_go() {
    need_node!();
    let node = Served::start(&["--nics", "2", "--release", "main"]);
    let inside = |script: &str| {
        let script = format!("pf=/sys/class/cxi/cxi0; {script}");
        printed(&node.enter(&["sh", "-euc", &script]))
    };
    let seen = "cat $pf/device/sriov_numvfs; ls /sys/class/cxi | tr '\\n' ' '; \
                ls -d /dev/cxi* | wc -l; ls -d $pf/device/virtfn* 2> /dev/null | wc -l";
    assert_eq!(inside(seen), "0\ncxi0 cxi1 2\n0");
    inside("echo 2 > $pf/device/sriov_numvfs");
    assert_eq!(inside(seen), "2\ncxi0 cxi1 cxi2 cxi3 4\n2");
    assert_eq!(
        script(
            &["--nics", "2"],
            &format!("echo 2 > /sys/class/cxi/cxi1/device/sriov_numvfs; {DISCOVER}")
        ),
        "cxi0 0000:41:00.0 cxi_ss1 physical 0x1590 0x0371\n\
         cxi1 0000:42:00.0 cxi_ss1 physical 0x1590 0x0371\n\
         cxi2 0000:42:00.1 cxi_ss1 virtual of 0000:42:00.0 0x1590 0x0371\n\
         cxi3 0000:42:00.2 cxi_ss1 virtual of 0000:42:00.0 0x1590 0x0371"
    );
    // The kernel allows no other number in between, and none above the maximum.
    for (count, why) in [
        ("3", "busy"),
        ("65", "out of range"),
        ("65535", "out of range"),
        ("65536", "Invalid"),
        ("x", "Invalid"),
        ("-1", "Invalid"),
        ("08", "Invalid"),
    ] {
        let script = format!("/bin/echo {count} > /sys/class/cxi/cxi0/device/sriov_numvfs");
        let refusal = error(&node.enter(&["sh", "-c", &script]));
        assert!(refusal.contains(why), "{count}: {refusal}");
    }
    inside("echo 0x2 > $pf/device/sriov_numvfs");
    assert_eq!(printed(&node.enter(&[client(), "nid", "cxi2"])), "256");

    // A program that has one open when it goes gets EIO.
    let remove = ["sh", "-c", "echo 0 > /sys/class/cxi/cxi0/device/sriov_numvfs"];
    let survive = [&[client(), "survive", "/dev/cxi2"], &remove[..]].concat();
    assert_eq!(printed(&node.enter(&survive)), "ok");
    assert_eq!(inside(seen), "0\ncxi0 cxi1 2\n0");
    inside("echo 64 > $pf/device/sriov_numvfs");
    assert!(inside(seen).ends_with(" 66\n64"), "{}", inside(seen));
    // An unplugged NIC takes them along.
    node.order(&["unplug", "0"]);
    assert_eq!(printed(&node.enter(&["sh", "-c", "ls /dev/cxi*"])), "/dev/cxi1");
    node.order(&["plug", "0"]);
    assert!(inside(seen).ends_with(" 66\n64"), "{}", inside(seen));
    let parent = "cat $pf/vf/63/svc_id; echo 0 > $pf/vf/63/svc_id; ! echo 1 > $pf/vf/63/svc_id; \
                  echo 200 > $pf/vf/0/msg_rate_limit; cat $pf/vf/0/msg_rate_limit";
    assert_eq!(inside(parent), "0\n200");
}

/// MPI libraries choose the NIC that hwloc shows near a process.
#[test]
fn nics_are_near_the_numa_nodes_of_their_topology() {
    need_node!();
    let places = "for nic in 0 1 2 3; do \
                      cd -P /sys/class/net/hsn$nic/device; node=$(cat numa_node); \
                      cmp local_cpulist /sys/devices/system/node/node$node/cpulist; \
                      echo ${PWD%/*} $node; done";
    for (topology, nodes) in [("ex235a", [3, 1, 0, 2]), ("ex254n", [0, 1, 2, 3])] {
        let expected = nodes.map(|node| format!("/sys/devices/pci-cxi-mock {node}"));
        assert_eq!(script(&["--topology", topology], places), expected.join("\n"));
    }
    let hwloc = "command -v lstopo-no-graphics > /dev/null || exit 0; \
                 lstopo-no-graphics --of console --whole-io | \
                 awk '/PCI/ { function_ = $2 } /hsn/ { print $2, function_ }' | sort";
    let below = (0..4).map(|nic| format!("\"hsn{nic}\" 4{}:00.0", nic + 1));
    let below = below.collect::<Vec<_>>().join("\n");
    for topology in ["ex235a", "ex254n"] {
        let found = script(&["--topology", topology], hwloc);
        assert!(found.is_empty() || found == below, "{topology}: {found}");
    }
}

/// NCCL finds out in this way which GPU a NIC is near.
#[test]
fn a_nic_is_found_through_its_bus() {
    need_node!();
    let text = script(
        &["--nics", "2"],
        "cd /sys/class/pci_bus; realpath 0000:42/../../0000:42:00.0 0000:41/device 0000:41/subsystem; \
         cmp 0000:41/cpuaffinity /sys/bus/pci/devices/0000:41:00.0/local_cpus",
    );
    assert_eq!(
        text,
        "/sys/devices/pci-cxi-mock/0000:42:00.0\n/sys/devices/pci-cxi-mock\n/sys/class/pci_bus"
    );
}

#[test]
fn a_network_device_for_libfabric() {
    need_node!();
    let text = script(
        &["--nics", "2"],
        "cd /sys/class/net/hsn1; basename $(realpath device); \
         cat address addr_assign_type operstate carrier speed; ls /sys/class/net/lo/address",
    );
    assert_eq!(
        text,
        "0000:42:00.0\n02:00:00:00:01:01\n3\nup\n1\n400000\n/sys/class/net/lo/address"
    );
}

/// A NIC that reads such memory would wait for the server, and the server for the NIC.
#[test]
#[allow(unsafe_code, reason = "no safe function maps a file privately")]
fn attributes_cannot_be_mapped() {
    need_node!(node::windows());
    let node = Served::start(&[]);
    let mut program = node.command(&["sh", "-c", "echo $$; exec sleep 60"]);
    let mut inside = program.start();
    let mut pid = String::new();
    let said = inside.stdout.take().expect("a pipe");
    BufReader::new(said).read_line(&mut pid).expect("its number");
    let device = format!("/proc/{}/root/sys/class/cxi/cxi0/device", pid.trim());
    let mut refused = Vec::new();
    for name in ["telemetry/atu_at_stall_ccp", "properties/nid", "uevent"] {
        let path = format!("{device}/{name}");
        let file = File::open(&path).expect("it is there");
        let (read, private) = (ProtFlags::READ, MapFlags::PRIVATE);
        // SAFETY: the kernel chooses where, and nothing uses the memory.
        let mapped = unsafe { mmap(std::ptr::null_mut(), 4096, read, private, &file, 0) };
        refused.push(mapped.map(drop));
        assert!(!std::fs::read_to_string(&path).expect("it is read").is_empty());
    }
    inside.kill().expect("it is there");
    inside.wait().expect("it ends");
    assert_eq!(refused, [Err(Errno::NODEV); 3]);
}

#[test]
fn telemetry_has_value_and_time() {
    need_node!();
    let text =
        script(&[], "cd /sys/class/cxi/cxi0/device/telemetry; ls | wc -l; cat cq_cycles_blocked_0");
    let (count, counter) = text.split_once('\n').expect("two lines");
    let names = include_str!("../../cxi-mock/serve/src/sysfs/telemetry.txt");
    assert_eq!(count, names.lines().count().to_string());
    let (value, time) = counter.split_once('@').expect("a time");
    let (seconds, nanoseconds) = time.split_once('.').expect("nanoseconds");
    assert_eq!((value, nanoseconds.len()), ("0", 9));
    assert!(seconds.parse::<u64>().is_ok_and(|seconds| seconds > 1_700_000_000));
}

#[test]
fn properties_are_what_the_device_says() {
    need_node!();
    let directory = Directory::new();
    let config = directory.join("config.json");
    let text = r#"{"totals": {"txqs": 17}, "identity": {"nid": 74565, "link_up": false}}"#;
    std::fs::write(&config, text).expect("the file can be written");
    let text = script(
        &["--config", &config, "--set", "pid_bits=8"],
        "cd /sys/class/cxi_user/cxi0/device/properties; \
         cat num_txqs nid link pid_bits pid_count hpc_mtu cassini_version; \
         cat /sys/module/cxi_ss1/parameters/pid_bits; ls | wc -l",
    );
    assert_eq!(text, "17\n0x12345\n0\n8\n255\n2112\n2.0\n8\n32");
}

#[test]
fn card_and_port_are_those_of_a_cassini_2() {
    need_node!();
    let text = script(
        &[],
        "cd /sys/class/cxi/cxi0/device; \
         cat fru/part_number port/0/media/type port/0/link/speed port/0/link/state \
         port/0/link/config/loopback port/0/link/config/pause_map port/0/llr/state; \
         tail -qn 1 aer_dev_correctable aer_dev_fatal aer_dev_nonfatal",
    );
    assert_eq!(
        text,
        "P68492-001\nelectrical\nCK_400G\nup\noff\npfc\non\n\
         TOTAL_ERR_COR 0\nTOTAL_ERR_FATAL 0\nTOTAL_ERR_NONFATAL 0"
    );
}

/// A Cassini 1 is one everywhere, whether it is named or has its IDs.
#[test]
fn card_and_port_are_those_of_a_cassini_1() {
    need_node!();
    let directory = Directory::new();
    let ids = r#"{"identity": {"vendor_id": 6107, "device_id": 1281}}"#;
    let config = directory.write("config.json", ids);
    for options in [["--card", "cassini-1"], ["--config", &config]] {
        let text = script(
            &options,
            "cd /sys/class/cxi/cxi0/device; cat vendor device current_link_speed fru/part_number \
             port/speed properties/speed properties/cassini_version \
             properties/system_type_identifier net/hsn0/speed; ls telemetry | wc -l",
        );
        assert_eq!(
            text,
            "0x17db\n0x0501\n16.0 GT/s PCIe\nP43012-001\nBS_200G\n200000\n1.1\n1\n200000\n1426"
        );
    }
}

#[test]
fn a_node_is_one_of_a_system() {
    need_node!();
    let seen = "for nic in 0 1 2 3; do \
                    cd -P /sys/class/cxi/cxi$nic/device; \
                    echo ${PWD##*/} $(cat numa_node device properties/nid); \
                    [ $(cat properties/platform) = 0 ]; [ $(cat properties/pct_eq) != 0 ]; \
                    [ -e /run/cxi/cxi$nic/nacks ]; \
                done";
    assert_eq!(
        script(&["--system", "lumi"], seen),
        "0000:c5:00.0 3 0x0501 0x100\n0000:cd:00.0 1 0x0501 0x101\n\
         0000:d5:00.0 0 0x0501 0x102\n0000:dd:00.0 2 0x0501 0x103"
    );
    let alps = script(&["--system", "alps"], seen);
    assert!(alps.ends_with("0030:01:00.0 3 0x0501 0x103"), "{alps}");
    let el_capitan = script(&["--system", "el-capitan"], seen);
    assert!(el_capitan.ends_with(":01:00.0 3 0x0371 0x103"), "{el_capitan}");
}

/// Older releases named the driver `cxi_core`, and some programs look for that.
#[test]
fn the_driver_has_a_second_name() {
    need_node!();
    let find = "cd /sys/module/cxi_core; cat parameters/pid_bits; \
                echo drivers/pci:cxi_core/*:*/net/*; basename $(realpath \
                /sys/bus/pci/drivers/cxi_core/*:*/driver)";
    let found = script(&["--alias", "cxi_core"], find);
    assert_eq!(found, "9\ndrivers/pci:cxi_core/0000:41:00.0/net/hsn0\ncxi_ss1");
    assert_eq!(script(&[], "ls /sys/module | grep cxi_"), "cxi_ss1");
    let output = run(&["--alias", "../x", "--", "true"]);
    assert!(errors(&output).contains("expected letters, digits and _"), "{output:?}");
}

/// As an operator for Slingshot in Kubernetes looks for NICs.
#[test]
fn an_operator_finds_the_nics() {
    need_node!();
    let find = "cd /sys/class/cxi; for nic in cxi*; do \
                    [ -e /dev/$nic ] || continue; \
                    echo $nic $(basename $(readlink $nic/device)) \
                        $(cat $nic/device/properties/nid $nic/device/properties/link) \
                        $(($(cat $nic/device/numa_node) >= 0)); \
                done";
    assert_eq!(
        script(&["--nics", "2"], find),
        "cxi0 0000:41:00.0 0x100 1 1\ncxi1 0000:42:00.0 0x101 1 1"
    );
}

/// As the SR-IOV network device plugin of Kubernetes looks for virtual functions.
#[test]
fn a_device_plugin_finds_virtual_functions() {
    need_node!();
    let find = "cd /sys/bus/pci/devices; for function in *; do \
                    [ $(cat $function/vendor) = 0x1590 ] || continue; \
                    if [ -e $function/physfn ]; then \
                        echo $function of $(basename $(readlink $function/physfn)); \
                    else \
                        echo $function has $(cat $function/sriov_numvfs) \
                            of $(cat $function/sriov_totalvfs): \
                            $(for one in $function/virtfn*; do basename $(readlink $one); done) \
                            $(cat $function/net/*/operstate); \
                    fi; \
                done";
    let script = format!("echo 2 > /sys/class/cxi/cxi0/device/sriov_numvfs; {find}");
    let node = Served::start(&["--release", "main"]);
    assert_eq!(
        printed(&node.enter(&["sh", "-euc", &script])),
        "0000:41:00.0 has 2 of 64: 0000:41:00.1 0000:41:00.2 up\n\
         0000:41:00.1 of 0000:41:00.0\n0000:41:00.2 of 0000:41:00.0"
    );
}

/// As LDMS and the prologs of sites read them.
#[test]
fn a_link_restarts() {
    need_node!();
    let node = Served::start(&["--nics", "2", "--fault", "cxi1:flap=7200s"]);
    let read = |what: &str| {
        let script = format!("cd /sys/class/cxi/cxi1/device; {what}");
        printed(&node.enter(&["sh", "-euc", &script]))
    };
    assert_eq!(
        read("ls link_restarts | tr '\\n' ' '"),
        (0..10).map(|n| format!("time_{n}")).collect::<Vec<_>>().join(" ")
    );
    let ago = "now=$(date +%s); for file in link_restarts/*; do \
                   [ $(cat $file) = 0 ] || echo $(( (now - $(cat $file)) / 3600 )); done";
    assert_eq!(read(ago), "2");
    let carrier = "cat net/hsn1/carrier_changes net/hsn1/carrier_up_count \
                   net/hsn1/carrier_down_count port/link";
    assert_eq!(read(carrier), "3\n2\n1\nup");
    node.order(&["link", "restart", "1"]);
    node.order(&["link", "down", "1"]);
    assert_eq!(read("cat port/link"), "down");
    node.order(&["link", "up", "1"]);
    node.order(&["link", "up", "1"]);
    assert_eq!(read(ago), "2\n0\n0");
    assert_eq!(read(carrier), "7\n4\n3\nup");
    let other = "cat /sys/class/cxi/cxi0/device/link_restarts/* | sort -u";
    assert_eq!(printed(&node.enter(&["sh", "-c", other])), "0");
}

/// A reading that fails once, one that is slow, and a file that vanishes.
#[test]
fn files_have_faults() {
    need_node!();
    let node = Served::start(&["--fault", "read=telemetry/hni_pcs_good_cw:EIO:times=1"]);
    let read = |what: &str| {
        let script = format!("cd /sys/class/cxi/cxi0/device; {what}");
        node.enter(&["sh", "-c", &script])
    };
    let counter = "cat telemetry/hni_pcs_good_cw";
    assert!(error(&read(counter)).contains("Input/output error"));
    assert!(printed(&read(counter)).starts_with("0@"));
    node.order(&["fault", "read=fru:gone"]);
    assert!(error(&read("cat fru/part_number")).contains("No such file"));
    assert_eq!(printed(&read("ls | grep -c fru || true")), "0");
    node.order(&["fault", "read=uc/version:delay=300ms"]);
    let start = std::time::Instant::now();
    assert_eq!(printed(&read("cat uc/version")), "mock");
    assert!(start.elapsed().as_millis() >= 300);
    node.order(&["clear-faults"]);
    printed(&read("cat fru/part_number"));
    refused(&node.ctl(&["fault", "gone"]), "expected read=FILE");
    // A misspelled path would let a test pass that tests nothing.
    for path in ["telemetry/hni_pcs_god_cw", "/sys/class/cxi/cxi0/device/uc", "fru/part_number/x"] {
        refused(&node.ctl(&["fault", &format!("read={path}:EIO")]), "there is no file");
    }
}

/// Copies of files neither fail nor are slow, but they can be gone.
#[test]
fn copies_of_files_have_fewer_faults() {
    need_node!();
    let socket = ["--door", "socket", "--fault"];
    let run = |fault: &str, script: &str| {
        run(&[&socket[..], &[fault, "--", "sh", "-c", script]].concat())
    };
    refused(&run("read=fru:EIO", "true"), "expected a node with --door fuse");
    let gone = run("read=fru:gone", "cat /sys/class/cxi/cxi0/device/fru/part_number");
    assert!(error(&gone).contains("No such file"), "{gone:?}");
}

/// A program that misspells a file which it writes learns that from the errno.
#[test]
fn nothing_is_made_in_sysfs() {
    need_node!();
    let make = |what: &str| {
        let script = format!("cd /sys/class/cxi/cxi0/device; {what}");
        error(&run(&["--", "sh", "-c", &script]))
    };
    assert!(make("/bin/echo 1 > sriov_numvf").contains("Permission denied"));
    assert!(make("mkdir uc/x").contains("not permitted"));
    assert!(make("rm -f uc/reset").contains("not permitted"));
}

/// NICs that a list describes are as different as those that are only counted.
#[test]
fn nics_of_a_list_have_their_own_addresses() {
    need_node!();
    let directory = Directory::new();
    let config = directory.write("config.json", r#"[{}, {"card": "cassini-1"}, {}]"#);
    let addresses = "cd /sys/class/cxi; cat cxi*/device/properties/nid cxi*/device/net/*/address";
    assert_eq!(
        script(&["--config", &config], addresses),
        "0x100\n0x101\n0x102\n02:00:00:00:01:00\n02:00:00:00:01:01\n02:00:00:00:01:02"
    );
}

/// Files that LDMS and slingshot-utils read of HPE's retry handler.
#[test]
fn the_retry_handler_shows_its_files() {
    need_node!();
    let node = Served::start(&["--nics", "2", "--retry-handler"]);
    let inside = |script: &str| printed(&node.enter(&["sh", "-euc", script]));
    let all = "cd /run/cxi/cxi1; cat spt_timeouts nacks config/config_file_path; \
               echo -2 > config/log_increment; ! echo x > config/log_increment; ls | wc -l; \
               cat /sys/class/cxi/cxi1/device/properties/pct_eq";
    assert_eq!(inside(all), "0\n0\n/etc/cxi_rh.conf\n28\n1");
    node.order(&["unplug", "1"]);
    assert_eq!(inside("ls /run/cxi"), "cxi0");
    let shown = "ls /sys/class/cxi/cxi0/device | grep -c retry || true";
    assert_eq!(inside(shown), "0");
    assert_eq!(script(&[], "ls /run/cxi | wc -l"), "0");
}

#[test]
fn an_administrator_chooses_which_errors_are_logged() {
    need_node!();
    let mask = "cd /sys/class/cxi/cxi0/device/err_flgs_irqa/hni_pml; cat no_print_mask; \
                echo e0010003,00000000 > no_print_mask; cat no_print_mask; \
                ! echo nonsense > no_print_mask; cat ../../traffic_classes/active_qos_profile; \
                ls ../../traffic_classes";
    assert_eq!(
        script(&["--set", "active_qos_profile=1"], mask),
        "e0000003,00000000\ne0010003,00000000\nHPC\nactive_qos_profile\nbest_effort\nbulk_data\n\
         dedicated_access\nethernet\nlow_latency\nuntagged_eth_pcp"
    );
}

/// `lspci` finds everything that it asks for.
#[test]
fn the_configuration_space_is_complete() {
    need_node!(cxi_test_kit::has("lspci"));
    let text = script(&["--card", "cassini-1"], "lspci -vv -d 17db: 2>&1");
    for wanted in [
        "Express (v2) Endpoint",
        "MSI-X: Enable+ Count=512",
        "Speed 16GT/s, Width x16",
        "Advanced Error Reporting",
        "Alternative Routing-ID Interpretation",
        "Address Translation Service",
        "Single Root I/O Virtualization",
        "Kernel driver in use: cxi_ss1",
    ] {
        assert!(text.contains(wanted), "{wanted} in\n{text}");
    }
    let functions = "echo 3 > /sys/class/cxi/cxi1/device/sriov_numvfs; lspci -vv -d 17db: 2>&1";
    let text = script(&["--card", "cassini-1", "--nics", "2"], functions);
    for wanted in ["Number of VFs: 0", "Number of VFs: 3", "IOVCtl:\tEnable-", "IOVCtl:\tEnable+"] {
        assert!(text.contains(wanted), "{wanted} in\n{text}");
    }
    let windows = text.lines().filter_map(|line| line.split_once("Region 0: Memory at "));
    let windows: Vec<_> = windows.filter_map(|(_, rest)| rest.split_once(' ')).collect();
    let starts: BTreeSet<_> =
        windows.iter().map(|(start, _)| start.trim_start_matches('0')).collect();
    // Two NICs with one for their virtual functions each, and three of these, the first of which
    // begins where that one does.
    assert_eq!((windows.len(), starts.len()), (7, 6), "{text}");
}

#[test]
fn an_administrator_changes_properties() {
    need_node!();
    let set = "cd /sys/class/cxi_user/cxi0/device/properties; \
               cat rdzv_get_en amo_remap_to_pcie_fadd rgids_avail; \
               echo 0 > rdzv_get_en; echo 5 > amo_remap_to_pcie_fadd; \
               cat rdzv_get_en amo_remap_to_pcie_fadd; ! echo x > rdzv_get_en; \
               cat /sys/module/cxi_ss1/parameters/rdzv_get_en_default";
    assert_eq!(script(&[], set), "1\n-1\n255\n0\n5\nY");
    let read = "cd /sys/class/cxi_user/cxi0/device/properties; cat rdzv_get_en; \
                cat /sys/module/cxi_ss1/parameters/rdzv_get_en_default; ls rgids_avail || true";
    let off = ["--set", "rdzv_get_en_default=N", "--release", "shs-12.0"];
    assert_eq!(script(&off, read), "0\nN");
}

#[test]
fn attributes_change_with_the_nic() {
    need_node!();
    let node = Served::start(&["--nics", "2"]);
    let read = |what: &str| {
        let directory = "/sys/class/cxi_user/cxi1/device";
        let script = format!("cd {directory}; cat {what}");
        printed(&node.enter(&["sh", "-euc", &script]))
    };
    let link = "properties/link port/link net/hsn1/operstate net/hsn1/carrier";
    assert_eq!(read(link), "1\nup\nup\n1");
    node.order(&["link", "down", "1"]);
    assert_eq!(read(link), "0\ndown\ndown\n0");
    node.order(&["link", "up", "1"]);
    assert_eq!(read(link), "1\nup\nup\n1");

    let set = "echo 0xabc > /sys/class/cxi_user/cxi1/device/properties/nid";
    printed(&node.enter(&["sh", "-euc", set]));
    assert_eq!(read("properties/nid net/hsn1/address"), "0xabc\n02:00:00:00:0a:bc");
    let set = "echo nonsense > /sys/class/cxi_user/cxi1/device/properties/nid";
    assert!(!node.enter(&["sh", "-euc", set]).status.success());
}

#[test]
fn a_nic_is_unplugged_and_plugged() {
    need_node!();
    let node = Served::start(&["--nics", "2"]);
    let devices = || printed(&node.enter(&["sh", "-c", "echo /dev/cxi* /sys/class/cxi_user/*"]));
    let all = "/dev/cxi0 /dev/cxi1 /sys/class/cxi_user/cxi0 /sys/class/cxi_user/cxi1";
    assert_eq!(devices(), all);

    // A file that is open when the NIC goes answers EIO from then on.
    let unplug = [node::cxi_mock(), "ctl", "unplug", "0"];
    let mut survive = vec![client(), "survive", DEVICE];
    survive.extend(unplug);
    assert_eq!(printed(&node.enter(&survive)), "ok");
    assert_eq!(devices(), "/dev/cxi1 /sys/class/cxi_user/cxi1");
    assert!(error(&node.enter(&[client(), "count", DEVICE])).contains("No such file"));
    printed(&node.enter(&[client(), "cycle", "/dev/cxi1"]));
    let gone = "ls -d /sys/devices/pci-cxi-mock/* /sys/class/net/hsn0 2>/dev/null || true";
    let left = printed(&node.enter(&["sh", "-c", gone]));
    assert_eq!(left, "/sys/devices/pci-cxi-mock/0000:42:00.0");

    node.order(&["plug", "0"]);
    assert_eq!(devices(), all);
    printed(&node.enter(&[client(), "cycle", DEVICE]));
    refused(&node.ctl(&["plug", "0"]), "already plugged in");
    refused(&node.ctl(&["unplug", "2"]), "the node has 2");
    // As faults, they are the same.
    node.order(&["fault", "cxi0:unplug"]);
    assert_eq!(devices(), "/dev/cxi1 /sys/class/cxi_user/cxi1");
    node.order(&["fault", "plug"]);
    assert_eq!(devices(), all);
}

#[test]
fn faults_come_and_go() {
    need_node!();
    let node = Served::start(&["--fault", "SVC_ALLOC:ENOSPC:times=1"]);
    let cycle = || node.enter(&[client(), "cycle", DEVICE]);
    assert!(error(&cycle()).contains("SVC_ALLOC: ENOSPC"));
    assert_eq!(printed(&cycle()), "ok");
    node.order(&["fault", "LNI_ALLOC:EIO"]);
    assert!(error(&cycle()).contains("LNI_ALLOC: EIO"));
    node.order(&["clear-faults"]);
    refused(&node.ctl(&["fault", "LNI_ALLOC:EWHAT"]), "'EWHAT'");

    // What the mock itself reads is no command: it finds no fault, and uses none up.
    node.order(&["fault", "DEV_INFO_GET:EINVAL:times=1"]);
    let address = "cat /sys/class/cxi/cxi0/device/properties/nic_addr";
    assert_eq!(printed(&node.enter(&["sh", "-c", address])), "0x100");
    let asks = || node.enter(&[client(), "nid", "cxi0"]);
    assert!(error(&asks()).contains("EINVAL"));
    assert_eq!(printed(&asks()), "256");
}

#[test]
fn the_state_shows_what_is_in_use() {
    need_node!();
    let node = Served::start(&["--set", "default_svc_num_tles=100"]);
    let nic = node.nic();
    assert_eq!(nic["device"], "cxi0");
    assert_eq!(nic["plugged"], true);
    assert_eq!(nic["state"]["svc_count"], 1);
    assert_eq!(nic["state"]["resources"]["tles"]["reserved"], 100);
    printed(&node.enter(&[client(), "allocate", DEVICE, "9", "0"]));
    assert_eq!(node.state()["svc_count"], 2);
}

#[test]
fn programs_of_a_run_find_their_node() {
    need_node!();
    let directory = Directory::new();
    let dir = directory.join("node");
    let text = script(
        &["--dir", &dir],
        "$SERVER ctl link down; cat /sys/class/net/hsn0/operstate; $SERVER enter -- echo inside",
    );
    assert_eq!(text, "down\ninside");
    let output = server(["ctl", "state"]).run();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn bad_configurations_say_what_is_wrong() {
    need_node!();
    let directory = Directory::new();
    let config = directory.join("config.json");
    for (text, expected) in [
        ("{", "EOF while parsing"),
        (r#"{"totals": {"txq": 1}}"#, "unknown field totals.txq: expected one of"),
        (r#"[{}, {"release": "shs-99"}]"#, "NIC 1: "),
        ("5", "the NIC is 5: expected an object"),
        (
            r#"[{}, {"identity": {"pci_address": "0000:41:00.0"}}]"#,
            "cxi0 and cxi1 both have the PCI address 0000:41:00.0: expected a different address \
             for each",
        ),
        (
            r#"[{"virtual_functions": 2}, {"identity": {"pci_address": "0000:41:00.2"}}]"#,
            "cxi1 and cxi3 both have the PCI address 0000:41:00.2",
        ),
    ] {
        std::fs::write(&config, text).expect("the file can be written");
        refused(&run(&["--config", &config, "--", "true"]), expected);
    }
}

fn error(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    errors(output)
}
