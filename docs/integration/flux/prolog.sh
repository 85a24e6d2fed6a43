#!/bin/sh
# Makes the job's services on every NIC: /etc/flux/system/prolog.d/50-slingshot.sh
set -eu
. "${CXI_FLUX_LIB:-/etc/cxi/flux-job.sh}"

vnis=$(job_vnis)
[ -n "$vnis" ] || exit 0
# What does not fit is scaled back, with a warning in the log.
exec cxi job prolog --uid "$FLUX_JOB_USERID" --vni "$vnis" --cores "$(job_cores)" --mode scale-back
