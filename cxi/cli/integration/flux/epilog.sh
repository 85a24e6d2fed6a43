#!/bin/sh
# Destroys the job's services, and tells the controller: /etc/flux/system/epilog.d/50-slingshot.sh
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml
. /etc/cxi/flux/functions.sh

code=0
"$cxi" job epilog --job "$job" --retry-busy 5s --nics-optional || code=$?
case $code in
0 | 8) ;; # all gone, or there was none
4) echo "slingshot: services of $job are still busy, housekeeping tries again" >&2 ;;
*) exit "$code" ;;
esac
