#!/bin/sh
# Tries longer; if it fails, Flux drains the node: /etc/flux/system/housekeeping.d/50-slingshot.sh
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml
. /etc/cxi/flux/functions.sh

code=0
"$cxi" job epilog --job "$job" --nics-optional || code=$?
case $code in
0 | 8) ;;
*) exit "$code" ;;
esac
