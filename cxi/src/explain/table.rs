//! The table of what an error code means: for each code, what was attempted, and the releases that
//! it concerns, the cause, how to look, and what to do.
//!
//! [`explain`](super::explain) takes the reason of a refusal from here, unless it names a service,
//! a resource or a value that was looked up.

use cxi_hw::ReturnCode;
use cxi_ioctl::{DriverRelease, Errno, Opcode};

use super::attempted::Attempted;
use super::code::Code;
use crate::driver::DetectedRelease;
use crate::error::{ErrorKind, Refusal, Shortage};

/// One cause of an error code.
#[derive(Debug)]
#[non_exhaustive]
pub struct Cause {
    /// The code.
    pub code: Code,
    /// The task that failed; `None` for a cause that any call can have.
    pub attempted: Option<Attempted>,
    /// The commands of the driver that it concerns; empty for all that attempt it.
    pub commands: &'static [Opcode],
    /// The releases that it concerns; empty for all.
    pub releases: &'static [DriverRelease],
    /// The cause.
    pub reason: &'static str,
    /// Commands that show it, with `ID`, `JOB`, `VNI` and the like for what has to be filled in.
    pub look: &'static [&'static str],
    /// The remedy.
    pub mend: &'static str,
    /// `true` if the node has contiguous memory decides it.
    pub depends_on_memory: bool,
    says: Says,
}

/// Statement of a cause by an error of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    /// Not from here: it names what was looked up, or the driver is not the one that reports it.
    Otherwise,
    Refused,
    NotPermitted,
    NothingLeft,
}

impl Cause {
    /// Returns whether it concerns a driver, as far as its release is known.
    #[must_use]
    pub fn concerns(&self, release: DetectedRelease) -> bool {
        let bounds = release.bounds().filter(|_| !self.releases.is_empty());
        bounds.is_none_or(|(oldest, newest)| {
            self.releases.iter().any(|release| (oldest..=newest).contains(release))
        })
    }

    /// The kind of the error that states this cause; `None` if what it says has to be looked up.
    fn kind(&'static self) -> Option<ErrorKind> {
        let reason = self.reason;
        match self.says {
            Says::Otherwise => None,
            Says::Refused => Some(ErrorKind::Refused(Refusal::Cause(self))),
            Says::NotPermitted => Some(ErrorKind::NotPermitted(reason.into())),
            Says::NothingLeft => Some(ErrorKind::NotEnough(Shortage::Allocation { what: reason })),
        }
    }
}

/// The reason of a command's refusal, if it needs no looking up.
pub(crate) fn reason(opcode: Opcode, errno: Errno) -> Option<ErrorKind> {
    let of_command = |cause: &&Cause| {
        cause.code == Code::Errno(errno)
            && cause.says != Says::Otherwise
            && cause.commands.contains(&opcode)
    };
    CAUSES.iter().find(of_command)?.kind()
}

/// Every cause in the table.
#[must_use]
pub fn causes() -> &'static [Cause] {
    CAUSES
}

/// The causes of a code, the likeliest first: those of the command or, where the table has none,
/// those of what was attempted or, where it has none, those that any call can have. These go before
/// causes that only commands have which the text does not name. Where nothing is known of the call,
/// all of them.
#[must_use]
pub fn causes_of(
    code: Code,
    attempted: Option<Attempted>,
    command: Option<Opcode>,
) -> Vec<&'static Cause> {
    let mut causes: Vec<&Cause> = CAUSES.iter().filter(|cause| cause.code == code).collect();
    let narrow = |causes: &mut Vec<&'static Cause>, fits: &dyn Fn(&Cause) -> bool| {
        let is_known = causes.iter().any(|cause| fits(cause));
        causes.retain(|cause| !is_known || fits(cause));
        is_known
    };
    if let Some(opcode) = command
        && narrow(&mut causes, &|cause| cause.commands.contains(&opcode))
    {
        return causes;
    }
    causes.retain(|cause| command.is_none() || cause.commands.is_empty());
    if attempted.is_none() || !narrow(&mut causes, &|cause| cause.attempted == attempted) {
        let is_general = |cause: &Cause| cause.attempted.is_none();
        if attempted.is_some() {
            narrow(&mut causes, &is_general);
        }
        causes.sort_by_key(|cause| !is_general(cause));
    } else if causes.iter().all(|cause| !cause.commands.is_empty()) {
        causes
            .extend(CAUSES.iter().filter(|cause| cause.code == code && cause.attempted.is_none()));
    }
    // A function of a library may have more causes than the command that it sends.
    causes.sort_by_key(|cause| !cause.commands.is_empty());
    causes
}

/// The texts by which the errors of this crate state a cause, for recognizing them.
pub(super) fn stated() -> impl Iterator<Item = &'static Cause> {
    CAUSES.iter().filter(|cause| cause.says != Says::Otherwise)
}

const STRICT: &[DriverRelease] =
    &[DriverRelease::Shs13_0, DriverRelease::Shs13_1, DriverRelease::Shs14_0_0];
const BEFORE_14_0_1: &[DriverRelease] = &[
    DriverRelease::Shs12_0,
    DriverRelease::Shs13_0,
    DriverRelease::Shs13_1,
    DriverRelease::Shs14_0_0,
];

const SERVICES: &[&str] = &["cxi service list", "cxi explain"];
const WHO: &[&str] = &["cxi explain busy ID"];
const NICS: &[&str] = &["cxi devices -v", "dmesg | grep -i cxi"];
const LOG: &[&str] = &["FI_LOG_LEVEL=warn PROGRAM 2>&1 | cxi explain -"];
const ENVIRONMENT: &[&str] = &["cxi explain", "cxi explain env"];
const MEMORY: &[&str] = &["cat /proc/buddyinfo", "dmesg | grep -i 'allocation failure'"];
const COLLECTIVES: &[&str] = &["cxi collectives preflight", "env | grep FI_CXI_"];
const USAGE: &[&str] = &["cxi devices", "cxi service usage"];

macro_rules! cause {
    (@code nic $name:ident) => { Code::Nic(ReturnCode::$name) };
    (@code fi $number:literal) => { Code::Libfabric($number) };
    (@code errno $name:ident) => { Code::Errno(Errno::$name) };
    (@attempted any) => { None };
    (@attempted $attempted:ident) => { Some(Attempted::$attempted) };
    (@says) => { Says::Otherwise };
    (@says $says:ident) => { Says::$says };
    (@releases) => { &[] };
    (@releases $releases:ident) => { $releases };
    (@memory) => { false };
    (@memory memory) => { true };
    ($family:ident $code:tt, $attempted:ident $([$($opcode:ident)*])? $($says:ident)?
        $(; in $releases:ident)? $(; looks at $memory:ident)? =>
        $reason:literal, $look:expr, $mend:literal) => {
        Cause {
            code: cause!(@code $family $code),
            attempted: cause!(@attempted $attempted),
            commands: &[$($(Opcode::$opcode),*)?],
            releases: cause!(@releases $($releases)?),
            reason: $reason,
            look: $look,
            mend: $mend,
            depends_on_memory: cause!(@memory $($memory)?),
            says: cause!(@says $($says)?),
        }
    };
}

#[rustfmt::skip]
const CAUSES: &[Cause] = &[
    // Privileges.
    cause!(errno EPERM, CreateService =>
        "changing services needs CAP_SYS_ADMIN in the initial user namespace, and a physical function: root of a rootless container has neither, and a virtual function cannot have services",
        &["cxi explain create --uid UID --vni VNI", "cat /proc/self/uid_map"],
        "Run it as root on the host, from the scheduler's daemon or its prolog."),
    cause!(errno EPERM, ChangeService =>
        "changing services needs CAP_SYS_ADMIN in the initial user namespace, and a physical function",
        &["cat /proc/self/uid_map", "cxi devices -v"],
        "Run it as root on the host, from the scheduler's daemon or its prolog."),
    cause!(errno EPERM, AllocateLni [LNI_ALLOC] =>
        "the caller's effective uid, effective gid and network namespace are not members of the service; supplementary groups do not count, and neither does root",
        &["cxi explain open ID", "cxi explain"],
        "Use the service of this job: pass SLINGSHOT_* on to its processes, and run them as the job's user."),
    cause!(errno EPERM, UseVni [CP_ALLOC TRIG_CP_ALLOC DOMAIN_ALLOC] NotPermitted =>
        "the services that have this VNI do not have the caller as a member",
        SERVICES,
        "Use the VNI of this job's service: the first of SLINGSHOT_VNIS."),
    cause!(errno EPERM, Allocate [CQ_ALLOC PTE_ALLOC] NotPermitted =>
        "Ethernet needs CAP_NET_RAW",
        &["grep CapEff /proc/self/status"],
        "Run it with the capability, or use no Ethernet queue."),
    cause!(errno EPERM, Allocate [EQ_ALLOC] NotPermitted =>
        "the retry handler's queue needs CAP_SYS_ADMIN",
        &["systemctl status 'cxi_rh@*'"],
        "Only the retry handler asks for it, as root."),
    cause!(errno EPERM, Collective =>
        "the set of addresses is changed after the collective group was made from it", LOG,
        "Complete the set before fi_join_collective."),
    cause!(errno EPERM, any =>
        "not permitted: changing services needs CAP_SYS_ADMIN in the initial user namespace, and using one needs to be a member of it",
        &["cxi explain open ID", "cxi service show ID"],
        "Change services as root on the host; use the service of this job."),
    cause!(errno EACCES, MapMemory =>
        "a cached registration of the memory has other access rights than the new one asks for",
        LOG, "Close the earlier registration, or ask for the same access."),
    cause!(errno EACCES, any =>
        "the device node may not be opened: its owner or mode, or the device rules of the container",
        &["ls -l /dev/cxi*", "cxi devices", "cxi cdi"],
        "Give the device node the mode 0666 as the driver's udev rules do; in a container, pass in the device node."),
    // What is not there.
    cause!(errno ENOENT, UseVni [CP_ALLOC TRIG_CP_ALLOC DOMAIN_ALLOC] Refused =>
        "no enabled service has this VNI",
        ENVIRONMENT,
        "Use the VNI of this job's service: the first of SLINGSHOT_VNIS. If the job has ended, its VNI is gone with it."),
    cause!(errno ENOENT, ChangeService [SVC_GET_VNI_RANGE] Refused =>
        "the service lost its VNI range when the driver refused one: destroy it and create another",
        &["cxi service show ID"],
        "Destroy the service, and create another."),
    cause!(errno ENOENT, OpenDevice =>
        "there is no such device node: the driver is not loaded, the NIC is not on the PCI bus, or the container lacks the node",
        &["ls -l /dev/cxi*", "lsmod | grep cxi"],
        "Load the driver (modprobe cxi_ss1); in a container, pass in the device node."),
    cause!(errno ENOENT, Load =>
        "a shared library that the program needs is not on this node, or not in the container: libcxi.so.1 is of libcxi, libfabric.so.1 of libfabric, and the retry handler needs libfuse.so.2",
        &["ldconfig -p | grep -e libcxi -e libfabric", "ldd PROGRAM"],
        "Install the library's package, or name its directory in LD_LIBRARY_PATH; in a container, pass in the host's library."),
    cause!(errno ENOENT, any =>
        "no enabled service has the VNI, or there is no such device node or file",
        &["cxi service list", "cxi devices"],
        "Use the VNI of this job's service; if the node is missing, load the driver."),
    cause!(errno ENODEV, AllocateLni =>
        "libfabric reports ENODEV whatever refused its LNI; the line 'Failed to allocate LNI, ret:' before it has the driver's errno",
        LOG, "Explain that errno: cxi explain 'cxip_alloc_lni: Failed to allocate LNI, ret: NUMBER'."),
    cause!(errno ENODEV, ChooseService =>
        "libfabric could not open the NIC or allocate an LNI of the service that it chose: the service is disabled, does not admit the user, or the NIC is gone",
        ENVIRONMENT, "See what cxi explain says for this user and environment."),
    cause!(errno ENODEV, Allocate =>
        "libfabric enables its domain with the first endpoint, and could not open the NIC or allocate an LNI: the service is disabled, does not admit the user, or the NIC is gone",
        ENVIRONMENT, "See what cxi explain says for this user and environment."),
    cause!(errno ENODEV, any =>
        "no such NIC: its driver is not loaded, or it was removed",
        NICS, "Load the driver (modprobe cxi_ss1), or drain the node."),
    cause!(errno ENXIO, any =>
        "the device node exists, but no driver stands behind it",
        NICS, "Load the driver (modprobe cxi_ss1), or remove the stale device node from the container."),
    cause!(errno ENODATA, Discover =>
        "libfabric found no NIC that fits: none is there, its link is down, no retry handler runs for it, its address is not one of the fabric's, or FI_PROVIDER and the hints exclude it",
        &["cxi devices -v", "systemctl status 'cxi_rh@*'", "FI_LOG_LEVEL=debug fi_info -p cxi"],
        "Start the retry handler, bring the link up, or correct FI_PROVIDER and FI_CXI_DEVICE_NAME."),
    cause!(errno ENODATA, ChangeService [SVC_SET_NETNS] Refused =>
        "the VNIs that the service is said to have are not there; LNIs can still be allocated in the namespace",
        &["cxi service show ID"], "Destroy the service, and create another."),
    cause!(errno ENODATA, any =>
        "nothing fits what was asked for; from fi_getinfo: no NIC, link, retry handler or provider that fits",
        &["cxi devices -v", "FI_LOG_LEVEL=debug fi_info -p cxi"],
        "Start the retry handler, bring the link up, or correct FI_PROVIDER."),
    cause!(errno EIO, Transfer =>
        "the NIC ended the operation with an error; the return code beside it, such as VNI_NOT_FOUND or PTLTE_NOT_FOUND, says which",
        LOG, "Explain the return code."),
    cause!(errno EIO, any =>
        "the NIC was removed or is being reset. What it had is gone",
        NICS, "Open it again once it is back; drain the node if it does not come back."),
    // Calls that came at a wrong time.
    cause!(errno EAGAIN, Transfer =>
        "a queue is full, or nothing has arrived yet: not a failure, the call is to be repeated while progress is made",
        LOG, "If it never ends, the target does not read its events, or FI_CXI_DEFAULT_CQ_SIZE is too small."),
    cause!(errno EAGAIN, Allocate [PTE_TRANSITION_SM] =>
        "the list entry's drop count has changed since it was read", LOG, "Read the drop count again, and repeat."),
    cause!(errno EAGAIN, any =>
        "another command held a lock the whole time, or a queue is full for the moment",
        &["cxi job list"], "Try again after a moment."),
    cause!(errno EINTR, any =>
        "a signal arrived while the call waited",
        &["strace -f -e signal=all PROGRAM"], "Repeat the call."),
    cause!(errno EBUSY, ChangeService =>
        "processes have LNIs of the service, or another one reads its usage at this moment. A network namespace and exclusive communication profiles can only be set while it is disabled",
        &["cxi explain busy ID"],
        "Wait for the processes, or end those of jobs that are over: cxi service destroy ID --wait 10, cxi job epilog --job JOB --retry-busy 1m."),
    cause!(errno EBUSY, Close =>
        "something that depends on it is still open: libfabric closes from the endpoint to the fabric, and an LNI goes after all that was allocated from it",
        LOG, "Close what was opened from it first."),
    cause!(errno EBUSY, any =>
        "still in use: processes have LNIs of the service, or what is to be freed has others below it",
        WHO, "Wait for the processes, or end those of jobs that are over: cxi service destroy ID --wait 10, cxi job epilog --job JOB --retry-busy 1m."),
    cause!(errno EALREADY, any =>
        "it has been done already: the CSRs of a NIC are mapped once for each open file",
        LOG, "Use what the first call returned."),
    cause!(errno EINPROGRESS, any =>
        "the operation goes on by itself, as joining a collective group does",
        LOG, "Wait for its event."),
    cause!(errno ETIMEDOUT, any =>
        "no answer arrived in time: from the NIC, the fabric manager, or a peer that is not ready to receive",
        &["cxi devices -v", "dmesg | grep -i cxi"],
        "Check the link and the peer, and try again."),
    cause!(errno ECANCELED, any =>
        "the operation was canceled, by fi_cancel or because its endpoint was closed",
        LOG, "Look for the first error before it."),
    // What is taken.
    cause!(errno EEXIST, CreateService; in STRICT =>
        "another service has one of the VNIs, even if it is disabled; SHS 12.0, 14.0.1 and later allow a single VNI in several services, but no release a range that overlaps",
        &["cxi service list", "cxi audit"],
        "Give the job other VNIs; reuse a VNI only after its services are destroyed on every node."),
    cause!(errno EEXIST, CreateService =>
        "a range of VNIs overlaps a VNI of another service, or a process holds the VNI outside any service",
        &["cxi service list", "cxi audit"],
        "Give the job other VNIs, or end the processes of old jobs."),
    cause!(errno EEXIST, ChangeService [SVC_SET_NETNS] Refused =>
        "the service has a uid or gid or this namespace as a member, or is open to everyone",
        &["cxi service show ID"], "Create the service with the network namespace as its only member."),
    cause!(errno EEXIST, ChangeService =>
        "another service has one of the VNIs", &["cxi service list", "cxi audit"], "Choose other VNIs."),
    cause!(errno EEXIST, UseVni [CP_ALLOC TRIG_CP_ALLOC] Refused =>
        "the VNI belongs to a service that is disabled or does not admit the caller",
        SERVICES, "Use the VNI of this job's service: the first of SLINGSHOT_VNIS."),
    cause!(errno EEXIST, UseVni [DOMAIN_ALLOC] Refused; in BEFORE_14_0_1 =>
        "the PID is taken on this VNI; with drivers older than SHS 14.0.1 this is also the answer for a VNI whose service is disabled or does not admit the caller",
        SERVICES, "Let libfabric choose the PID, or end the other process; use the VNI of this job's service."),
    cause!(errno EEXIST, UseVni [DOMAIN_RESERVE] Refused =>
        "there is no free run of that many PIDs from there on",
        SERVICES, "Ask for fewer PIDs, or let the driver choose the first."),
    cause!(errno EEXIST, Allocate [EQ_ALLOC] Refused =>
        "the device already has a retry handler's queue",
        &["systemctl status 'cxi_rh@*'"], "One retry handler runs for each NIC."),
    cause!(errno EEXIST, any =>
        "taken: another service has the VNI and does not share it, or another process has the PID",
        &["cxi service list", "cxi audit"], "Choose another VNI or PID, or end what has it."),
    cause!(errno EADDRINUSE, any =>
        "another endpoint has the portal index: two endpoints of a process use the same PID",
        LOG, "Let libfabric choose the port (service) of each endpoint."),
    cause!(errno EADDRNOTAVAIL, any =>
        "the sender's address is not in the address vector",
        LOG, "Insert the addresses of all peers, with this job's VNI, before receiving."),
    // Values.
    cause!(errno EINVAL, CreateService =>
        "the driver refuses the description of the service: a maximum is below its reservation or above what the NIC has, a VNI is 0, more than four VNIs, or a type of member that it does not know. HPE's recommended 2048 TXQs and 1024 TGQs exceed a Cassini 1",
        &["cxi explain create --uid UID --vni VNI", "cxi devices -v"],
        "Compare the limits with the totals of the NIC; cxi explain create names what is wrong."),
    cause!(errno EINVAL, ChangeService [SVC_UPDATE SVC_ENABLE] =>
        "there is no such service, or the VNIs that it is said to have are not there: setting its range, or an update, went wrong",
        &["cxi service list", "cxi service show ID"],
        "If it exists, destroy it and create another."),
    cause!(errno EINVAL, ChangeService =>
        "there is no such service, or this release of the driver does not know the command",
        &["cxi service list", "cxi devices -v"],
        "Look for the job's service by its VNIs: IDs are reused. If it is gone, nothing is left to destroy."),
    cause!(errno EINVAL, AllocateLni =>
        "there is no such service: SLINGSHOT_SVC_IDS names one that is gone, often because it was exported in another step or on another node",
        ENVIRONMENT,
        "Start the program in a step of its own (srun), so that it gets the service of that step."),
    cause!(errno EINVAL, UseVni [DOMAIN_RESERVE] Refused =>
        "no enabled service that admits the caller has this VNI",
        ENVIRONMENT, "Use the VNI of this job's service: the first of SLINGSHOT_VNIS."),
    cause!(errno EINVAL, UseVni =>
        "the service does not allow the VNI or the traffic class, or the NIC has no such class and type",
        &["cxi service show ID", "cxi explain env"],
        "Use a VNI and a class of the service: SLINGSHOT_VNIS and SLINGSHOT_TCS."),
    cause!(errno EINVAL, Allocate =>
        "libfabric or the driver refuses an attribute of the queue or endpoint: a VNI or authorization key that the job's service does not have, a size beyond the limit, or an unsupported combination of capabilities",
        LOG, "Correct what the line before it names; for the VNI, see cxi explain env."),
    cause!(errno EINVAL, Allocate [CQ_ALLOC] Refused =>
        "the RGID has no communication profile with this LCID", LOG, "Allocate the profile from the same LNI first."),
    cause!(errno EINVAL, Allocate [EQ_ALLOC] Refused =>
        "a fill level is above 100 or below 0 percent, or there are more than four, or no fewer slots are reserved than the queue has, or more than 16383",
        LOG, "Correct the levels and slots of the event queue."),
    cause!(errno EINVAL, Allocate [EQ_RESIZE_COMPLETE] Refused =>
        "no resize is in progress: resize first", LOG, "Start the resize before it is completed."),
    cause!(errno EINVAL, MapMemory =>
        "libfabric or the driver refuses the registration: memory of a GPU whose library libfabric was built without or has not loaded, or flags and an access that contradict each other",
        LOG, "See with fi_info --version and FI_HMEM whether the GPU's memory is supported; otherwise correct the flags."),
    cause!(errno EINVAL, MapMemory [ATU_MAP] Refused =>
        "the flags or page sizes contradict each other", LOG, "Map with flags that the driver's header allows together."),
    cause!(errno EINVAL, ChooseService =>
        "libfabric does not accept the service or the VNI that it was given: the service is gone, does not have the first VNI of SLINGSHOT_VNIS, or has no VNI at all; often the variables are those of another step or node",
        ENVIRONMENT,
        "Start the program in a step of its own (srun), so that it gets the service of that step."),
    cause!(errno EINVAL, Discover =>
        "the hints, or a variable FI_CXI_*, have a value that the provider does not take", LOG,
        "Correct what the line before it names."),
    cause!(errno EINVAL, any =>
        "a value is refused: there is no such service, it is out of range, or this release of the driver does not know the command",
        &["cxi service list", "cxi devices -v"],
        "Compare the call with the service and the NIC."),
    cause!(errno EFAULT, MapMemory =>
        "the memory is not mapped in this process, or not as the access asks for: freed memory, a guard page, or memory of a GPU without dmabuf",
        LOG, "Register memory that stays mapped until it is unregistered; for a GPU, see FI_HMEM and FI_HMEM_CUDA_USE_DMABUF."),
    cause!(errno EFAULT, any =>
        "an address in the command is not memory of the process: the command, or the place of its answer",
        LOG, "Pass memory that is mapped and writable. A program that forks must not use its parent's NIC."),
    cause!(errno E2BIG, any =>
        "a command queue may have at most 65536 commands",
        LOG, "Ask for a shorter queue."),
    cause!(errno EOVERFLOW, any =>
        "the range of memory ends beyond the end of the address space",
        LOG, "Correct the address or the length."),
    cause!(errno ERANGE, any =>
        "a number is out of range", LOG, "Use a value that the message or the documentation allows."),
    cause!(errno EBADF, any =>
        "the file descriptor is not that of an open NIC: closed, or used after a fork or an exec",
        LOG, "Keep the NIC open while it is used; a buffer of a GPU needs its dmabuf descriptor open."),
    cause!(errno EBADR, CreateService =>
        "a member of the service has the ID 4294967295 (-1), which stands for nobody",
        &["cxi explain create --uid UID --vni VNI"], "Name a real uid, gid or network namespace."),
    cause!(errno EBADR, ChangeService =>
        "a member or network namespace has the ID 4294967295 (-1), which stands for nobody",
        &["cxi service show ID"], "Name a real network namespace."),
    cause!(errno EBADR, any =>
        "the service has no entry for this type of resource: it may have none of it",
        &["cxi service usage", "cxi service show ID"],
        "Create the job's service with a limit for this resource."),
    cause!(errno ENOTDIR, any =>
        "a part of the path is not a directory, often of a variable that names a file",
        &["cxi config check"], "Correct the path."),
    cause!(errno ENOTTY, any =>
        "the file is not a device of the driver, which takes its commands by write and not by ioctl",
        &["ls -l /dev/cxi*"], "Open /dev/cxiN."),
    cause!(errno EMSGSIZE, Transfer =>
        "a message was longer than the buffer that was posted for it (the return code beside it is OK), or longer than the endpoint sends, or than fi_inject takes",
        LOG, "Post a longer buffer: in MPI, the counts of send and receive do not match. Otherwise send it in parts; see max_msg_size and inject_size of fi_info."),
    cause!(errno EMSGSIZE, any =>
        "the message is longer than the endpoint sends, or than fi_inject takes",
        LOG, "Send it in parts; see max_msg_size and inject_size of fi_info."),
    cause!(errno EKEYREJECTED, any =>
        "the key of a memory region is not one that the provider accepts, or the peer's is wrong",
        LOG, "Use keys below 2^32, or FI_MR_PROV_KEY; exchange the peer's key after it was registered."),
    // What has run out.
    cause!(errno ENOMEM, Allocate; looks at memory =>
        "the kernel has no memory for it. The first queue of an address context needs 512 KiB of contiguous memory, which a node that has run for long may lack although much is free",
        MEMORY, "Compact the memory: echo 1 > /proc/sys/vm/compact_memory (root), drop caches, or restart the node."),
    cause!(errno ENOMEM, MapMemory; looks at memory =>
        "the memory cannot be pinned or mapped: the limit of locked memory (ulimit -l), no free pages, or no 512 KiB of contiguous memory for a new address context",
        &["ulimit -l", "cat /proc/buddyinfo", "dmesg | grep -i 'allocation failure'"],
        "Raise the limit of locked memory, register less, or compact the memory: echo 1 > /proc/sys/vm/compact_memory (root)."),
    cause!(errno ENOMEM, any; looks at memory =>
        "the kernel, or libfabric, has no memory for it. An address context of the NIC needs 512 KiB of contiguous memory, which a node that has run for long may lack although much is free",
        &["cat /proc/buddyinfo", "free -m", "ulimit -l"],
        "Compact the memory: echo 1 > /proc/sys/vm/compact_memory (root), drop caches, or restart the node."),
    cause!(errno EMFILE, any =>
        "the process has too many files open (ulimit -n); each open NIC is one, and each queue that is waited for",
        &["ulimit -n", "ls /proc/PID/fd | wc -l"], "Raise the limit, or close what is not used."),
    cause!(errno ENOSPC, CreateService =>
        "the NIC has not enough of a resource left for what the service reserves: another service has reserved it, all TLE pools (three for services) are taken, or the table of VNIs is full. The driver stops at the first that is short, so messages that name several are wrong",
        &["cxi explain create --uid UID --vni VNI --limit txqs=16:64", "cxi devices", "cxi service usage", "cxi job plan --cores N"],
        "End services of jobs that are over (cxi audit names them), or reserve less: --no-tles, --mode=scale-back."),
    cause!(errno ENOSPC, ChangeService =>
        "the NIC's table of VNIs is full: each VNI of an enabled service takes one entry",
        &["cxi service list", "cxi audit"], "Give jobs fewer VNIs, or a range instead of a list."),
    cause!(errno ENOSPC, AllocateLni [LNI_ALLOC] NothingLeft =>
        "all 255 RGIDs of the NIC are in use",
        &["cxi devices", "cxi explain busy ID"],
        "Run fewer processes on this NIC, or let several LNIs share an RGID (LNIs per RGID of the service)."),
    cause!(errno ENOSPC, AllocateLni =>
        "libfabric says ENOSPC whatever refused its LNI: the service is disabled (EKEYREVOKED), does not admit the user (EPERM), is gone (EINVAL), or all 255 RGIDs of the NIC are in use. The line 'Failed to allocate LNI, ret:' has the driver's errno",
        &["cxi explain", "cxi explain open ID", "cxi devices"],
        "If the driver said ENOSPC: run fewer processes on this NIC. Otherwise see what cxi explain says for this user and environment."),
    cause!(errno ENOSPC, UseVni [CP_ALLOC TRIG_CP_ALLOC] NothingLeft =>
        "the NIC's 255 communication profiles are in use, or all suitable LCIDs of the RGID",
        USAGE, "Use fewer VNIs and traffic classes in a process, or end other processes."),
    cause!(errno ENOSPC, UseVni [DOMAIN_ALLOC] NothingLeft =>
        "no PID of this VNI is free", SERVICES, "Open fewer endpoints on this VNI."),
    cause!(errno ENOSPC, UseVni [DOMAIN_RESERVE] NothingLeft =>
        "this VNI has no free run of that many PIDs", SERVICES, "Ask for fewer PIDs."),
    cause!(errno ENOSPC, UseVni =>
        "the communication profiles or PIDs of the VNI are used up",
        USAGE, "Use fewer VNIs, traffic classes and endpoints in a process."),
    cause!(errno ENOSPC, Allocate =>
        "the service has used up what its limits allow of queues, counters or portal table entries, or the NIC has none left. Libfabric also says ENOSPC for whatever refused a command queue; the line before it has the driver's errno",
        &["cxi service usage", "cxi devices"],
        "Open fewer endpoints, or give the job's service higher limits when it is created."),
    cause!(errno ENOSPC, MapMemory =>
        "the service, its RGID (8) or the NIC has no address context left",
        USAGE, "Let the job's processes use fewer ACs, or give its service more when it is created."),
    cause!(errno ENOSPC, Transfer =>
        "a queue or table of the endpoint is full", LOG, "Make progress more often, or make the queues longer."),
    cause!(errno ENOSPC, any =>
        "not enough of a resource is left: on the NIC for what the service reserves, or in the service for what a process allocates. TLE pools (three for services) and RGIDs can also run out",
        &["cxi devices", "cxi service usage", "cxi job plan --cores N", "cxi explain create --uid UID --vni VNI --limit txqs=16:64"],
        "End services of jobs that are over (cxi audit names them), reserve less, or give the job's service higher limits."),
    // Services.
    cause!(errno EKEYREVOKED, any =>
        "the service is disabled. If it is service 1, the default service, the scheduler gave the process no service of its own, or SLINGSHOT_* did not reach it",
        &["cxi explain", "cxi service show ID"],
        "Start the program by the scheduler (srun, flux run), on a single node with srun --network=single_node_vni. A service that an administrator disabled: cxi service enable ID."),
    cause!(errno ENOSYS, ChooseService =>
        "libfabric found no service that this user may use: the scheduler gave the job none (Slurm gives a job on a single node none unless asked), SLINGSHOT_* did not reach the process, and the default service is disabled",
        ENVIRONMENT,
        "On a single node: srun --network=single_node_vni, or SLURM_NETWORK=single_node_vni in the environment. Start the program by srun or flux run, not by ssh."),
    cause!(errno ENOSYS, Allocate =>
        "the provider does not have this kind of object or option, such as FI_AV_MAP or a wait object in an old release",
        LOG, "Ask for another kind, or use a newer libfabric."),
    cause!(errno ENOSYS, MapMemory =>
        "this libfabric cannot register this kind of memory: it was built without support for the GPU (FI_HMEM), or for its way of sharing memory",
        &["fi_info -p cxi -c FI_HMEM", "FI_LOG_LEVEL=warn PROGRAM 2>&1 | cxi explain -"],
        "Use the system's libfabric, which is built for its GPUs, or keep the memory to be registered on the host."),
    cause!(errno ENOSYS, Discover =>
        "the provider was built without what it was asked for", LOG, "Use another build of libfabric."),
    cause!(errno ENOSYS, Collective =>
        "this libfabric was built without collectives, or the telemetry and HTTP that they need",
        LOG, "Use another build of libfabric, or turn collectives off."),
    cause!(errno ENOSYS, any =>
        "libfabric found no service that this user may use (from fi_domain, the most frequent case), or the provider does not have the function",
        ENVIRONMENT,
        "Slurm gives a job on a single node no service unless asked: srun --network=single_node_vni. Start the program by srun or flux run, not by ssh."),
    cause!(errno EOPNOTSUPP, MapMemory [ATU_MAP] Refused =>
        "this is a virtual function: the memory must be pinned", LOG, "Map the memory with the flag for pinning."),
    cause!(errno EOPNOTSUPP, ChangeService =>
        "this release of the driver has no such command", &["cxi devices -v"], "Update the driver, or do without it."),
    cause!(errno EOPNOTSUPP, any =>
        "this release of the driver or libfabric does not have the function, or not for a virtual function or this kind of memory",
        &["cxi devices -v", "fi_info --version"], "Update it, or do without it."),
    cause!(errno ENOPROTOOPT, any =>
        "the endpoint does not know the option", LOG, "Use a newer libfabric, or leave the option out."),
    cause!(errno EPROTONOSUPPORT, any =>
        "the kernel has no RDMA netlink socket, by which it would say whether fork is safe; libcxi then protects memory itself",
        LOG, "Nothing: it is not a failure."),
    cause!(errno EPROTO, any =>
        "an answer does not have the known form: the driver is of a release that this program does not know",
        &["cxi devices -v", "cxi selftest"], "Use a release of this software that supports the driver."),
    // Peers.
    cause!(errno ENOTCONN, any =>
        "the target NIC does not know the VNI of the message (VNI_NOT_FOUND): the job has no service with it there, or the two ranks have taken different VNIs",
        &["cxi explain env --env N1.env --env N2.env", "cxi explain"],
        "Start all ranks in one step, so that they have the same VNI; see whether the service still exists on the target."),
    cause!(errno EHOSTUNREACH, any =>
        "no packet reaches the target (UNDELIVERABLE): its node or link is down, the fabric has no route, or the target process is gone",
        &["cxi devices -v", "ping -c 1 TARGET"], "Check the target's node and link."),
    cause!(errno ECONNREFUSED, any =>
        "nothing listens at the other end: HPE's diagnostics need their server started on the other node first",
        &["ping -c 1 TARGET", "ss -lnt"], "Start the server, and name its node and port."),
    cause!(errno ECONNREFUSED, Collective =>
        "the fabric manager refused or could not be reached for a collective group",
        &["cxi collectives preflight", "env | grep FI_CXI_COLL"],
        "Check the address and the token of the fabric manager; without hardware collectives: FI_CXI_COLL_FABRIC_MGR_URL unset."),
    cause!(errno ECONNABORTED, any =>
        "the connection was closed by the other side", LOG, "Look for the first error of the peer."),
    cause!(errno EPIPE, any =>
        "the reader of a pipe or socket has ended", LOG, "Look for the first error of the other program."),
    cause!(errno ENOMSG, any =>
        "no message matches what was peeked for, which is not a failure; from HPE's diagnostics: the event that they waited for did not come, for the reason that the return code (RC) beside it gives",
        &["cxi devices -v", "dmesg | grep -i cxi"], "Explain the return code, if there is one; otherwise peek again."),
    cause!(errno ECHILD, any =>
        "a child process that was waited for is not there", LOG, "Look for what ended it."),
    // libfabric's own.
    cause!(fi 256, any => "libfabric could not get a communication profile, or gives no reason", LOG,
        "The line before it has the driver's errno: explain that one."),
    cause!(fi 257, any => "the buffer that the caller gave is too small for the answer", LOG, "Give a longer one."),
    cause!(fi 258, any => "the endpoint or domain is not enabled yet, or the collective group not joined", LOG,
        "Enable it (fi_enable) before it is used."),
    cause!(fi 259, any => "an operation failed, and its error is to be read: fi_cq_readerr or fi_eq_readerr", LOG,
        "Explain the error that is read."),
    cause!(fi 260, any => "a flag is not one that the call takes", LOG, "Leave the flag out."),
    cause!(fi 261, any => "no event queue is bound to the endpoint", LOG, "Bind one before fi_enable."),
    cause!(fi 262, any => "the service has no counter (CT) or queue left for the endpoint", &["cxi service usage", "cxi devices"],
        "Give the job's service higher limits; the line before it has the driver's errno."),
    cause!(fi 263, any => "no completion queue is bound to the endpoint", LOG, "Bind one before fi_enable."),
    cause!(fi 264, any => "data arrived with a wrong checksum", NICS, "Check the link's error counters, and report the node."),
    cause!(fi 265, any => "a message was longer than the buffer that was posted for it", LOG,
        "Post a longer buffer: in MPI, the counts of send and receive do not match."),
    cause!(fi 266, any => "the key of the memory region is in use", LOG, "Choose another key, or FI_MR_PROV_KEY."),
    cause!(fi 267, any => "no address vector is bound to the endpoint", LOG, "Bind one before fi_enable."),
    cause!(fi 268, any => "a completion or event queue is full, and events were lost", LOG,
        "Read completions more often, or raise FI_CXI_DEFAULT_CQ_SIZE."),
    cause!(fi 269, any => "the receiver has posted no buffer", LOG,
        "Post receives earlier; the NIC's list entries or FI_CXI_REQ_BUF_* may be short."),
    cause!(fi 270, any => "no memory registration is left", &["cxi service usage"], "Register less memory at a time."),
    cause!(fi 271, any => "the peer is behind a firewall: not a provider for the NIC", LOG,
        "See FI_PROVIDER: another provider was chosen."),
    // Hardware collectives.
    cause!(fi 1024, any => "a value of the reduction became larger than a double can be", LOG,
        "The application's values are too large for this sum; FI_CXI_COLL_FAB_MGR_URL unset makes software do it, with the same result."),
    cause!(fi 1025, any => "a value of the reduction is not a number, or infinite", LOG,
        "Look for the NaN or the infinity in the application's data."),
    cause!(fi 1026, any => "a reproducible sum became larger than the NIC can hold", LOG,
        "Scale the values, or let software sum them."),
    cause!(fi 1027, any => "more contributions reached the reduction than its group has members", LOG,
        "Each rank takes part once in a reduction: check the order of collective calls."),
    cause!(fi 1028, any => "ranks asked for different operations in one reduction", LOG,
        "All ranks call the same collectives in the same order, with the same operation and type."),
    cause!(fi 1029, any => "the multicast of a reduction's result failed", LOG,
        "Report the node: cxi devices -v shows its link."),
    cause!(fi 1030, any => "a reduction failed in a way that cannot be continued", LOG,
        "Start the job again, without hardware collectives if it happens again."),
    cause!(fi 2048, any => "the endpoint already uses the multicast address of the tree", COLLECTIVES,
        "Leave the group before joining it again; each group has a tree of its own."),
    cause!(fi 2049, any => "the endpoint already is the root of a tree", COLLECTIVES,
        "One process of each node can be the root of one tree: join groups with different roots."),
    cause!(fi 2050, any => "the multicast address that the fabric manager gave is not valid", COLLECTIVES,
        "Reserve trees again: cxi collectives release JOB, cxi collectives reserve JOB."),
    cause!(fi 2051, any => "the root that the fabric manager gave is not one of the job", COLLECTIVES,
        "Reserve trees again: cxi collectives release JOB, cxi collectives reserve JOB."),
    cause!(fi 2052, any => "the request to the fabric manager could not be made", COLLECTIVES,
        "Check FI_CXI_COLL_FAB_MGR_URL and FI_CXI_COLL_FAB_MGR_TOKEN, and that libcurl is installed."),
    cause!(fi 2053, any => "the fabric manager did not answer in time", COLLECTIVES,
        "Check that the node reaches FI_CXI_COLL_FAB_MGR_URL."),
    cause!(fi 2054, any => "the fabric manager answered with an error", COLLECTIVES,
        "The session may have ended, or have no tree left: look at the fabric manager's log."),
    cause!(fi 2055, any => "no portal table entry is left for the group", &["cxi service usage"],
        "Give the job's service more PtlTEs."),
    cause!(fi 2056, any => "joining the group failed in a way that cannot be continued", COLLECTIVES,
        "Start the job again, without hardware collectives if it happens again."),
    // The NIC's return codes.
    cause!(nic VNI_NOT_FOUND, any =>
        "the target NIC does not know the VNI of the message: the job has no service with it there, the service was destroyed, or the two ranks have taken different VNIs",
        &["cxi explain", "cxi explain env --env N1.env --env N2.env", "cxi service list"],
        "Start all ranks in one step, so that they have the same VNI; launchers that start their daemons with srun --mpi=none do not get it (SLURM_MPI_TYPE)."),
    cause!(nic PTLTE_NOT_FOUND, any =>
        "the target process has no portal table entry at this index: it has ended, has closed its endpoint, or was never there",
        LOG, "Look for the first error of the target rank."),
    cause!(nic PT_DISABLED, any =>
        "the target's portal table entry is disabled: its list entries or events ran out, and it recovers by flow control",
        &["cxi service usage"], "Post receives earlier, or use FI_CXI_RX_MATCH_MODE=hybrid."),
    cause!(nic PTLTE_SW_MANAGED, any =>
        "the target matches messages in software for now: the sender tries again", LOG, "Nothing: it is not a failure."),
    cause!(nic UNDELIVERABLE, any =>
        "no packet reaches the target: its node or link is down, or the fabric has no route to it",
        &["cxi devices -v", "ping -c 1 TARGET"], "Check the target's node and link."),
    cause!(nic DROPPED, any =>
        "the target dropped the message: no buffer matched, or its entry was disabled meanwhile", LOG,
        "Post receives earlier."),
    cause!(nic NO_SPACE, any =>
        "the target has no list entry or event left for the message: its service's LEs, or the pool that services share, are used up",
        &["cxi service usage", "cxi devices"],
        "Give the job's service more LEs, post fewer receives at a time, or use FI_CXI_RX_MATCH_MODE=software."),
    cause!(nic NO_MATCH, any =>
        "no posted buffer or memory region matches", LOG, "Check the key of the memory region, and that it is still registered."),
    cause!(nic ENTRY_NOT_FOUND, any =>
        "the list entry to be unlinked or matched is not there: it was used meanwhile", LOG, "Nothing: a race with a message."),
    cause!(nic PERM_VIOLATION, any =>
        "the memory region does not permit this access, or not to this peer", LOG, "Register it with FI_REMOTE_READ or FI_REMOTE_WRITE."),
    cause!(nic OP_VIOLATION, any =>
        "the memory region does not permit this operation", LOG, "Register it with the access that the peer needs."),
    cause!(nic INVALID_AC, any =>
        "the address context is gone: the memory was unregistered while a transfer used it", LOG, "Unregister memory after its transfers have ended."),
    cause!(nic PAGE_PERM_ERROR, any =>
        "the memory is not writable, or not readable", LOG, "Register memory with the access that is used."),
    cause!(nic NO_TRANSLATION, any =>
        "the memory is not mapped: freed or unmapped while it was registered", LOG, "Unregister memory before it is freed."),
    cause!(nic ATS_ERROR, any =>
        "the translation of an address by the processor's IOMMU failed", &["dmesg | grep -i iommu"], "Report the node."),
    cause!(nic PAGE_REQ_ERROR, any =>
        "a page could not be brought in: unmapped memory, or none left", LOG, "Register memory that stays mapped."),
    cause!(nic ADDR_OUT_OF_RANGE, any =>
        "the access goes beyond the end of the memory region", LOG, "Check the offset and length against the region."),
    cause!(nic INVALID_ENDPOINT, any =>
        "the target address is not one of an endpoint", LOG, "Exchange addresses after fi_enable."),
    cause!(nic CANCELED, any => "the operation was canceled", LOG, "Look for the first error before it."),
    cause!(nic NO_TARGET_CONN, any =>
        "the target NIC has no connection left: too many peers at once", NICS, "It is tried again by the retry handler; check that it runs."),
    cause!(nic NO_TARGET_MST, any =>
        "the target NIC has no message state left", NICS, "It is tried again by the retry handler; check that it runs."),
    cause!(nic NO_TARGET_TRS, any =>
        "the target NIC has no transaction state left", NICS, "It is tried again by the retry handler; check that it runs."),
    cause!(nic RESOURCE_BUSY, any =>
        "the target NIC is busy", NICS, "It is tried again by the retry handler; check that it runs."),
    cause!(nic SEQUENCE_ERROR, any =>
        "packets arrived out of order after a loss", NICS, "Check the links' error counters."),
    cause!(nic CONN_CLOSED, any =>
        "the connection to the peer was closed by the retry handler", &["journalctl -u 'cxi_rh@*'"], "Check the target's node and link."),
    cause!(nic MST_CANCELLED, any =>
        "the retry handler canceled the message", &["journalctl -u 'cxi_rh@*'"], "Check the target's node and link."),
    cause!(nic NO_MATCHING_CONN, any =>
        "the target NIC no longer knows the connection of a packet that was sent again", NICS, "It is tried again by the retry handler; check that it runs."),
    cause!(nic NO_MATCHING_TRS, any =>
        "the target NIC no longer knows the transaction of a packet that was sent again", NICS, "It is tried again by the retry handler; check that it runs."),
    cause!(nic NO_MATCHING_MST, any =>
        "the target NIC no longer knows the message of a packet that was sent again", NICS, "It is tried again by the retry handler; check that it runs."),
    cause!(nic TRS_PEND_RSP, any =>
        "the target NIC still works on the packet that was sent again", NICS, "It is tried again by the retry handler; check that it runs."),
    cause!(nic DELAYED, any =>
        "the answer comes later: not a failure", LOG, "Nothing: wait for it."),
    cause!(nic UNCOR, any =>
        "the NIC found an error in its memory that it cannot correct", NICS, "Drain the node, and report it."),
    cause!(nic UNCOR_TRNSNT, any =>
        "the NIC found a transient error that it cannot correct", NICS, "Repeat the operation; report the node if it comes again."),
    cause!(nic PKTBUF_ERROR, any =>
        "the NIC's buffer of packets overflowed or had an error: if the kernel's log has pfc_fifo_oflw, the NIC and the switch use different settings of quality of service, such as the priority of untagged frames",
        NICS, "Apply the same settings to the switch and the NIC; without pfc_fifo_oflw, report the node if it comes again."),
    cause!(nic PCIE_ERROR_POISONED, any =>
        "data came from memory as damaged", &["dmesg | grep -i -e mce -e aer"], "Drain the node, and report it."),
    cause!(nic PCIE_UNSUCCESS_CMPL, any =>
        "the processor or a GPU refused an access by the NIC", &["dmesg | grep -i -e iommu -e aer"], "Register memory that stays mapped; report the node if it comes again."),
    cause!(nic SRC_ERROR, any =>
        "the source of the message reported an error while it was sent", LOG, "Look for the first error of the peer."),
    cause!(nic FLUSH_TRANSLATION, any =>
        "the translation of an address was being removed", LOG, "Unregister memory after its transfers have ended."),
    cause!(nic INVALID_DFA_FORMAT, any =>
        "the fabric address of the message is malformed, or not the one that the NIC has (port_dfa_mismatch): its algorithmic MAC address (AMA) is not that of the switch port",
        &["cxi devices -v", "dmesg | grep port_dfa_mismatch"], "Give the node its AMA again (restart its link or the node); otherwise exchange the peers' addresses again."),
    cause!(nic RESTRICTED_UNICAST, any =>
        "a restricted put may not go to this address", LOG, "Use an ordinary put."),
    cause!(nic ILLEGAL_OP, any =>
        "the target does not know the operation", LOG, "Use one that both NICs have."),
    cause!(nic CMD_ALIGN_ERROR, any =>
        "an address or length in a command is not aligned", LOG, "Align it as the operation asks."),
    cause!(nic CMD_INVALID_ARG, any =>
        "a command has an invalid field", LOG, "Compare the command with the NIC's format."),
    cause!(nic INVALID_EVENT, any =>
        "the operation has no such event", LOG, "Ask for an event that the operation has."),
    cause!(nic AMO_INVAL_OP_ERROR, any =>
        "the atomic operation does not exist for this type", LOG, "Ask with fi_query_atomic what the provider has."),
    cause!(nic AMO_ALIGN_ERROR, any =>
        "the target of an atomic operation is not aligned to its type", LOG, "Align it to its size."),
    cause!(nic AMO_LENGTH_ERROR, any =>
        "the length of an atomic operation is not that of its type", LOG, "Give the length of the type."),
    cause!(nic AMO_FP_INVALID, any =>
        "an atomic operation on floating point numbers had an invalid operand", LOG, "Look for NaN and infinity in the operands."),
    cause!(nic AMO_FP_UNDERFLOW, any =>
        "the result of an atomic operation is too small for its type", LOG, "Use a longer type, or accept it."),
    cause!(nic AMO_FP_OVERFLOW, any =>
        "the result of an atomic operation is too large for its type", LOG, "Use a longer type, or accept it."),
    cause!(nic AMO_FP_INEXACT, any =>
        "the result of an atomic operation was rounded: not a failure", LOG, "Nothing: it is not a failure."),
    cause!(nic HRP_CONFIG_ERROR, any =>
        "the high rate put is not set up for this endpoint", LOG, "Use an ordinary put."),
    cause!(nic HRP_RSP_ERROR, any =>
        "a response to a high rate put reported an error", LOG, "Use an ordinary put to learn which."),
    cause!(nic HRP_RSP_DISCARD, any =>
        "a response to a high rate put was discarded", LOG, "Use an ordinary put to learn why."),
];
