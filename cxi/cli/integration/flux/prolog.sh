#!/bin/sh
# Makes the job's services on every NIC: /etc/flux/system/prolog.d/50-slingshot.sh
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml
. /etc/cxi/flux/flux-job.sh

vnis=$(job_vnis)
[ -n "$vnis" ] || exit 0
exec "$cxi" job prolog --job "$job" --uid "$FLUX_JOB_USERID" --vni "$vnis" --cores "$(job_cores)" \
    --nics-optional
