#!/bin/sh
# HealthCheckProgram= of slurm.conf, and before slurmd starts: finishes what epilogs could not, and confirms jobs
# that a reset has ended. Services that no record names, such as those of another scheduler, are left. A node that is
# not fit for another job is drained, and sinfo -R says why; that somebody has drained it for another reason is kept.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml
. /etc/cxi/slurm/functions.sh
SLURMD_NODENAME=${SLURMD_NODENAME:-$(hostname -s)}

code=0
"$cxi" job clean --node "$SLURMD_NODENAME" || code=$?
case $code in
0 | 8) code=0 ;;
4)
    echo "slingshot: services without a job are still busy, or the node is" >&2
    code=0
    ;;
esac
fit=0
why=$("$cxi" audit --preflight --in-use 2>&1) || fit=$?
case $fit in
0) ;;
3 | 9) # no NIC, or something that keeps jobs from running
    why=$(reason "$why" "cxi audit" "$fit")
    printf '%s\n' "$why" >&2
    # slurmctld may be down.
    noted=$(timeout 10 "$sinfo" --noheader --nodes="$SLURMD_NODENAME" --format=%E 2> /dev/null | sed -n 1p)
    case $noted in
    "slingshot: $why") ;;
    none | slingshot:*) drain "$why" ;;
    esac
    ;;
*)
    printf '%s\n' "$why" >&2
    [ "$code" != 0 ] || code=$fit
    ;;
esac
exit "$code"
