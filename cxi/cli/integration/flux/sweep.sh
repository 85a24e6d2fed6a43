#!/bin/sh
# Where Flux's first broker runs, as Flux's user, every five minutes: ends jobs that Flux no longer has, for example
# because the broker was killed before it had saved them.
set -eu
cxi=/usr/bin/cxi
flux=/usr/bin/flux
export CXI_CONFIG=/etc/cxi/cxi.toml

code=0
"$cxi" job sweep -- "$flux" jobs -A --count=0 --filter=active --no-header --format='{id.f58plain}' || code=$?
case $code in
0 | 8) ;; # 8: there was none
*) exit "$code" ;;
esac
