#!/bin/sh
# PrologSlurmctld= of slurm.conf, as SlurmUser: decides which VNIs the job gets, once for all its nodes. If there are
# none, Slurm requeues the job, and scontrol show job says why. No node is drained. A job with invalid options is held.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml
. /etc/cxi/slurm/functions.sh

leader=${SLURM_HET_JOB_ID:-$SLURM_JOB_ID}
# The user's text, which must not be taken for an option.
network=$(field "$SLURM_JOB_ID" Network)
set -- --uid "$SLURM_JOB_UID" --nodes "$SLURM_JOB_NODELIST" "--network=$network"
if [ -n "${SLURM_HET_JOB_ID:-}" ]; then
    set -- --component "$SLURM_JOB_ID" "$@"
fi
code=0
said=$("$cxi" job reserve "$leader" "$@" 2>&1 > /dev/null) || code=$?
if [ "$code" = 0 ]; then
    # What a job that starts lacks; not what was waited for.
    why=$(line warning "$said")
    [ -z "$why" ] || note "$SLURM_JOB_ID" "slingshot: $why"
    exit 0
fi
why="slingshot: $(reason "$said" "cxi job reserve" "$code")"
comment=$why
# Slurm has lost its state. The job waits in the queue until an administrator has ended the earlier one with its number.
[ "$code" != 10 ] || comment="$why. $(printf '%s\n' "$said" | sed -n '/^error: /,$s/^  //p' | tr '\n' ' ')"
note "$SLURM_JOB_ID" "$comment"
# A user at a terminal sees it.
[ "$(field "$SLURM_JOB_ID" BatchFlag)" = 1 ] || "$scontrol" notify "$leader" "$why" || true
# A queued job keeps its options, so invalid ones stay invalid: the job is held until someone cancels it.
[ "$code" != 2 ] || "$scontrol" uhold "$SLURM_JOB_ID"
exit "$code"
