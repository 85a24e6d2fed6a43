#!/bin/bash
# tree.sh COMMAND...: runs COMMAND in a mount namespace of its own (root needed) in which /sys and
# /dev are small made-up trees: NICs cxi0 to cxi10, most of them with a defect.
set -e
if [ "$1" != --inside ]; then exec unshare -m --propagation private bash "$0" --inside "$@"; fi
shift
t=$(mktemp -d)
mount -t tmpfs none "$t"
for n in "null 1 3" "zero 1 5" "urandom 1 9" "random 1 8"; do read -r a b c <<<"$n"; mknod -m 666 "$t/$a" c "$b" "$c" 2>/dev/null || { touch "$t/$a"; mount --bind "/dev/$a" "$t/$a"; }; done
ln -s /proc/self/fd "$t/fd"
for i in 0 1 3 4 5 6 7 8 9 10; do truncate -s 16M "$t/cxi$i"; done
mount --move "$t" /dev; rmdir "$t"
mount -t tmpfs none /sys
mkdir -p /sys/bus/pci/drivers/cxi_ss1 /sys/bus/pci/drivers/cxi_ss1_with_a_long_name /sys/class/cxi_user/cxi /sys/class/cxi
nic() { # number, pci name, driver, size of resource0 ("" = none)
	local c=/sys/class/cxi_user/cxi$1 d=/sys/devices/fake/$2
	mkdir -p "$c" "$d" "/sys/class/cxi/cxi$1"
	ln -s "$d" "$c/device"; ln -s "$d" "/sys/class/cxi/cxi$1/device"
	[ -z "$3" ] || ln -s "/sys/bus/pci/drivers/$3" "$d/driver"
	[ -z "$4" ] || truncate -s "$4" "$d/resource0"
}
props() { # pci name
	local p=/sys/devices/fake/$1/properties; mkdir -p "$p"
	echo 0x17db > "$p/../vendor"; echo 0x0501 > "$p/../device"
	echo 0x1a2 > "$p/nid"; echo 9 > "$p/pid_bits"; echo 511 > "$p/pid_count"; echo 256 > "$p/pid_granule"
	echo 6 > "$p/min_free_shift"; echo 15 > "$p/rdzv_get_idx"; echo 1.1 > "$p/cassini_version"
	echo 2 > "$p/system_type_identifier"; echo 2 > "$p/rev"; echo 0 > "$p/proto"; echo 1 > "$p/platform"
	echo 0x3 > "$p/uc_nic"; echo 5 > "$p/pct_eq"; echo 2112 > "$p/hpc_mtu"; echo 200 > "$p/speed"; echo 1 > "$p/link"
	echo 2000 > "$p/num_ptes"; echo 1001 > "$p/num_txqs"; echo 502 > "$p/num_tgqs"; echo 2003 > "$p/num_eqs"
	echo 2004 > "$p/num_cts"; echo 1005 > "$p/num_acs"; echo 2006 > "$p/num_tles"; echo 16007 > "$p/num_les"
}
nic 0 0000:c1:00.0 cxi_ss1 2G; props 0000:c1:00.0
D=/sys/devices/fake/0000:c1:00.0
mkdir "$D/fru" "$D/telemetry"
echo "A board whose name is long" > "$D/fru/description"
echo 1 > "$D/properties/amo_remap_to_pcie_fadd"
# counters by their names: the library is told numbers
while read -r name; do echo "$((${#name} * 1000))@1700000000.000000123" > "$D/telemetry/$name"; done < "$(dirname "$0")/counters.txt"
mkdir -p /sys/class/cxi_user/cxi0/clients/3/wait/5; echo > /sys/class/cxi_user/cxi0/clients/3/wait/5/intr
nic 1 0000:c1:00.1 cxi_ss1 1G; ln -s "$D" /sys/devices/fake/0000:c1:00.1/physfn
nic 2 0000:c2:00.0 cxi_ss1 2G
nic 4 0000:c4:00.0 "" 2G
nic 5 weird cxi_ss1 2G
nic 6 0000:c6:00.0 cxi_ss1 ""
nic 7 0000:c7:00.0 cxi_ss1 2G; props 0000:c7:00.0; echo 3.0 > /sys/devices/fake/0000:c7:00.0/properties/cassini_version
nic 8 0000:c8:00.0 cxi_ss1 2G; props 0000:c8:00.0; rm /sys/devices/fake/0000:c8:00.0/properties/system_type_identifier; echo 2.0 > /sys/devices/fake/0000:c8:00.0/properties/cassini_version
E=/sys/devices/fake/0000:c8:00.0/telemetry; mkdir "$E"; echo "5@1700000001.000000009" > "$E/pi_ipd_pri_rtrgt_tlps"
echo "7@1700000001" > "$E/pi_ipd_pri_rtrgt_mrd_tlps"   # no nanoseconds
nic 9 0000:c9:00.0 cxi_ss1 2G; props 0000:c9:00.0; echo none > /sys/devices/fake/0000:c9:00.0/properties/speed
nic 10 0001:02:1f.7 cxi_ss1_with_a_long_name 2147483647
exec "$@"
