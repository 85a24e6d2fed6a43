#!/bin/sh
# EpilogSlurmctld= of slurm.conf, as SlurmUser: the job has ended. Its VNIs are free when all its nodes have confirmed.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml

code=0
"$cxi" job release "${SLURM_HET_JOB_ID:-$SLURM_JOB_ID}" --component "$SLURM_JOB_ID" || code=$?
case $code in
0 | 8) ;; # ended, or it had before
*) exit "$code" ;;
esac
