#!/bin/sh
# TaskProlog= of slurm.conf, as the user: what it prints as "export NAME=value" the task gets.
set -eu
vnis=${CXI_RUN:-/run/cxi}/$SLURM_JOB_ID.vnis
[ -r "$vnis" ] || exit 0
exec cxi job env --uid "$(id -u)" --vni "$(cat "$vnis")"
