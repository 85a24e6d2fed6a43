#!/bin/sh
# On each node, as root, before its broker starts and every five minutes: finishes what epilogs could not, and destroys the
# services of jobs that have ended; those that no record names are left. A job lives until the controller has ended it: it
# survives the broker if its processes do.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml

code=0
"$cxi" job clean --nics-optional || code=$?
case $code in
0 | 8) ;;
4) echo "slingshot: services without a job are still busy, or the node is" >&2 ;;
*) exit "$code" ;;
esac
