#!/bin/sh
# Prolog= of slurm.conf, with PrologFlags=Alloc: the job's services on every NIC of this node, with the VNIs that the
# controller decided.
set -eu
cxi=/usr/bin/cxi
export CXI_CONFIG=/etc/cxi/cxi.toml

# The components of a heterogeneous job are one job, that of their leader.
"$cxi" job prolog --job "${SLURM_HET_JOB_ID:-$SLURM_JOB_ID}" --component "$SLURM_JOB_ID" \
    --cpus-per-node "$SLURM_JOB_CPUS_PER_NODE" --nodes "${SLURM_JOB_NODELIST:-$SLURM_NODELIST}" \
    --node "$SLURMD_NODENAME"
