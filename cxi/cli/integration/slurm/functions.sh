# Functions that Slurm's Slingshot scripts share, and Slurm's commands that they call.
scontrol=/usr/bin/scontrol
scancel=/usr/bin/scancel
squeue=/usr/bin/squeue
sinfo=/usr/bin/sinfo

# A field of a job. Each is asked for alone: the user chooses the job's name, comment and directory, and scontrol show
# job prints them among the fields.
field() {
    "$squeue" --noheader --states=all --jobs "$1" --Format "JobID:20,$2:4096" | sed -n "s/^$1  *//p" | sed -n '1s/ *$//p'
}

# Notes why a job did not start, after what the site has noted.
note() {
    noted=$(field "$1" admin_comment) || noted=
    [ "$noted" != '(null)' ] || noted=
    noted=${noted%%slingshot: *}
    "$scontrol" update "JobId=$1" "AdminComment=$noted${noted:+ }$2" || true
}

# The first line of what a command has printed that begins with a word. A command that was killed has printed none.
line() {
    printf '%s\n' "$2" | sed -n "/^$1: /{p;q;}"
}

# Why a command failed: what it has printed, its name and its status.
reason() {
    line error "$1
error: $2 ended with status $3"
}

# Gives this node no further job.
drain() {
    "$scontrol" update "NodeName=$SLURMD_NODENAME" State=DRAIN "Reason=slingshot: $1" || true
}
