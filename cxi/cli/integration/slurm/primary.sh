#!/bin/sh
# SlurmctldPrimaryOnProg= of slurm.conf, as SlurmUser, when a slurmctld takes over: with a pool in etcd,
# changes by the previous controller are refused from now on.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml

code=0
"$cxi" vni lead || code=$?
case $code in
0 | 8) ;; # 8: the pool is in a file
*) exit "$code" ;;
esac
