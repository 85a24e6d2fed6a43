#!/bin/sh
# On each node, as root, before its broker starts and every five minutes: finishes what epilogs could not, and destroys the
# services of jobs that have ended; those that no record names are left. A job lives until the controller has ended it: it
# survives the broker if its processes do. A node that is not fit for another job is drained; flux resource drain says why.
#
# With --all, by hand, after another scheduler has crashed here or was replaced: lists and destroys also what has a VNI of
# the pool, and no record says who made it.
set -eu
cxi=/usr/bin/cxi
flux=/usr/bin/flux
export CXI_CONFIG=/etc/cxi/cxi.toml

foreign=
case ${1:-} in
'') ;;
--all)
    foreign=--foreign
    "$cxi" job clean --nics-optional --foreign --dry-run || [ $? = 8 ]
    ;;
*)
    echo "usage: $0 [--all]" >&2
    exit 2
    ;;
esac
code=0
"$cxi" job clean --nics-optional $foreign || code=$?
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
0 | 3) ;; # a node without a NIC runs jobs without it
9)
    why=$(printf '%s\n' "$why" | sed -n '/^error: /{p;q;}')
    printf '%s\n' "$why" >&2
    # There may be no broker. A reason that somebody has given is kept.
    rank=$(timeout 10 "$flux" getattr rank 2> /dev/null) || rank=
    [ -z "$rank" ] || timeout 10 "$flux" resource drain --update "$rank" "slingshot: $(uname -n): $why" || true
    ;;
*)
    printf '%s\n' "$why" >&2
    [ "$code" != 0 ] || code=$fit
    ;;
esac
exit "$code"
