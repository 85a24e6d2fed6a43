//! A program, as a scheduler has started it: its variables, its identity, and the VNIs that it was given.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;

use cxi::{Member, Service, kernel_file};
use cxi_site::input;
use cxi_site::proc::{ProcFs, Status};
use serde::Serialize;

/// Far more than the environment of a program has.
const LONGEST: u64 = 4 << 20;

/// The variables and the identity by which a program gets its network.
#[derive(Debug, Clone, Default)]
pub struct Program {
    pub(super) variables: BTreeMap<String, String>,
    /// Its effective user ID.
    pub(super) uid: u32,
    /// Its effective group ID.
    pub(super) gid: u32,
    /// Its supplementary groups, which the driver does not look at.
    pub(super) groups: Vec<u32>,
    /// The inode number of its network namespace.
    netns: Option<u32>,
}

impl Program {
    /// This process.
    #[must_use]
    pub fn this(proc: &ProcFs) -> Self {
        let variables = std::env::vars_os();
        let variables = variables.map(|(name, value)| {
            (name.to_string_lossy().into_owned(), plain(&value.to_string_lossy()))
        });
        Self {
            variables: variables.collect(),
            uid: nix::unistd::geteuid().as_raw(),
            gid: nix::unistd::getegid().as_raw(),
            groups: nix::unistd::getgroups()
                .unwrap_or_default()
                .into_iter()
                .map(nix::unistd::Gid::as_raw)
                .collect(),
            netns: proc.caller().and_then(|caller| caller.netns),
        }
    }

    /// Another process.
    ///
    /// # Errors
    ///
    /// There is no such process, or it is another user's and this process lacks the privilege to
    /// look into it.
    pub fn running(proc: &ProcFs, pid: u32) -> io::Result<Self> {
        let directory = proc.file(&pid.to_string());
        let environment = kernel_file::open_regular(&directory.join("environ"))?;
        let environment = kernel_file::read_bounded(environment, LONGEST)?;
        let status = Status(kernel_file::read(&directory.join("status"))?);
        // The second of the real, effective, saved and file system IDs.
        let effective = |name: &str| status.words(name).nth(1)?.parse().ok();
        let missing = || io::Error::from(io::ErrorKind::InvalidData);
        Ok(Self {
            variables: variables(&environment),
            uid: effective("Uid").ok_or_else(missing)?,
            gid: effective("Gid").ok_or_else(missing)?,
            groups: status.words("Groups").filter_map(|group| group.parse().ok()).collect(),
            netns: proc.process(pid).netns,
        })
    }

    /// The same user with the variables in a file, as `env` prints them, `cxi job env` does, or
    /// `/proc/PID/environ` has them. Slurm's variables name the user.
    ///
    /// # Errors
    ///
    /// It is no regular file, has more than 4 MiB, or cannot be read.
    pub fn with_file(mut self, path: &Path) -> io::Result<Self> {
        let file = input::read(path, LONGEST)?;
        self.variables = variables(&file);
        let id = |name: &str| self.variables.get(name)?.trim().parse().ok();
        let (uid, gid) = (id("SLURM_JOB_UID"), id("SLURM_JOB_GID"));
        self.uid = uid.unwrap_or(self.uid);
        self.gid = gid.unwrap_or(self.gid);
        Ok(self)
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// The entries of a variable.
    pub(super) fn list(&self, name: &str) -> Vec<&str> {
        self.get(name).into_iter().flat_map(|list| list.split(',')).map(str::trim).collect()
    }

    /// The job's VNIs, each with what it is for and who takes it.
    #[must_use]
    pub fn vnis(&self) -> Vec<GivenVni> {
        let in_order = self.list("SLINGSHOT_VNIS").into_iter().enumerate();
        let by_flux = self.get("FLUX_JOB_ID").is_some() && self.get("SLURM_JOB_ID").is_none();
        let annotated = in_order.map(|(index, vni)| GivenVni {
            vni: vni.to_owned(),
            role: match index {
                0 if by_flux => VniRole::Job,
                0 => VniRole::Step,
                1 if !by_flux => VniRole::Job,
                _ => VniRole::Extra,
            },
            taken_by: match index {
                0 => vec!["libfabric"],
                1 => vec!["Mercury"],
                _ => Vec::new(),
            },
        });
        annotated.collect()
    }

    /// The variables that decide: those of the scheduler, of libfabric's provider, and those that
    /// name the job.
    #[must_use]
    pub fn deciding(&self) -> BTreeMap<&str, &str> {
        const JOB: [&str; 8] = [
            "FI_PROVIDER",
            "FLUX_JOB_ID",
            "SLURM_JOB_ID",
            "SLURM_JOB_NUM_NODES",
            "SLURM_NETWORK",
            "SLURM_STEP_ID",
            "SLURM_STEPID",
            "SLURMD_NODENAME",
        ];
        let starts = ["SLINGSHOT_", "FI_CXI_"];
        let decides =
            |name: &str| JOB.contains(&name) || starts.iter().any(|start| name.starts_with(start));
        let all = self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        all.filter(|(name, _)| decides(name)).collect()
    }

    /// The name of the node, if the scheduler set it.
    #[must_use]
    pub fn node_name(&self) -> Option<&str> {
        self.get("SLURMD_NODENAME")
    }

    pub(super) fn admits(&self, service: &Service, netns: Option<u32>) -> Option<Admission> {
        let Some(members) = service.members() else { return Some(Admission::Everyone) };
        let is = |wanted: Member| members.iter().any(|member| member == wanted);
        let netns = netns.or(members.netns());
        if netns.is_some() && netns == self.netns {
            return Some(Admission::Namespace);
        }
        if is(Member::Uid(self.uid)) {
            return Some(Admission::User);
        }
        is(Member::Gid(self.gid)).then_some(Admission::Group)
    }
}

/// A value without control characters, which a terminal obeys.
fn plain(value: &str) -> String {
    value.replace(char::is_control, "\u{fffd}")
}

/// Variables, one a line or ended by NUL bytes.
fn variables(bytes: &[u8]) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(bytes);
    let end = if text.contains('\0') { '\0' } else { '\n' };
    let assignments = text.split(end).filter_map(|line| {
        let line = line.trim_end_matches('\r');
        let line = ["export ", "declare -x "]
            .iter()
            .fold(line, |line, word| line.strip_prefix(word).unwrap_or(line));
        let (name, value) = line.split_once('=')?;
        let quoted =
            ['\'', '"'].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        Some((name.to_owned(), plain(quoted.unwrap_or(value))))
    });
    assignments.collect()
}

/// One of a job's VNIs, with its purpose, and the libraries that take it by default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GivenVni {
    /// As it is written.
    vni: String,
    role: VniRole,
    taken_by: Vec<&'static str>,
}

impl fmt::Display for GivenVni {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VNI {}: {}", self.vni, self.role.name())?;
        if self.taken_by.is_empty() {
            return Ok(());
        }
        write!(f, "; {} takes this one", self.taken_by.join(", "))
    }
}

/// Purpose for which a scheduler gives a VNI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum VniRole {
    /// The processes of one step.
    Step,
    /// All processes of the job.
    Job,
    /// A VNI that the user asked for beyond these.
    Extra,
}

impl VniRole {
    const fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Job => "job",
            Self::Extra => "extra",
        }
    }
}

/// Reason for which a service admits a program, in the order in which libfabric prefers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Admission {
    /// By its network namespace.
    Namespace,
    /// By its effective user ID.
    User,
    /// By its effective group ID.
    Group,
    /// It is open to everyone.
    Everyone,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_come_as_programs_write_them() {
        for text in [
            "SLINGSHOT_VNIS=1036,1037\nA=b\n",
            "export SLINGSHOT_VNIS='1036,1037'\nexport A=b\nunset C\n",
            "declare -x SLINGSHOT_VNIS=\"1036,1037\"\ndeclare -x A=\"b\"\n",
            "SLINGSHOT_VNIS=1036,1037\0A=b\0",
        ] {
            let variables = variables(text.as_bytes());
            let expected = [("A", "b"), ("SLINGSHOT_VNIS", "1036,1037")];
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(variables, BTreeMap::from(expected), "{text:?}");
        }
    }
}
