#!/bin/sh
# PrologSlurmctld= of slurm.conf, as SlurmUser: decides which VNIs the job gets, once for all its nodes. If there are
# none, Slurm requeues the job, and scontrol show job says why. No node is drained. A job with invalid options is held.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml
scontrol=/usr/bin/scontrol

# One line for each component of a heterogeneous job.
network=$("$scontrol" show job --oneliner "$SLURM_JOB_ID" |
    sed -n "s/^JobId=$SLURM_JOB_ID .* Network=\([^ ]*\).*/\1/p")
set -- --uid "$SLURM_JOB_UID" --nodes "$SLURM_JOB_NODELIST" --network "$network"
if [ -n "${SLURM_HET_JOB_ID:-}" ]; then
    set -- --component "$SLURM_JOB_ID" "$@"
fi
code=0
why=$("$cxi" job reserve "${SLURM_HET_JOB_ID:-$SLURM_JOB_ID}" "$@" 2>&1 > /dev/null) || code=$?
# Why it failed, or what a job that starts lacks; not what was waited for. A command that was killed has printed neither.
case $code in
0) why=$(printf '%s\n' "$why" | sed -e '/^warning: /!d' -e q) ;;
*)
    why=$(printf '%s\nerror: cxi job reserve ended with status %s\n' "$why" "$code" |
        sed -e '/^error: /!d' -e q)
    ;;
esac
[ -z "$why" ] || "$scontrol" update "JobId=$SLURM_JOB_ID" "AdminComment=slingshot: $why" || true
# A queued job keeps its options, so invalid ones stay invalid: the job is held until someone cancels it.
[ "$code" != 2 ] || "$scontrol" uhold "$SLURM_JOB_ID"
exit "$code"
