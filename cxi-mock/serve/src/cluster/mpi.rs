//! An MPI program on a cluster, as a job: `cxi-mock mpi`.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fmt, io};

use clap::Args;
use cxi::Vni;
use cxi_job::{Filter, Grant, JobRequest, Node, ReleaseOptions};
use cxi_mock::Credentials;
use nix::unistd::geteuid;
use tempfile::{Builder, TempDir};

use super::Cluster;
use super::args::{ClusterOptions, without_collectives};
use crate::control::{Control, Served as _};
use crate::error::{Doing, ServeError, say};
use crate::launch::{self, Launch, NODE_VARIABLE, Program, Signals};
use crate::namespaces::{Variable, variables};
use crate::traffic::Moved;
use crate::{agent, input};

/// The VNIs of a job as Slurm has them: the step's, and one for all of the job.
const VNIS: [u16; 2] = [1024, 1025];
/// Longest time that the job's services may stay in use after its programs were killed: the kernel
/// closes the files of a dead process a little later.
const PATIENCE: Duration = Duration::from_secs(2);
/// Directories of libraries, in addition to those that the environment names.
const LIBRARIES: [&str; 5] =
    ["/usr/local/lib", "/usr/local/lib64", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib"];
/// Library that a libfabric with the cxi provider needs.
const PROVIDER_NEEDS: &str = "libcxi.so";

/// Starts a launcher. MPICH as built for PyPI has an hwloc that finds no PCI devices, and aborts
/// when libfabric names one. It therefore gets the topology that another hwloc found, if one is
/// installed.
const LAUNCH: &str = r#"
if [ -z "$HWLOC_XMLFILE" ] && lstopo-no-graphics --of xml -f "$0/topology.xml" > "$0/lstopo.log" 2>&1; then
    export HWLOC_XMLFILE="$0/topology.xml" HWLOC_THISSYSTEM=1
fi
exec "$@""#;

#[derive(Debug, Args)]
pub(crate) struct MpiArguments {
    #[command(flatten)]
    options: ClusterOptions,
    /// Directory for `enter` and `ctl` while the job runs; programs find it in CXI_MOCK_DIR
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Have the launcher print the rank before each line
    #[arg(long)]
    label: bool,
    /// The launcher, such as mpiexec, and its arguments; it runs on n1
    #[command(flatten)]
    program: Program,
}

impl MpiArguments {
    pub(crate) fn run(self) -> Result<u8, ServeError> {
        let signals = Signals::take()?;
        launch::adopt_orphans()?;
        let own = new_directory().doing(|| "make a temporary directory".to_owned())?;
        let control = Control::open(self.dir.as_deref().unwrap_or(own.path()))?;
        let in_nodes = control.variable();
        let temporary = agent::temporary(in_nodes.1.as_ref(), "n1")?;
        let cluster = Cluster::start(&self.options)?;
        let nodes = cluster.nodes_up();
        let mut variables =
            vec![in_nodes, (NODE_VARIABLE.into(), "n1".into()), ("TMPDIR".into(), temporary)];
        let mut job = Allocated(Vec::new());
        variables.extend(cluster.allocate_job(&mut job)?);
        variables.extend(launchers(own.path(), &nodes)?);
        let mut program = self.program.program.clone();
        let launcher = program.first().and_then(|name| find(name));
        variables.extend(libraries(own.path(), launcher.as_deref())?);
        if self.label {
            label(&mut program, launcher.as_deref())?;
        }
        program.splice(0..0, ["sh".into(), "-c".into(), LAUNCH.into(), own.path().into()]);
        let place = cluster.namespaces(Some("n1")).map_err(ServeError::Input)?;
        let _guard = control.serve(Arc::<Cluster>::clone(&cluster))?;
        let collectives = cluster.start_job().unwrap_or_else(|error| {
            without_collectives(&error);
            None
        });
        let of_collectives = collectives.iter().flat_map(|job| job.variables());
        variables.extend(of_collectives.cloned());
        let launch = Launch { program: &program, variables, place: Some(place), label: None };
        let status = launch::run(&[launch], &signals, None)?;
        drop(job);
        cluster.end();
        cluster.say_what_moved();
        Ok(status)
    }
}

/// A new directory, for this user alone, which is removed when this is dropped.
fn new_directory() -> io::Result<TempDir> {
    let parent = std::path::absolute(env::temp_dir())?;
    let mut directory = Builder::new();
    directory.permissions(Permissions::from_mode(0o700));
    directory.prefix("cxi-mock-").tempdir_in(parent)
}

/// Services of a job on each node until this is dropped, as in a scheduler's epilog. Otherwise a
/// `--state` file would keep it for the next job.
struct Allocated(Vec<(Node, Grant)>);

impl Drop for Allocated {
    fn drop(&mut self) {
        for (node, grant) in &self.0 {
            // NICs that are gone have lost their services.
            let report = node.release(&Filter::for_grant(grant), &ReleaseOptions::until(PATIENCE));
            for left in report.left() {
                say(format_args!("{left}"));
            }
        }
    }
}

impl Cluster {
    /// Does on every node what a scheduler's prolog does. Returns the job's environment, as it is
    /// on n1.
    fn allocate_job(&self, job: &mut Allocated) -> Result<Vec<Variable>, ServeError> {
        let vnis = VNIS.into_iter().filter_map(|vni| Vni::new(vni).ok());
        // Programs have this user's number on the nodes.
        let request = JobRequest::builder().uid(geteuid().as_raw()).vnis(vnis);
        let request = request.build().map_err(no_job)?;
        let mut environment = Vec::new();
        for number in (0..self.members.len()).rev() {
            let Some(node) = self.model.node(number) else { continue };
            let devices = node.devices(&Credentials::root());
            let node = Node::from_transports(devices.map_err(no_job)?);
            let grant = node.allocate(&request).map_err(no_job)?;
            let of_node = grant.env();
            job.0.push((node, grant));
            environment = of_node.map_err(no_job)?.vars();
        }
        Ok(variables(environment))
    }

    /// Prints which NICs received messages, so that a test that sent nothing through them is
    /// noticed.
    fn say_what_moved(&self) {
        let nodes: Vec<_> = (0..self.members.len())
            .filter_map(|number| Some(self.model.node(number)?.addresses()))
            .collect();
        let mut nics = vec![Moved::default(); nodes.iter().map(Vec::len).max().unwrap_or(0)];
        for ((_, to), moved) in &*self.common.traffic.moved() {
            let position = |nics: &Vec<u32>| nics.iter().position(|nid| nid == to);
            if let Some(nic) = nodes.iter().find_map(position) {
                nics[nic].messages += moved.messages;
                nics[nic].bytes += moved.bytes;
            }
        }
        let one = |(nic, moved)| format!("cxi{nic}: {moved}");
        let each: Vec<_> = nics.iter().enumerate().map(one).collect();
        say(format_args!("{}", each.join("; ")));
        if nics.iter().all(|moved| moved.messages == 0) {
            say(format_args!(
                "WARNING: no NIC was used, so Slingshot was not tested. Processes on one \
                 node use shared memory: use more --nodes. Otherwise, the library chose another \
                 network: FI_LOG_LEVEL=info shows why"
            ));
        }
    }
}

fn no_job(error: impl fmt::Display) -> ServeError {
    ServeError::Input(format!("no job: {error}"))
}

/// Writes the files by which launchers and libraries use the nodes. Variables that the user has set
/// stay.
fn launchers(dir: &Path, nodes: &[String]) -> Result<Vec<Variable>, ServeError> {
    let what = || format!("prepare the job in {}", dir.display());
    let bin = dir.join("bin");
    fs::create_dir_all(&bin).doing(what)?;
    let this = env::current_exe().doing(what)?;
    for name in ["ssh", "cxi-mock"] {
        let _ = fs::remove_file(bin.join(name));
        symlink(&this, bin.join(name)).doing(what)?;
    }
    let hosts = dir.join("hosts");
    fs::write(&hosts, nodes.join("\n") + "\n").doing(what)?;
    let (ssh, names) = (bin.join("ssh"), nodes.join(" "));
    let (ssh, hosts, names) = (ssh.as_os_str(), hosts.as_os_str(), OsStr::new(&names));
    let text = OsStr::new;
    let all = [
        ("FI_PROVIDER", text("cxi")),
        // MPICH, and MPI libraries that have its launcher.
        ("MPIR_CVAR_CH4_NETMOD", text("ofi")),
        ("HYDRA_LAUNCHER", text("ssh")),
        ("HYDRA_LAUNCHER_EXEC", ssh),
        ("HYDRA_HOST_FILE", hosts),
        // Open MPI 5, and the variables that differ in older versions. Root has to confirm that it
        // means to run.
        ("OMPI_MCA_pml", text("cm")),
        ("OMPI_MCA_mtl", text("ofi")),
        ("OMPI_ALLOW_RUN_AS_ROOT", text("1")),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", text("1")),
        ("PRTE_ALLOW_RUN_AS_ROOT", text("1")),
        ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", text("1")),
        ("PRTE_MCA_plm_ssh_agent", ssh),
        ("PRTE_MCA_prte_default_hostfile", hosts),
        ("PRTE_MCA_rmaps_default_mapping_policy", text("node:OVERSUBSCRIBE")),
        ("OMPI_MCA_plm_rsh_agent", ssh),
        ("OMPI_MCA_orte_default_hostfile", hosts),
        ("OMPI_MCA_rmaps_base_oversubscribe", text("1")),
        // Intel MPI, which comes with its own libfabric.
        ("I_MPI_OFI_LIBRARY_INTERNAL", text("0")),
        ("I_MPI_OFI_PROVIDER", text("cxi")),
        ("I_MPI_HYDRA_BOOTSTRAP", text("ssh")),
        ("I_MPI_HYDRA_BOOTSTRAP_EXEC", ssh),
        ("I_MPI_HYDRA_HOST_FILE", hosts),
        ("I_MPI_PERHOST", text("1")),
        // GASNet.
        ("GASNET_SPAWNFN", text("S")),
        ("GASNET_SSH_CMD", ssh),
        ("GASNET_SSH_SERVERS", names),
    ];
    let unset = all.into_iter().filter(|(name, _)| env::var_os(name).is_none());
    let mut variables = variables(unset);
    variables.push(("PATH".into(), before("PATH", &bin)));
    Ok(variables)
}

/// A list of directories from the environment, with another one in front.
fn before(name: &str, first: &Path) -> OsString {
    let rest = env::var_os(name).unwrap_or_default();
    let rest = env::split_paths(&rest).filter(|path| !path.as_os_str().is_empty());
    env::join_paths([first.to_owned()].into_iter().chain(rest)).unwrap_or_else(|_| first.into())
}

/// Says which libfabric the launcher's programs use, and whether it has the provider. Where its
/// libcxi is missing, that of this project takes its place, if it is near this program.
fn libraries(dir: &Path, launcher: Option<&Path>) -> Result<Option<Variable>, ServeError> {
    let paths = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = env::split_paths(&paths).collect();
    // The libraries that come with an MPI are one or two levels below its own directory.
    let lib = launcher.and_then(|file| Some(file.parent()?.parent()?.join("lib")));
    places.extend(lib.iter().cloned());
    places.extend(lib.iter().flat_map(|lib| directories(lib)));
    places.extend(LIBRARIES.map(PathBuf::from));
    let library = |name: &str| {
        places.iter().map(|place| place.join(name)).into_iter().find(|file| file.is_file())
    };
    let Some(libfabric) = library("libfabric.so.1") else { return Ok(None) };
    if !contains(&libfabric, PROVIDER_NEEDS) {
        say(format_args!(
            "{} has no cxi provider, so programs that use it do not use the NICs: add the \
             directory of a libfabric with the provider to LD_LIBRARY_PATH",
            libfabric.display()
        ));
        return Ok(None);
    }
    if let Some(libcxi) = library("libcxi.so.1") {
        say(format_args!("{}, {}", libfabric.display(), libcxi.display()));
        return Ok(None);
    }
    // Where both are installed under one prefix.
    let this = env::current_exe().unwrap_or_default();
    let ours = this.with_file_name("../lib/libcxi.so.1");
    if !ours.is_file() {
        say(format_args!(
            "{} needs libcxi.so.1, and there is none: add its directory to LD_LIBRARY_PATH, or \
             install this project's, {}",
            libfabric.display(),
            ours.display()
        ));
        return Ok(None);
    }
    let what = || "use this project's libcxi".to_owned();
    let lib = dir.join("lib");
    fs::create_dir_all(&lib).doing(what)?;
    let _ = fs::remove_file(lib.join("libcxi.so.1"));
    symlink(&ours, lib.join("libcxi.so.1")).doing(what)?;
    say(format_args!("{}, {}", libfabric.display(), ours.display()));
    Ok(Some(("LD_LIBRARY_PATH".into(), before("LD_LIBRARY_PATH", &lib))))
}

fn directories(path: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| path.is_dir()).collect()
}

/// Adds the option of the launcher's family by which it prints ranks.
fn label(program: &mut Vec<OsString>, launcher: Option<&Path>) -> Result<(), ServeError> {
    let families: [(&str, &[&str]); 4] = [
        ("HYDRA_LAUNCHER", &["-l"]),
        ("prte", &["--output", "tag"]),
        // The launcher of Open MPI from PyPI only starts a wrapper of that name.
        ("ompirun_", &["--output", "tag"]),
        ("orte", &["--tag-output"]),
    ];
    let mut families = families.into_iter();
    let family = families.find(|(word, _)| launcher.is_some_and(|file| contains(file, word)));
    let (_, options) = family.ok_or_else(|| {
        ServeError::Input(
            "--label: this is no launcher of MPICH, Intel MPI or Open MPI: expected its option \
             among its arguments"
                .to_owned(),
        )
    })?;
    program.splice(1..1, options.iter().map(OsString::from));
    Ok(())
}

/// Says that processes without a launcher are jobs of one rank each.
pub(super) fn warn_of_ranks_alone(program: &[OsString]) {
    let file = program.first().and_then(|name| find(name));
    if file.is_some_and(|file| contains(&file, "libmpi")) {
        say(format_args!(
            "this is an MPI program: without a launcher each process is a job of one rank. One job \
             on all nodes: cxi-mock mpi -- mpiexec -n RANKS PROGRAM"
        ));
    }
}

/// The file of a program, as the shell finds it.
fn find(name: &OsStr) -> Option<PathBuf> {
    let runs = |file: &PathBuf| {
        fs::metadata(file).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let path = env::var_os("PATH").unwrap_or_default();
    let mut files = if name.as_encoded_bytes().contains(&b'/') {
        vec![PathBuf::from(name)]
    } else {
        env::split_paths(&path).map(|dir| dir.join(name)).collect()
    }
    .into_iter();
    fs::canonicalize(files.find(runs)?).ok()
}

fn contains(file: &Path, word: &str) -> bool {
    input::read(file).unwrap_or_default().windows(word.len()).any(|part| part == word.as_bytes())
}
