# What the Slingshot scripts of Flux share.
flux=/usr/bin/flux

# Prolog and task, housekeeping, and systemd's units have the id in three spellings.
job=$("$flux" job id --to=f58plain "$FLUX_JOB_ID")
