#!/bin/sh
# TaskEpilog= of slurm.conf, as the user: when the first task of a step has ended, frees the multicast trees that the
# step's processes left, so that the job's next step has them. Slurm ends this after five seconds.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml

[ "$SLURM_PROCID" = 0 ] || exit 0
# The task's environment has the variables that the task prolog set, but this script's does not.
step=${SLURM_STEP_ID:-0}
environment=$("$cxi" job env --job "${SLURM_HET_JOB_ID:-$SLURM_JOB_ID}" --step "$step" 2> /dev/null) || exit 0
eval "$environment"
export CXI_FABRIC_MANAGER_DEADLINE=4s
[ -z "${FI_CXI_COLL_JOB_ID:-}" ] || "$cxi" collectives step-end "$step" > /dev/null || true
