#!/bin/sh
# PrologSlurmctld= of slurm.conf, as SlurmUser: decides which VNIs the job gets, once for all its nodes. If there are
# none, Slurm requeues the job, and scontrol show job says why. No node is drained. A job with invalid options is held.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml
scontrol=/usr/bin/scontrol
squeue=/usr/bin/squeue

# A field of a job. Each is asked for alone: the user chooses the job's name, comment and directory, and scontrol show
# job prints them among the fields.
field() {
    "$squeue" --noheader --states=all --jobs "$1" --Format "JobID:20,$2:4096" | sed -n "s/^$1  *//p" | sed -n '1s/ *$//p'
}

# Notes why a job did not start, after what the site has noted.
note() {
    noted=$(field "$1" admin_comment) || noted=
    [ "$noted" != '(null)' ] || noted=
    noted=${noted%%slingshot: *}
    "$scontrol" update "JobId=$1" "AdminComment=$noted${noted:+ }$2" || true
}

network=$(field "$SLURM_JOB_ID" Network)
set -- --uid "$SLURM_JOB_UID" --nodes "$SLURM_JOB_NODELIST" --network "$network"
if [ -n "${SLURM_HET_JOB_ID:-}" ]; then
    set -- --component "$SLURM_JOB_ID" "$@"
fi
code=0
why=$("$cxi" job reserve "${SLURM_HET_JOB_ID:-$SLURM_JOB_ID}" "$@" 2>&1 > /dev/null) || code=$?
# Why it failed, or what a job that starts lacks; not what was waited for. A command that was killed has printed neither.
case $code in
0) why=$(printf '%s\n' "$why" | sed -n '/^warning: /{p;q;}') ;;
*) why=$(printf '%s\nerror: cxi job reserve ended with status %s\n' "$why" "$code" | sed -n '/^error: /{p;q;}') ;;
esac
[ -z "$why" ] || note "$SLURM_JOB_ID" "slingshot: $why"
# A queued job keeps its options, so invalid ones stay invalid: the job is held until someone cancels it.
[ "$code" != 2 ] || "$scontrol" uhold "$SLURM_JOB_ID"
exit "$code"
