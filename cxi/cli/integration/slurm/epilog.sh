#!/bin/sh
# Epilog= of slurm.conf: destroys the job's services on this node, and tells the controller. If it fails, the node is
# drained, and sinfo -R says why; the job's VNIs stay out of use until the health check or cxi job clean has finished it.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml
. /etc/cxi/slurm/functions.sh

code=0
{
    why=$("$cxi" job epilog --job "${SLURM_HET_JOB_ID:-$SLURM_JOB_ID}" --component "$SLURM_JOB_ID" \
        --node "$SLURMD_NODENAME" 2>&1 >&3) || code=$?
} 3>&1
[ -z "$why" ] || printf '%s\n' "$why" >&2
case $code in
0 | 8) ;; # all gone, or there was none
*)
    drain "$(reason "$why" "cxi job epilog" "$code")"
    exit "$code"
    ;;
esac
