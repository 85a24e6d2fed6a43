#!/bin/sh
# Epilog= of slurm.conf: destroys the job's services on this node, and tells the controller. If it fails, Slurm drains
# the node; the job's VNIs stay out of use until the health check or cxi job clean has finished it.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml

code=0
"$cxi" job epilog --job "${SLURM_HET_JOB_ID:-$SLURM_JOB_ID}" --component "$SLURM_JOB_ID" --node "$SLURMD_NODENAME" ||
    code=$?
case $code in
0 | 8) ;; # all gone, or there was none
*) exit "$code" ;;
esac
