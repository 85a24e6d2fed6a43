#!/bin/sh
# TaskProlog= of slurm.conf, as the user. What it prints as "export NAME=value" is set for the task; "print" is for the user.
# A task that should have an environment and has none does not start.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml

code=0
environment=$("$cxi" job env --job "${SLURM_HET_JOB_ID:-$SLURM_JOB_ID}" --step "${SLURM_STEP_ID:-0}" 2>&1) || code=$?
if [ "$code" != 0 ]; then
    printf '%s\n' "$environment" | sed 's/^/print slingshot: /'
    exit "$code"
fi
# Slurm takes values as they are, without quotes.
printf '%s\n' "$environment" | sed "s/'//g"
[ "$SLURM_PROCID" != 0 ] || printf '%s\n' "$environment" |
    sed -n 's/^export SLINGSHOT_CXI_SCALED_BACK=/print slingshot: less than the job asks for of /p'
