# What the Slingshot scripts of Flux share.
flux=/usr/bin/flux

# Prolog and task, housekeeping, and systemd's units have the id in three spellings.
job=$("$flux" job id --to=f58plain "$FLUX_JOB_ID")

# The VNIs that the jobtap plugin has reserved for the job, with commas between; nothing if it wants none.
# The plugin posts the event for every job: without it nobody knows what the job has, which is a failure.
job_vnis() {
    event=$("$flux" job wait-event --format=json --timeout=30 "$FLUX_JOB_ID" cray-slingshot) || {
        echo "slingshot: no event cray-slingshot of $job: is the jobtap plugin loaded?" >&2
        return 1
    }
    printf '%s\n' "$event" | sed -n 's/.*"vnis": *\[\([0-9, ]*\)\].*/\1/p' | tr -d ' '
}

# The cores that the job has on this node.
job_cores() {
    rank=$("$flux" getattr rank)
    "$flux" job info "$FLUX_JOB_ID" R | "$flux" R decode --include="$rank" --count=core
}
