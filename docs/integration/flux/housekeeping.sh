#!/bin/sh
# Tries longer; if it fails, Flux drains the node: /etc/flux/system/housekeeping.d/50-slingshot.sh
set -eu
. "${CXI_FLUX_LIB:-/etc/cxi/flux-job.sh}"

vnis=$(job_vnis)
if [ -n "$vnis" ]; then
    code=0
    cxi job epilog --uid "$FLUX_JOB_USERID" --vni "$vnis" --retry-busy "${CXI_HOUSEKEEPING_RETRY:-5m}" || code=$?
    case $code in
    0 | 8) ;;
    *) exit "$code" ;;
    esac
fi
# Nodes that jobs do not share: whatever another job left goes too.
if [ -n "${CXI_CLEAN_POOL:-}" ]; then
    code=0
    cxi job clean --vni-pool "$CXI_CLEAN_POOL" --retry-busy "${CXI_HOUSEKEEPING_RETRY:-5m}" || code=$?
    case $code in
    0 | 8) ;;
    *) exit "$code" ;;
    esac
fi
