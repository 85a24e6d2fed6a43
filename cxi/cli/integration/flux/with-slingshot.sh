#!/bin/sh
# Runs a task with the job's environment, where the shell plugin is not installed: flux run with-slingshot.sh PROGRAM …
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml
. /etc/cxi/flux/flux-job.sh

if [ -n "$(job_vnis)" ]; then
    environment=$("$cxi" job env --job "$job")
    eval "$environment"
fi
exec "$@"
