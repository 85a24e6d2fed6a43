# What Flux's Slingshot scripts of a job share.
flux=/usr/bin/flux

# Prolog and task, housekeeping, and systemd's units spell the job ID in three ways.
job=$("$flux" job id --to=f58plain "$FLUX_JOB_ID")
