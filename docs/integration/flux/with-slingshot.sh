#!/bin/sh
# Runs a task with the job's environment, where the shell plugin is not installed: flux run with-slingshot.sh PROGRAM …
set -eu
. "${CXI_FLUX_LIB:-/etc/cxi/flux-job.sh}"

vnis=$(job_vnis)
if [ -n "$vnis" ]; then
    environment=$(cxi job env --uid "$(id -u)" --vni "$vnis")
    eval "$environment"
fi
exec "$@"
