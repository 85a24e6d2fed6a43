//! The scripts for Slurm, run as Slurm runs them.

use std::fs;

use nix::unistd::geteuid;

use super::site::Site;
use super::{MockNode, Said};

/// A site with a pool of two VNIs, and with fake scontrol and squeue commands for the scripts.
pub(crate) fn site_of_slurm() -> Site {
    let site = Site::new("slurm", "");
    let path = site.directory.path().display().to_string();
    fs::write(
        site.path("cxi.toml"),
        format!(
            "[pool]\nfile = \"{path}/pool.json\"\n[controller]\nrecords = \"{path}/shared\"\nwait = \
             \"100ms\"\n[node]\nretry-busy = \"20ms\"\n[job]\npolicy = \
             \"slurm\"\ntles = false\n"
        ),
    )
    .unwrap();
    site.program(
        "scontrol",
        &format!(
            "#!/bin/sh\ncase \"$1 $2\" in\nshow\\ config) echo \"SlurmUser = $(id -un)($(id -u))\" ;;\nshow\\ hostnames) printf 'n1\\nn2\\n' ;;\nshow*) echo JobId=$(($4 + 1)) Network=other; echo \"JobId=$4 JobName=x $(cat {path}/job) Network=$(cat {path}/network) \
             Command=/bin/x\" ;;\nupdate*) shift; echo \"$*\" >> {path}/updates ;;\n*) echo \"$*\" >> {path}/updates ;;\nesac\n"
        ),
    );
    let field = format!(
        "#!/bin/sh\nof() {{ sed -n \"s/.*$1=\\([^ ]*\\).*/\\1/p\" {path}/job; }}\ncase \"$*\" in\n\
         *--Format*) ;;\n*) echo 4712; exit ;;\nesac\nwhile [ $# -gt 0 ]; do\ncase $1 in\n--jobs) \
         id=$2 ;;\n--Format) field=${{2#*,}}; field=${{field%:*}} ;;\nesac\nshift\ndone\ncase $field in\n\
         Network) value=$(cat {path}/network); [ \"$value\" != '(null)' ] || value= ;;\nadmin_comment) \
         value=$(cat {path}/comment 2> /dev/null) ;;\nState) value=$(of JobState) ;;\nRestartCnt) \
         value=$(of Restarts) ;;\n*) value=$(of $field) ;;\nesac\nprintf '%-20s%-40s\\n' \"$id\" \
         \"$value\"\n"
    );
    site.program("squeue", &field);
    let cancel = format!("#!/bin/sh\necho cancel \"$1\" >> {path}/updates\n");
    site.program("scancel", &cancel);
    // Why the node is drained, if it is.
    let reason = format!("#!/bin/sh\ncat {path}/reason 2> /dev/null || echo none\n");
    site.program("sinfo", &reason);
    fs::write(site.path("job"), "Requeue=1 Restarts=0 BatchFlag=1 ExitCode=0:0").unwrap();
    fs::write(site.path("network"), "(null)").unwrap();
    site.install();
    site.cxi("vni configure 1024-1025").done();
    site
}

/// A node of the site, with the variables that Slurm 22.05 gives to prolog and epilog.
pub(crate) struct SlurmNode<'a> {
    site: &'a Site,
    pub(crate) mock: MockNode,
    name: &'static str,
}

impl SlurmNode<'_> {
    pub(crate) fn run(&self, script: &str, more: &[(&str, &str)]) -> Said {
        let records = format!("{}.jobs", self.mock.file().display());
        let (uid, mock) = (geteuid().to_string(), self.mock.file().display().to_string());
        let mut variables = vec![
            ("SLURM_JOB_ID", "4711"),
            ("SLURM_JOB_UID", &uid),
            ("SLURM_JOB_CPUS_PER_NODE", "2,16"),
            ("SLURM_NODELIST", "n[1-2]"),
            ("SLURM_JOB_NODELIST", "n[1-2]"),
            ("SLURMD_NODENAME", self.name),
            ("SLURM_PROCID", "0"),
            ("CXI_MOCK", &mock),
            ("CXI_RECORDS", &records),
        ];
        variables.extend(more);
        self.site.run(script, &[], &variables)
    }
}

pub(crate) fn slurm_node<'a>(site: &'a Site, name: &'static str) -> SlurmNode<'a> {
    SlurmNode { site, mock: MockNode::new(), name }
}
