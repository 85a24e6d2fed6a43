#!/bin/sh
# Destroys the job's services: /etc/flux/system/epilog.d/50-slingshot.sh
set -eu
. "${CXI_FLUX_LIB:-/etc/cxi/flux-job.sh}"

vnis=$(job_vnis)
[ -n "$vnis" ] || exit 0
code=0
cxi job epilog --uid "$FLUX_JOB_USERID" --vni "$vnis" --retry-busy "${CXI_EPILOG_RETRY:-5s}" || code=$?
case $code in
0 | 8) ;; # all gone, or there was none
4) echo "slingshot: services of $FLUX_JOB_ID are still busy, housekeeping tries again" >&2 ;;
*) exit "$code" ;;
esac
