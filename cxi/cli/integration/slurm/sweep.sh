#!/bin/sh
# On the controller, while slurmctld runs: ends jobs whose EpilogSlurmctld never ran, for example because slurmctld was down.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml
. /etc/cxi/slurm/functions.sh

# systemd runs this as root, and the records are SlurmUser's.
user=$("$scontrol" show config | sed -n 's/^SlurmUser *= \([^(]*\)(.*/\1/p')
[ -n "$user" ] || exit 1 # slurmctld does not answer, which scontrol has said
[ "$(id -un)" = "$user" ] || exec runuser -u "$user" -- "$0"

code=0
"$cxi" job sweep -- "$squeue" --noheader --all --format=%A || code=$?
case $code in
0 | 8) ;; # 8: there was none
*) exit "$code" ;;
esac
