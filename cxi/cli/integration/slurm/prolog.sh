#!/bin/sh
# Prolog= of slurm.conf, with PrologFlags=Alloc: the job's services on every NIC of this node, with the VNIs that the
# controller decided. If other jobs have what it needs, the job waits or ends, and the node stays in use. Any other
# failure drains the node. scontrol show job, or sinfo -R, says why.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml
. /etc/cxi/slurm/functions.sh

# The components of a heterogeneous job are one job, that of their leader.
leader=${SLURM_HET_JOB_ID:-$SLURM_JOB_ID}
code=0
{
    why=$("$cxi" job prolog --job "$leader" --component "$SLURM_JOB_ID" \
        --cpus-per-node "$SLURM_JOB_CPUS_PER_NODE" --nodes "${SLURM_JOB_NODELIST:-$SLURM_NODELIST}" \
        --node "$SLURMD_NODENAME" 2>&1 >&3) || code=$?
} 3>&1
[ -z "$why" ] || printf '%s\n' "$why" >&2
# slurmd's log says more: who holds the resource, and what to do.
why="$SLURMD_NODENAME: $(reason "$why" "cxi job prolog" "$code")"

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
    note "$leader" "slingshot: $why"
    case $job in
    "1 1 "[0-9]) "$scontrol" requeue "$leader" || is_over ;;
    # It may never fit: it waits until someone looks at it.
    "1 1 "*) "$scontrol" requeuehold "$leader" || is_over ;;
    *)
        "$scontrol" notify "$leader" "slingshot: $why" || true
        "$scancel" "$leader" || is_over
        ;;
    esac
    ;;
*)
    drain "$why"
    exit "$code"
    ;;
esac
