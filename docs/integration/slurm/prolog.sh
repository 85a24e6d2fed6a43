#!/bin/sh
# Prolog= of slurm.conf, with PrologFlags=Alloc: the job's VNIs, and its services on every NIC of this node.
set -eu
run=${CXI_RUN:-/run/cxi}
mkdir -p "$run"
chmod 755 "$run"

# The pool is shared: the first node of the job reserves, each further one gets the same.
vnis=$(cxi vni reserve "$SLURM_JOB_ID" --step "$SLURMD_NODENAME")
printf '%s\n' "$vnis" > "$run/$SLURM_JOB_ID.vnis.new"
printf '%s\n' "$SLURM_JOB_UID" > "$run/$SLURM_JOB_ID.uid"
mv "$run/$SLURM_JOB_ID.vnis.new" "$run/$SLURM_JOB_ID.vnis"

exec cxi job prolog --uid "$SLURM_JOB_UID" --vni "$vnis" --depth "${SLURM_CPUS_ON_NODE:-$(nproc)}" \
    --policy slurm --mode scale-back --floor 0
