#!/bin/sh
# Hardware collectives, where /etc/cxi/collectives names a fabric manager. The other scripts call this with reserve, bring,
# print, end, release or sweep. Software does the same: a job needs a reservation only if the settings say so.
set -eu
settings=/etc/cxi/collectives
[ -r "$settings" ] || exit 0
cxi=/usr/bin/cxi
scontrol=/usr/bin/scontrol
set -a
# shellcheck source=/dev/null
. "$settings"
set +a

# The components of a heterogeneous job are one job, that of their leader.
job=${SLURM_HET_JOB_ID:-${SLURM_JOB_ID:-}}
shared=$directory/$job
own=${here:-/run/cxi/collectives}/$job

# shellcheck disable=SC2086 # options are words
case $1 in
reserve) # on the controller
    count=$("$scontrol" show hostnames "$SLURM_JOB_NODELIST" | wc -l)
    [ "$count" -ge "$nodes" ] || exit 0
    umask 077
    mkdir -p "$directory"
    "$cxi" collectives reserve "$job" --limit "$trees" --min-nodes "$nodes" ${required:-} $access > "$shared.new"
    mv "$shared.new" "$shared"
    ;;
bring) # on each node, as root: the session token is for the job's user alone
    [ -e "$shared" ] || exit 0
    mkdir -p "${own%/*}"
    umask 077
    # Slurm takes values as they are, without quotes.
    sed -n "s/'//g; /^export /p" "$shared" > "$own"
    chown "$SLURM_JOB_UID" "$own"
    ;;
print) # for a task
    [ ! -e "$own" ] || sed "s/^\(export FI_CXI_COLL_JOB_STEP_ID\)=.*/\1=$SLURM_STEP_ID/" "$own"
    ;;
end) # on each node, unless another component of the job still runs there
    "$cxi" job env --job "$job" > /dev/null 2>&1 || rm -f "$own"
    ;;
release) # on the controller; a sweep finds what this cannot release
    [ -e "$shared" ] && [ "$job" = "$SLURM_JOB_ID" ] || exit 0
    rm -f "$shared"
    "$cxi" collectives release "$job" $access > /dev/null || true
    ;;
sweep) # with the jobs that live on standard input
    "$cxi" collectives sweep --live-from - $access > /dev/null || true
    ;;
esac
