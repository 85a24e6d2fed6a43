#!/bin/sh
# Prolog= of slurm.conf, with PrologFlags=Alloc: the job's services on every NIC of this node, with the VNIs that the
# controller decided. If other jobs have what it needs, the job waits or ends, and the node stays in use. Any other
# failure drains the node. scontrol show job, or sinfo -R, says why.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml
scontrol=/usr/bin/scontrol
scancel=/usr/bin/scancel
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

# The components of a heterogeneous job are one job, that of their leader.
leader=${SLURM_HET_JOB_ID:-$SLURM_JOB_ID}
code=0
{
    why=$("$cxi" job prolog --job "$leader" --component "$SLURM_JOB_ID" \
        --cpus-per-node "$SLURM_JOB_CPUS_PER_NODE" --nodes "${SLURM_JOB_NODELIST:-$SLURM_NODELIST}" \
        --node "$SLURMD_NODENAME" 2>&1 >&3) || code=$?
} 3>&1
[ -z "$why" ] || printf '%s\n' "$why" >&2
# A command that was killed has printed nothing. slurmd's log says more: who holds the resource, and what to do.
why=$(printf '%s\nerror: cxi job prolog ended with status %s\n' "$why" "$code" |
    sed -n '/^error: /{p;q;}')
why="slingshot: $SLURMD_NODENAME: $why"

# Whether another node of the job has ended or requeued it already.
is_over() {
    case $(field "$leader" State 2> /dev/null) in
    RUNNING | CONFIGURING | '') return 1 ;;
    esac
}

case $code in
0) ;;
4 | 5 | 7) # busy, no decision of the controller, or not enough: no fault of the node
    job="$(field "$leader" Requeue) $(field "$leader" BatchFlag) $(field "$leader" RestartCnt)"
    note "$leader" "$why"
    case $job in
    "1 1 "[0-9]) "$scontrol" requeue "$leader" || is_over ;;
    # It may never fit: it waits until someone looks at it.
    "1 1 "*) "$scontrol" requeuehold "$leader" || is_over ;;
    *)
        "$scontrol" notify "$leader" "$why" || true
        "$scancel" "$leader" || is_over
        ;;
    esac
    ;;
*)
    "$scontrol" update "NodeName=$SLURMD_NODENAME" State=DRAIN "Reason=$why" || true
    exit "$code"
    ;;
esac
