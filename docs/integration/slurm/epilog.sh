#!/bin/sh
# Epilog= of slurm.conf: ends the services of the job on this node, then this node's use of its VNIs.
# If it fails, Slurm drains the node, and the VNIs stay with the job.
set -eu
run=${CXI_RUN:-/run/cxi}
[ -r "$run/$SLURM_JOB_ID.vnis" ] || exit 0

code=0
cxi job epilog --uid "$(cat "$run/$SLURM_JOB_ID.uid")" --vni "$(cat "$run/$SLURM_JOB_ID.vnis")" \
    --retry-busy "${CXI_EPILOG_RETRY:-1m}" || code=$?
case $code in
0 | 8) ;; # all gone, or there was none
*) exit "$code" ;;
esac

# 5: this node has left before, or the job is gone from the pool.
code=0
cxi vni release "$SLURM_JOB_ID" --step "$SLURMD_NODENAME" --nodes "$SLURMD_NODENAME" || code=$?
case $code in
0 | 1 | 5 | 8) ;;
*) exit "$code" ;;
esac
# A node leaves when its services are destroyed: after the last one the VNIs may be used again.
cxi vni confirm "$SLURM_JOB_ID" --all 2> /dev/null || true
rm -f "$run/$SLURM_JOB_ID.vnis" "$run/$SLURM_JOB_ID.uid"
