#!/bin/sh
# Destroys the job's services: /etc/flux/system/epilog.d/50-slingshot.sh
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml

code=0
"$cxi" job epilog --job "$FLUX_JOB_ID" --retry-busy 5s --nics-optional || code=$?
case $code in
0 | 8) ;; # all gone, or there was none
4) echo "slingshot: services of $FLUX_JOB_ID are still busy, housekeeping tries again" >&2 ;;
*) exit "$code" ;;
esac
