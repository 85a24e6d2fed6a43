//! An MPI program on a cluster, as a job: `cxi-mock mpi`.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fmt, io};

use clap::Args;
use cxi::Vni;
use cxi::environment::NODE_VARIABLE as NODE_SOCKET;
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
use crate::privileges::may_map_windows;
use crate::traffic::Volume;
use crate::view::DoorKind;
use crate::{agent, input};

/// The VNIs of a job as Slurm has them: the step's, and one for all of the job.
const VNIS: [u16; 2] = [1024, 1025];
/// Longest time that the job's services may stay in use after its programs were killed: the kernel
/// closes the files of a dead process a little later.
const PATIENCE: Duration = Duration::from_secs(2);
/// Directories of libraries, in addition to those that the environment names.
const LIBRARIES: [&str; 5] =
    ["/usr/local/lib", "/usr/local/lib64", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib"];
/// The provider of libfabric that uses the NICs.
const PROVIDER: &str = "cxi";
/// Beginning of the names of jobs' directories.
const JOB_PREFIX: &str = "cxi-mock-";
/// The file in a job's directory that its process has locked.
const LOCK: &str = "lock";
/// Library that a libfabric with the cxi provider needs.
const PROVIDER_NEEDS: &str = "libcxi.so";

/// Starts a launcher. MPICH as built for PyPI has an hwloc that finds no PCI devices, and aborts
/// when libfabric names one. It therefore gets the topology that another hwloc found, if one is
/// installed.
const LAUNCH: &str = r#"
if [ -z "$HWLOC_XMLFILE" ] && lstopo-no-graphics --of xml -f "$0/topology.xml" > "$0/lstopo.log" 2>&1; then
    export HWLOC_XMLFILE="$0/topology.xml" HWLOC_THISSYSTEM=1
fi
exec "$0/bin/cxi-mock" start -- "$@""#;
/// The program that finds the topology.
const LSTOPO: &str = "lstopo-no-graphics";
/// Word in a libcxi that reaches nodes through sockets.
const KNOWS_SOCKETS: &str = NODE_SOCKET;

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
    pub(crate) fn run(mut self) -> Result<u8, ServeError> {
        let signals = Signals::take()?;
        launch::adopt_orphans()?;
        // Every job moves data, for which it maps windows.
        if self.options.view.door.is_none() && !may_map_windows() {
            self.options.view.door = Some(DoorKind::Socket);
        }
        let own = JobDirectory::new().doing(|| "make a temporary directory".to_owned())?;
        let control = Control::open(self.dir.as_deref().unwrap_or(own.path()))?;
        let in_nodes = control.variable();
        let temporary = agent::temporary(in_nodes.1.as_ref(), "n1")?;
        let cluster = Cluster::start(&self.options)?;
        cluster.check_windows()?;
        let nodes = cluster.nodes_up();
        let mut variables =
            vec![in_nodes, (NODE_VARIABLE.into(), "n1".into()), ("TMPDIR".into(), temporary)];
        let mut job = Allocated(Vec::new());
        variables.extend(cluster.allocate_job(&mut job)?);
        variables.extend(launchers(own.path(), &nodes)?);
        let mut program = self.program.program.clone();
        let launcher = program.first().and_then(|name| find(name));
        let by_socket = cluster.view.is_behind_socket();
        variables.extend(libraries(own.path(), launcher.as_deref(), by_socket)?);
        say_what_mpich_needs(launcher.as_deref());
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
        cluster.say_what_moved(status);
        Ok(status)
    }
}

/// A directory of a job, for this user alone, which is removed when this is dropped.
struct JobDirectory {
    directory: TempDir,
    /// Locked as long as this process lives.
    _lock: File,
}

impl JobDirectory {
    /// Makes one, and removes those of jobs that were killed.
    fn new() -> io::Result<Self> {
        let parent = std::path::absolute(env::temp_dir())?;
        remove_dead(&parent);
        let mut directory = Builder::new();
        directory.permissions(Permissions::from_mode(0o700));
        let directory = directory.prefix(JOB_PREFIX).tempdir_in(parent)?;
        // It is locked before it has the name by which others find it.
        let (new, lock) = (directory.path().join("new"), directory.path().join(LOCK));
        let file = File::create(&new)?;
        file.lock()?;
        fs::rename(new, lock)?;
        Ok(Self { directory, _lock: file })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

fn remove_dead(parent: &Path) {
    let user = geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == user);
        if !is_ours || !entry.file_name().as_encoded_bytes().starts_with(JOB_PREFIX.as_bytes()) {
            continue;
        }
        let lock = File::open(entry.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
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
    fn say_what_moved(&self, status: u8) {
        let nodes: Vec<_> = (0..self.members.len())
            .filter_map(|number| Some(self.model.node(number)?.addresses()))
            .collect();
        let mut nics = vec![Volume::default(); nodes.iter().map(Vec::len).max().unwrap_or(0)];
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
            let provider = env::var("FI_PROVIDER").ok().filter(|name| name != PROVIDER);
            let why = match (status, provider) {
                (0, Some(provider)) => {
                    format!("FI_PROVIDER is set to {provider}: unset it, so that it is {PROVIDER}")
                }
                (0, None) => {
                    "Processes on one node use shared memory: use more --nodes. Otherwise, \
                              the library chose another network: FI_LOG_LEVEL=info shows why"
                        .to_owned()
                }
                (status, _) => format!(
                    "The launcher ended with status {status} before anything was sent: what it \
                     printed says why"
                ),
            };
            say(format_args!("WARNING: no NIC was used, so Slingshot was not tested. {why}"));
        }
    }

    /// Refuses a job whose programs could not map windows: they would fail in the middle, with an error
    /// that does not say so.
    fn check_windows(&self) -> Result<(), ServeError> {
        let member = self.member(0);
        let Some(member) = member.as_ref().filter(|_| !self.view.is_behind_socket()) else {
            return Ok(());
        };
        let Some(function) = member.node.server().function(0) else { return Ok(()) };
        let shell = member.shell().doing(|| "ask n1 for a program".to_owned())?;
        // The first program that opens the device shows it.
        agent::run_silently(shell, &["sh", "-c", "exec 3<> /dev/cxi0"])?;
        function.why_unmappable().map_or(Ok(()), |why| {
            Err(ServeError::missing(
                format!("programs could not map windows of the NICs: {why}"),
                "With this project's libcxi, use --door socket.",
            ))
        })
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
        ("FI_PROVIDER", text(PROVIDER)),
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
        ("I_MPI_OFI_PROVIDER", text(PROVIDER)),
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
fn libraries(
    dir: &Path,
    launcher: Option<&Path>,
    by_socket: bool,
) -> Result<Option<Variable>, ServeError> {
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
        if by_socket && !contains(&libcxi, KNOWS_SOCKETS) {
            return Err(ServeError::missing(
                format!(
                    "{} is not this project's libcxi, and no other one reaches a node through a \
                     socket",
                    libcxi.display()
                ),
                "Put the directory of this project's libcxi.so.1 in front in LD_LIBRARY_PATH, or run \
                 as root on Linux 6.9 or later with FUSE.",
            ));
        }
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

/// Says that MPICH may need a program that is not installed.
fn say_what_mpich_needs(launcher: Option<&Path>) {
    let is_hydra = launcher.is_some_and(|file| contains(file, "HYDRA_LAUNCHER"));
    if is_hydra && env::var_os("HWLOC_XMLFILE").is_none() && find(LSTOPO.as_ref()).is_none() {
        say(format_args!(
            "there is no {LSTOPO}, without which MPICH from PyPI aborts (\"Assertion failed ... \
             io_device\"): install hwloc-nox on Debian and Ubuntu, or hwloc on others"
        ));
    }
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
