#!/bin/sh
# The job's services on every NIC of this node, with the VNIs that the controller decided:
# /etc/flux/system/prolog.d/50-slingshot.sh. If other jobs have what it needs, the job gets an exception, and the node
# stays in use. Any other failure drains the node. flux job eventlog, or flux resource drain, says why.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml
. /etc/cxi/flux/functions.sh

# An exception of the job. A fatal one, of severity 0, ends this script, too, and the node is not drained.
raise() {
    "$flux" job raise --type=slingshot --severity="$1" "$FLUX_JOB_ID" "$2"
}

# The plugin of the job manager posts what it decided for every job. A broker that has just started may miss that, so
# cxi job prolog waits for the decision as well. It does not do so alone, because NFS remembers that a file was not there.
"$flux" job wait-event --timeout=10 "$FLUX_JOB_ID" cray-slingshot > /dev/null || true
rank=$("$flux" getattr rank)
cores=$("$flux" job info "$FLUX_JOB_ID" R | "$flux" R decode --include="$rank" --count=core)
code=0
{
    why=$("$cxi" job prolog --job "$job" --cores "$cores" --nics-optional 2>&1 >&3) || code=$?
} 3>&1
[ -z "$why" ] || printf '%s\n' "$why" >&2
# A command that was killed has printed nothing. Flux's log says more: who holds the resource, and what to do.
why=$(printf '%s\nerror: cxi job prolog ended with status %s\n' "$why" "$code" |
    sed -n '/^error: /{p;q;}')
why="$(uname -n): $why"
case $code in
0) ;;
4 | 5 | 7) raise 0 "$why" ;; # busy, no decision of the controller, or not enough: no fault of the node
*)
    "$flux" resource drain --update "$rank" "slingshot: $why" || true
    raise 1 "$why" || true
    exit "$code"
    ;;
esac
