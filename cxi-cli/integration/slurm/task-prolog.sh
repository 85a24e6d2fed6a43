#!/bin/sh
# TaskProlog= of slurm.conf, as the user: what it prints as "export NAME=value" the task gets, as "print" its user sees.
# A task that should have an environment and has none does not start.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml

code=0
environment=$("$cxi" job env --job "${SLURM_HET_JOB_ID:-$SLURM_JOB_ID}" 2>&1) || code=$?
if [ "$code" != 0 ]; then
    printf '%s\n' "$environment" | sed 's/^/print slingshot: /'
    exit "$code"
fi
printf '%s\n' "$environment"
case "$SLURM_PROCID $environment" in
"0 "*SLINGSHOT_CXI_SCALED_BACK=*)
    echo "print slingshot: less than the job asks for of" "${environment##*SLINGSHOT_CXI_SCALED_BACK=}"
    ;;
esac
/etc/cxi/slurm/collectives.sh print
