#!/bin/sh
# HealthCheckProgram= of slurm.conf, and before slurmd starts: finishes what epilogs could not, and confirms jobs
# that a reset has ended. Services that no record names, such as those of another scheduler, are left.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml

code=0
"$cxi" job clean --node "${SLURMD_NODENAME:-$(hostname -s)}" || code=$?
case $code in
0 | 8) ;;
4) echo "slingshot: services without a job are still busy, or the node is" >&2 ;;
*) exit "$code" ;;
esac
