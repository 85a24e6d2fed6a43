//! Attempts that a text names.

use cxi_ioctl::Opcode;

/// Task that failed, of a command of the driver, a function of libcxi or libfabric, or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Attempted {
    /// Allocate an LNI of a service.
    AllocateLni,
    /// Allocate a communication profile or a domain on a VNI.
    UseVni,
    /// Choose a service and a VNI, as libfabric does when it opens a domain.
    ChooseService,
    /// Make a service.
    CreateService,
    /// Query, change or destroy a service.
    ChangeService,
    /// Map or register memory.
    MapMemory,
    /// Allocate or change a queue, a counter, a portal table entry or an endpoint.
    Allocate,
    /// Take part in a hardware collective.
    Collective,
    /// Find NICs.
    Discover,
    /// Open a NIC.
    OpenDevice,
    /// Free or close something.
    Close,
    /// Send, receive, read or write, and learn how it ended.
    Transfer,
    /// Load a program's libraries.
    Load,
}

impl Attempted {
    /// In words, as in "from creating a service".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::AllocateLni => "allocating an LNI of a service",
            Self::UseVni => "using a VNI",
            Self::CreateService => "creating a service",
            Self::ChangeService => "querying, changing or destroying a service",
            Self::MapMemory => "mapping memory",
            Self::Allocate => "allocating a queue or an endpoint",
            Self::ChooseService => "choosing a service and a VNI",
            Self::Collective => "a collective operation",
            Self::Discover => "finding a NIC",
            Self::OpenDevice => "opening a NIC",
            Self::Close => "closing",
            Self::Transfer => "a transfer",
            Self::Load => "loading a library",
        }
    }

    /// Returns the task of a command of the driver.
    #[must_use]
    pub fn by(opcode: Opcode) -> Option<Self> {
        let name = opcode.name()?;
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        Some(match opcode {
            Opcode::LNI_ALLOC => Self::AllocateLni,
            Opcode::SVC_ALLOC | Opcode::SVC_ALLOC_PARENT => Self::CreateService,
            _ if name.ends_with("_FREE") => Self::Close,
            _ if starts(&["SVC_"]) => Self::ChangeService,
            _ if starts(&["CP_", "TRIG_CP_", "DOMAIN_"]) => Self::UseVni,
            _ if starts(&["ATU_", "PHYS_LAC_"]) => Self::MapMemory,
            _ if starts(&["CQ_", "EQ_", "PTE_", "CT_", "WAIT_"]) => Self::Allocate,
            _ => return None,
        })
    }

    /// Returns the task of an identifier in a text: a command, or a function of libcxi, libfabric's
    /// provider, MPI or a library above it.
    pub(super) fn named(word: &str) -> Option<(Self, Option<Opcode>)> {
        // The kernel's clients, such as Lustre's, call it kfi_domain.
        let word = if word.starts_with("kfi_") { word.trim_start_matches('k') } else { word };
        let command = || {
            // With the prefix that the driver's header gives it.
            let name = word.strip_prefix("CXI_OP_").unwrap_or(word);
            let info = Opcode::all().iter().find(|info| info.name == name)?;
            Some((Self::by(info.opcode)?, Some(info.opcode)))
        };
        let function = || {
            let (attempted, _) = FUNCTIONS
                .iter()
                .find(|(_, names)| names.iter().any(|name| is_named(word, name)))?;
            Some((*attempted, None))
        };
        command().or_else(function)
    }

    /// Returns the tasks that a phrase in a line names.
    pub(super) fn described(line: &str) -> impl Iterator<Item = Self> {
        let line = line.to_ascii_lowercase();
        let matching = PHRASES.iter().filter(move |(phrase, _)| line.contains(phrase));
        matching.map(|(_, attempted)| *attempted)
    }
}

/// Returns whether a word is a name; a star stands for any letters.
fn is_named(word: &str, name: &str) -> bool {
    name.split_once('*').map_or(word == name, |(start, end)| {
        word.strip_prefix(start).is_some_and(|rest| rest.ends_with(end))
    })
}

/// Names in the order in which they are looked for.
const FUNCTIONS: &[(Attempted, &[&str])] = &[
    (Attempted::AllocateLni, &["cxip_alloc_lni", "cxil_alloc_lni", "cxi_lni_alloc"]),
    (
        Attempted::UseVni,
        &[
            "cxil_alloc_cp",
            "cxi_cp_alloc",
            "cxil_alloc_trig_cp",
            "cxil_modify_cp",
            "cxip_cp_get",
            "cxip_portals_table_alloc",
            "cxil_alloc_domain",
            "cxil_reserve_domain",
            "cxip_alloc_if_domain",
            "cxip_if_domain*",
        ],
    ),
    (Attempted::CreateService, &["cxil_alloc_svc", "cxi_svc_alloc", "slingshot_create_services"]),
    (
        Attempted::ChangeService,
        &[
            "cxil_destroy_svc",
            "cxil_update_svc",
            "cxil_set_svc*",
            "cxil_get_svc*",
            "cxil_svc_*",
            "cxi_svc_*",
            "cxil_enable_svc",
            "slingshot_destroy_services",
        ],
    ),
    (
        Attempted::MapMemory,
        &[
            "cxil_map",
            "cxi_map*",
            "cxil_update_md",
            "cxip_map*",
            "cxip_do_map",
            "cxip_iomm*",
            "fi_mr_*",
            "cxip_mr_*",
            "cxip_*_mr_*",
        ],
    ),
    (
        Attempted::Collective,
        &[
            "fi_join_collective",
            "cxip_coll*",
            "cxip_join*",
            "cxip_curl*",
            "fi_barrier",
            "fi_broadcast",
            "fi_allreduce",
        ],
    ),
    (
        Attempted::ChooseService,
        &[
            "cxip_gen_auth_key*",
            "cxip_nic_get*",
            "cxip_nic_alloc",
            "fi_domain",
            "fi_domain2",
            "cxip_domain",
            "cxip_domain_enable",
            "cxip_if_valid_rgroup_vni",
        ],
    ),
    (
        Attempted::Discover,
        &[
            "fi_getinfo*",
            "cxil_get_device_list",
            "cxip_query_if_list",
            "find_provider",
            "MPIDI_OFI_find_provider",
            "fi_info",
            "cxi_rh",
        ],
    ),
    (Attempted::OpenDevice, &["cxil_open_device", "cxip_get_if"]),
    (
        Attempted::Close,
        &["fi_close", "cxil_close_device", "cxip_*_close", "cxil_destroy_*", "cxil_unmap"],
    ),
    (
        Attempted::Allocate,
        &[
            "cxil_alloc_cmdq",
            "cxil_alloc_evtq",
            "cxil_alloc_ct",
            "cxil_alloc_pte",
            "cxil_map_pte",
            "cxil_alloc_wait_obj",
            "cxil_pte_transition_sm",
            "cxip_cmdq_alloc",
            "cxip_ep_cmdq",
            "cxip_evtq_init",
            "cxip_cq_enable",
            "cxip_cq_alloc*",
            "cxip_eq_*",
            "cxip_pte_*",
            "cxip_ep_*",
            "cxip_cntr_*",
            "cxip_ctrl_*",
            "fi_endpoint",
            "fi_enable",
            "fi_ep_bind",
            "fi_cq_open",
            "fi_cntr_open",
            "fi_av_open",
            "fi_scalable_ep",
            "kfilnd_ep_alloc",
            "create_vni_context",
            "create_endpoint",
            "create_sep_tx",
            "create_sep_rx",
        ],
    ),
    (
        Attempted::Transfer,
        &[
            "fi_send*",
            "fi_recv*",
            "fi_tsend*",
            "fi_trecv*",
            "fi_write*",
            "fi_read*",
            "fi_inject*",
            "fi_atomic*",
            "fi_cq_read*",
            "fi_cq_sread*",
            "MPIDI_OFI_handle_cq_error",
            "cxip_send*",
            "cxip_recv*",
            "cxip_rma*",
            "cxip_amo*",
            "cxip_evtq_event_req",
            "ofi_process_cq",
            "MPI_Send",
            "MPI_Recv",
            "MPI_Wait",
            "MPI_Waitall",
            "PMPI_Iprobe",
            "PMPI_Wait",
            "PMPI_Recv",
            "PMPI_Send",
            "PMPI_Waitall",
        ],
    ),
];

/// Phrases in lower case.
const PHRASES: &[(&str, Attempted)] = &[
    ("allocate lni", Attempted::AllocateLni),
    ("allocate an lni", Attempted::AllocateLni),
    ("allocate cp", Attempted::UseVni),
    ("allocate cxi domain", Attempted::UseVni),
    ("service create", Attempted::CreateService),
    ("create service", Attempted::CreateService),
    ("create cxi service", Attempted::CreateService),
    ("allocate service", Attempted::CreateService),
    ("service allocation", Attempted::CreateService),
    ("allocate cxi service", Attempted::CreateService),
    ("create svc", Attempted::CreateService),
    ("allocate svc", Attempted::CreateService),
    ("enable svc", Attempted::ChangeService),
    ("disable svc", Attempted::ChangeService),
    ("update svc", Attempted::ChangeService),
    ("destroy svc", Attempted::ChangeService),
    ("service destroy", Attempted::ChangeService),
    ("enable service", Attempted::ChangeService),
    ("disable service", Attempted::ChangeService),
    ("update service", Attempted::ChangeService),
    ("destroy service", Attempted::ChangeService),
    ("destroy cxi service", Attempted::ChangeService),
    ("open domain failed", Attempted::ChooseService),
    ("fi_open domain", Attempted::ChooseService),
    ("ofi domain", Attempted::ChooseService),
    ("fabric access domain", Attempted::ChooseService),
    ("default rgroup and vni", Attempted::ChooseService),
    ("addrinfo()", Attempted::Discover),
    ("register memory", Attempted::MapMemory),
    ("memory registration", Attempted::MapMemory),
    ("unable to map", Attempted::MapMemory),
    ("endpoint open failed", Attempted::Allocate),
    ("ep enable failed", Attempted::Allocate),
    ("open cq", Attempted::Allocate),
    ("open av", Attempted::Allocate),
    ("creating new endpoint", Attempted::Allocate),
    ("transmit context", Attempted::Allocate),
    ("failed to allocate pte", Attempted::Allocate),
    ("failed to allocate txq", Attempted::Allocate),
    ("failed to allocate tgq", Attempted::Allocate),
    ("failed to allocate ct", Attempted::Allocate),
    ("failed to allocated eq", Attempted::Allocate),
    ("failed to alloc hw eq", Attempted::Allocate),
    ("failed to allocate cmdq", Attempted::Allocate),
    ("cannot open /dev/cxi", Attempted::OpenDevice),
    ("open /dev/cxi", Attempted::OpenDevice),
    ("/dev/cxi", Attempted::OpenDevice),
    ("open cxi", Attempted::OpenDevice),
    ("open device cxi", Attempted::OpenDevice),
    ("failed to open cxi device", Attempted::OpenDevice),
    ("shared librar", Attempted::Load),
    ("shared object file", Attempted::Load),
    ("cxi library", Attempted::Load),
    ("failed to get initiator", Attempted::Transfer),
    ("failed to get target", Attempted::Transfer),
    ("poll failed", Attempted::Transfer),
    ("completed with error", Attempted::Transfer),
    ("provider cxi returned", Attempted::Discover),
];
