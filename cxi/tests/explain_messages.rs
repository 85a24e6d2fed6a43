//! Messages that people paste, as programs of the field print them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use cxi::driver::DetectedRelease;
use cxi::error::{Error, ErrorKind, Shortage};
use cxi::explain::{Attempted, Code, causes, causes_of, mentions};
use cxi::{DeviceId, DriverRelease, Errno, Opcode, Resource, ServiceId, Vni};
use cxi_hw::ReturnCode;

const fn errno(errno: Errno) -> Code {
    Code::Errno(errno)
}

const fn nic(code: ReturnCode) -> Code {
    Code::Nic(code)
}

/// A message, its meaning, and the task that it names.
type Example = (&'static str, Code, Option<Attempted>);

use Attempted as A;

#[rustfmt::skip]
const MESSAGES: &[Example] = &[
    // Bare.
    ("ENOSPC", errno(Errno::ENOSPC), None),
    ("enospc", errno(Errno::ENOSPC), None),
    ("28", errno(Errno::ENOSPC), None),
    ("-28", errno(Errno::ENOSPC), None),
    ("-61", errno(Errno::ENODATA), None),
    ("\u{2212}61", errno(Errno::ENODATA), None),
    ("errno 28", errno(Errno::ENOSPC), None),
    ("errno=-28", errno(Errno::ENOSPC), None),
    ("ret: -28", errno(Errno::ENOSPC), None),
    ("rc = 16", errno(Errno::EBUSY), None),
    ("(38)", errno(Errno::ENOSYS), None),
    ("[Errno 28]", errno(Errno::ENOSPC), None),
    ("-FI_ENOSYS", errno(Errno::ENOSYS), None),
    ("FI_ETRUNC", Code::Libfabric(265), None),
    ("-265", Code::Libfabric(265), None),
    ("EWOULDBLOCK", errno(Errno::EAGAIN), None),
    ("ENOTSUP", errno(Errno::EOPNOTSUPP), None),
    ("No space left on device", errno(Errno::ENOSPC), None),
    ("no space left on device", errno(Errno::ENOSPC), None),
    ("Key has been revoked", errno(Errno::EKEYREVOKED), None),
    ("Function not implemented (38)", errno(Errno::ENOSYS), None),
    ("Function not implemented", errno(Errno::ENOSYS), None),
    ("No such device or address", errno(Errno::ENXIO), None),
    ("No space left on device (os error 28)", errno(Errno::ENOSPC), None),
    ("Resource busy", errno(Errno::EBUSY), None),
    ("Not supported", errno(Errno::EOPNOTSUPP), None),
    ("Out of memory", errno(Errno::ENOMEM), None),
    ("C_RC_VNI_NOT_FOUND", nic(ReturnCode::VNI_NOT_FOUND), None),
    ("VNI_NOT_FOUND", nic(ReturnCode::VNI_NOT_FOUND), None),
    ("rmu_ptl_invld_vni_cntr 17", nic(ReturnCode::VNI_NOT_FOUND), None),
    ("ptl_invld_vni", nic(ReturnCode::VNI_NOT_FOUND), None),
    ("PTL_NO_SPACE", nic(ReturnCode::NO_SPACE), None),
    ("NO_SPACE", nic(ReturnCode::NO_SPACE), None),
    ("PTL_NI_PERM_VIOLATION", nic(ReturnCode::PERM_VIOLATION), None),
    ("FI_CXI_ERRNO_RED_OP_MISMATCH", Code::Libfabric(1028), None),
    ("prov_errno: 27", nic(ReturnCode(27)), None),
    ("event_type: 11, return_code: 25, mlength: 0", nic(ReturnCode::VNI_NOT_FOUND), None),
    ("cq_err.prov_errno=2053", Code::Libfabric(2053), None),
    ("prov_errno 1026 (coll reduce INT overflow)", Code::Libfabric(1026), None),
    ("fi_eq_readerr: coll join FM REST CURL timed out", Code::Libfabric(2053), None),
    ("cxip_zbcoll: coll join multicast address in-use", Code::Libfabric(2048), None),
    ("PtlTE state change: C_SC_FC_EQ_FULL", Code::Libfabric(268), None),
    ("PtlTE disabled, reason C_SC_SM_UNEXPECTED_FAIL", nic(ReturnCode::NO_SPACE), None),
    ("cxi_core: cxi_svc_alloc: Insufficient resources", errno(Errno::ENOSPC), Some(A::CreateService)),
    ("slurmctld: error: switch_p_build_stepinfo: no VNI available", errno(Errno::ENOSPC), None),
    ("cxi_ss1 0000:21:00.0: cxi0[hsn0]: link down", nic(ReturnCode::UNDELIVERABLE), Some(A::Transfer)),
    ("cxi0 pct error: SCT_TIMEOUT", nic(ReturnCode::UNDELIVERABLE), Some(A::Transfer)),
    // Schedulers.
    ("flux-slingshot: cxi0: cxil_alloc_svc: Invalid argument", errno(Errno::EINVAL), Some(A::CreateService)),
    ("flux-slingshot: cxi1: cxil_alloc_svc: No space left on device", errno(Errno::ENOSPC), Some(A::CreateService)),
    ("flux-slingshot: cxi0: cxil_destroy_svc 5: Device or resource busy", errno(Errno::EBUSY), Some(A::ChangeService)),
    ("slurmstepd: error: switch/hpe_slingshot: slingshot_create_services: cxil_alloc_svc failed on cxi2: No space left on device(28)", errno(Errno::ENOSPC), Some(A::CreateService)),
    ("slurmstepd: error: hpe_slingshot: only 0 available of TXQ on cxi0", errno(Errno::ENOSPC), Some(A::CreateService)),
    ("Failed to create service on cxi0: File exists", errno(Errno::EEXIST), Some(A::CreateService)),
    // libfabric.
    ("Failed to allocate LNI: Key has been revoked", errno(Errno::EKEYREVOKED), Some(A::AllocateLni)),
    ("cxip_alloc_lni: Failed to allocate LNI, ret: -28", errno(Errno::ENOSPC), Some(A::AllocateLni)),
    ("libfabric:4711:1741146011::cxi:domain:cxip_alloc_lni():251<warn> nid001: Failed to allocate LNI, ret: -22", errno(Errno::EINVAL), Some(A::AllocateLni)),
    ("libfabric:4711:1741146011::cxi:domain:cxip_alloc_lni():251<warn> nid001: Failed to allocate LNI, ret: -1", errno(Errno::EPERM), Some(A::AllocateLni)),
    ("libfabric:9:1:cxi:domain:cxip_domain_enable():468<warn> cxip_alloc_lni returned: -28", errno(Errno::ENOSPC), Some(A::AllocateLni)),
    ("cxip_domain: cxip_gen_auth_key failed: -38:Function not implemented", errno(Errno::ENOSYS), Some(A::ChooseService)),
    ("cxip_gen_auth_key failed: -38", errno(Errno::ENOSYS), Some(A::ChooseService)),
    ("libfabric:507357:1741146011::cxi:fabric:cxip_nic_get_rgroup_vni():253<warn> : Failed to find valid default rgroup and vni for cxi0", errno(Errno::ENOSYS), Some(A::ChooseService)),
    ("cxip_do_map():62<warn> : cxil_map() failed: -12", errno(Errno::ENOMEM), Some(A::MapMemory)),
    ("cxip_evtq_init():577<warn> Failed to allocated EQ: -12", errno(Errno::ENOMEM), Some(A::Allocate)),
    ("cxip_ep_cmdq():66<warn> Failed to allocate cmdq: -28", errno(Errno::ENOSPC), Some(A::Allocate)),
    ("Failed to allocate CP, ret: -2 VNI: 1036 TC: BEST_EFFORT TYPE: DEFAULT", errno(Errno::ENOENT), Some(A::UseVni)),
    ("cxip_cp_get():109<warn> Failed to allocate CP, ret: -17 VNI: 1036 TC: LOW_LATENCY TYPE: DEFAULT", errno(Errno::EEXIST), Some(A::UseVni)),
    ("CXI retry handler not running for device: cxi0", errno(Errno::ENODATA), Some(A::Discover)),
    ("fi_getinfo: provider cxi returned -61 (No data available)", errno(Errno::ENODATA), Some(A::Discover)),
    ("H/W Event Queue overflow detected.", Code::Libfabric(268), None),
    ("Request dest_addr: 32 caddr.nic: 0X19D1 caddr.pid: 1 rxc_id: 0  error: 0x26c450f0 (err: 5, VNI_NOT_FOUND)", nic(ReturnCode::VNI_NOT_FOUND), None),
    // MPI and others above it.
    ("Open MPI failed an OFI Libfabric library call (fi_domain).  This is highly\nunusual; your job may behave unpredictably (and/or abort) after this.\n\n  Local host: crusher051\n  Location: ../../ompi/mca/mtl/ofi/mtl_ofi_component.c:999\n  Error: Function not implemented (38)", errno(Errno::ENOSYS), Some(A::ChooseService)),
    ("Open MPI failed an OFI Libfabric library call (fi_domain).\n  Local host: gpu001\n  Location: mtl_ofi_component.c:1007\n  Error: Function not implemented (70368744177702)", errno(Errno::ENOSYS), Some(A::ChooseService)),
    ("*** FATAL ERROR (proc 0): in gasnetc_ofi_init() at .../gasnet_ofi.c:946: fi_domain failed: -38(Function not implemented)", errno(Errno::ENOSYS), Some(A::ChooseService)),
    ("internal error: 0: comm-ofi.c:2209: OFI error: fi_domain(ofi_fabric, ofi_info, &ofi_domain, ((void*)0)): Function not implemented", errno(Errno::ENOSYS), Some(A::ChooseService)),
    ("NCCL WARN NET/OFI Couldn't open a fabric access domain. RC: -38, ERROR: Function not implemented", errno(Errno::ENOSYS), Some(A::ChooseService)),
    ("nccl_ofi_ofiutils_init_connection:274 NCCL WARN NET/OFI Couldn't open CQ. RC: -22, ERROR: Invalid argument", errno(Errno::EINVAL), Some(A::Allocate)),
    ("MPIDI_OFI_mpi_init_hook(599): OFI fi_open domain failed (ofi_init.c:599:MPIDI_OFI_mpi_init_hook:Invalid argument)", errno(Errno::EINVAL), Some(A::ChooseService)),
    ("create_vni_context(982)..: OFI endpoint open failed (ofi_init.c:982:create_vni_context:Cannot allocate memory)", errno(Errno::ENOMEM), Some(A::Allocate)),
    ("MPIDI_OFI_handle_cq_error(1075): OFI poll failed (ofi_events.c:1077:MPIDI_OFI_handle_cq_error:Input/output error - PTLTE_NOT_FOUND)", nic(ReturnCode::PTLTE_NOT_FOUND), Some(A::Transfer)),
    ("MPIDI_OFI_handle_cq_error(1062): OFI poll failed (ofi_events.c:1064:MPIDI_OFI_handle_cq_error:Input/output error - UNDELIVERABLE)", nic(ReturnCode::UNDELIVERABLE), Some(A::Transfer)),
    ("PE 0: MPICH WARNING: OFI is failing to make progress on posting a receive. MPICH suspects a hang due to completion queue exhaustion.", Code::Libfabric(268), None),
    ("<lci:status:ofi> err : Function not implemented (.../backend_ofi.cpp:271)", errno(Errno::ENOSYS), None),
    ("OSError: [Errno 38] Function not implemented", errno(Errno::ENOSYS), None),
    ("NCCL WARN NET/OFI Request 0x7f completed with error. RC: 107. Error: 25 (VNI_NOT_FOUND)", nic(ReturnCode::VNI_NOT_FOUND), Some(A::Transfer)),
    ("cxip_domain_enable():449<warn> nid1: cxil_get_svc with cxi0 and svc_id 5 failed: -22:Invalid argument", errno(Errno::EINVAL), Some(A::ChooseService)),
    ("Invalid VNI 1036 for cxi0 and svc_id 5", errno(Errno::EINVAL), Some(A::ChooseService)),
    ("MPI_ERR_TRUNCATE: message truncated", Code::Libfabric(265), Some(A::Transfer)),
    ("[0000]        fi_mr_regattr (heap) failed\n[0000] ERROR: init.c:466: shmem_internal_heap_postinit\n[0000]        Transport init failed (-38)", errno(Errno::ENOSYS), Some(A::MapMemory)),
    ("  ompi_mpi_init: ompi_mpi_instance_init failed\n  --> Returned \"Unreachable\" (-12) instead of \"Success\" (0)", errno(Errno::ENODATA), Some(A::Discover)),
    ("No components were able to be opened in the pml framework.", errno(Errno::ENODATA), Some(A::Discover)),
    ("  PML cm cannot be selected", errno(Errno::ENODATA), Some(A::Discover)),
    ("MPIDI_OFI_mpi_init_hook(575): OFI addrinfo() failed (ofi_init.c:575:MPIDI_OFI_mpi_init_hook:No data available)", errno(Errno::ENODATA), Some(A::Discover)),
    ("MPIDI_OFI_handle_cq_error(1059): OFI poll failed (ofi_events.c:1061:MPIDI_OFI_handle_cq_error:Message too long - OK)", errno(Errno::EMSGSIZE), Some(A::Transfer)),
    ("libfabric:85:1747438790::core:core:fi_getinfo_():1392<warn> fi_getinfo: provider cxi output empty list", errno(Errno::ENODATA), Some(A::Discover)),
    ("nccl_net_ofi_domain_get_ep:969 NCCL WARN NET/OFI Creating new endpoint for domain 0x7f9befa99380 failed: Invalid argument", errno(Errno::EINVAL), Some(A::Allocate)),
    ("libfabric:1:1::cxi:mr:cxip_mr_enable_opt():401<warn> Failed to allocate PTE: -28", errno(Errno::ENOSPC), Some(A::Allocate)),
    // Storage above it.
    ("hg_core_send_input_cb() NA callback returned error (NA_HOSTUNREACH)", errno(Errno::EHOSTUNREACH), None),
    ("external ERR  # HG -- error -- mercury_core.c:2751 # hg_core_forward(): HG_TIMEOUT", errno(Errno::ETIMEDOUT), None),
    ("rpc failed; rc: DER_UNREACH(-1006)", errno(Errno::EHOSTUNREACH), None),
    ("kfilnd: kfi_endpoint() failed: rc = -28", errno(Errno::ENOSPC), Some(A::Allocate)),
    // Libraries, diagnostics and the retry handler.
    ("cxi_rh[5477]: /usr/bin/cxi_rh: error while loading shared libraries: libfuse.so.2: cannot open shared object file: No such file or directory", errno(Errno::ENOENT), Some(A::Load)),
    ("slurmstepd: error: switch/hpe_slingshot: Couldn't find CXI library /usr/lib64/libcxi.so: No such file or directory", errno(Errno::ENOENT), Some(A::Load)),
    ("Failed to connect to cxi-nid1: Connection refused", errno(Errno::ECONNREFUSED), None),
    ("event RC != RC_OK: PKTBUF_ERROR", nic(ReturnCode::PKTBUF_ERROR), None),
    ("Failed to get initiator ACK TRIGGERED_OP event: No message of desired type", errno(Errno::ENOMSG), Some(A::Transfer)),
    ("systemd[1]: cxi_rh@cxi0.service: Failed with result 'exit-code'.", errno(Errno::ENODATA), Some(A::Discover)),
    ("cxi_rh[6094]: RH: will close sct=3. spt=191 was retried due to timeouts 4 times and nacks 0 times", nic(ReturnCode::CONN_CLOSED), Some(A::Transfer)),
    ("cxi_rh[6702]: RH: now cancelling all 1 SPTs on the sct=2253 (nid=301808, ep=0, vni=9408)", nic(ReturnCode::MST_CANCELLED), Some(A::Transfer)),
    ("cxi_stat: Cannot open device cxi0: Permission denied", errno(Errno::EACCES), Some(A::OpenDevice)),
    // Schedulers, again.
    ("slurmstepd: error: Slingshot service allocation failed on cxi0", errno(Errno::ENOSPC), Some(A::CreateService)),
    ("slurmstepd: error: Only 12 transmit command queues available on cxi0 (requested 512)", errno(Errno::ENOSPC), Some(A::CreateService)),
    ("slurmstepd: error: No trigger list entry pools available on cxi0", errno(Errno::ENOSPC), Some(A::CreateService)),
    ("slurmstepd: error: Failed to destroy CXI Service ID 5 (cxi0): -16", errno(Errno::EBUSY), Some(A::ChangeService)),
    ("slurmstepd: error: No CXI devices available", errno(Errno::ENODEV), Some(A::OpenDevice)),
    ("error: cannot allocate VNI: all 64512 VNIs in use", errno(Errno::ENOSPC), None),
    ("slurmctld: error: switch_p_build_stepinfo: No free VNIs", errno(Errno::ENOSPC), None),
    ("srun: error: Unable to create step for job 12345: Error configuring interconnect", errno(Errno::ENOSPC), Some(A::CreateService)),
    ("slurmd: error: switch/hpe_slingshot: Failed to create service for cxi0", errno(Errno::ENOSPC), Some(A::CreateService)),
    ("cxi_service: Failed to enable svc ID: 5: Device or resource busy", errno(Errno::EBUSY), Some(A::ChangeService)),
    ("cxi_stat: Failed to get CXI devices", errno(Errno::ENODEV), Some(A::OpenDevice)),
    ("Couldn't get a list of CXI devices", errno(Errno::ENODEV), Some(A::OpenDevice)),
    ("cxi_rh@cxi0.service: Main process exited, code=exited, status=1/FAILURE", errno(Errno::ENODATA), Some(A::Discover)),
    ("cxi_rh[1234]: cxi0: nid 1234: Retry limit exceeded, cancelling SPT", nic(ReturnCode::MST_CANCELLED), Some(A::Transfer)),
    ("libfabric:1:1::cxi:cq:cxip_cq_enable():585<warn> Failed to alloc HW EQ: -28", errno(Errno::ENOSPC), Some(A::Allocate)),
    ("libfabric:1:1::cxi:ep_data:cxip_ux_onload_cb():12<warn> H/W Onload failed", nic(ReturnCode::NO_SPACE), None),
    ("RXC (0x6:0) PtlTE 12: LE append failed, transition to software matching", nic(ReturnCode::NO_SPACE), None),
    // The kernel.
    ("cxi_core 0000:c3:00.0: cxi3[hsn3] CXI_EVENT_LINK_DOWN", nic(ReturnCode::UNDELIVERABLE), Some(A::Transfer)),
    ("cxi_ss1 0000:41:00.0: cxi0[hsn0]: C_EC_TRNSNT_NS: C1_HNI_PML error: pcs_link_down (48) (was first error at 1675518045:993752891)", nic(ReturnCode::UNDELIVERABLE), Some(A::Transfer)),
    ("cxi_ss1 0000:41:00.0: cxi0[hsn0]: C_EC_BADCON_S: C_RMU error: ptl_invld_vni (49)", nic(ReturnCode::VNI_NOT_FOUND), None),
    ("[ 1451.997298] cxi_ss1 0000:21:00.0: HNI error: pfc_fifo_oflw (40)", nic(ReturnCode::PKTBUF_ERROR), None),
    ("cxi_core 0000:c0:00.0: cxi2[hsn2]: C_EC_UNCOR_NS: C_IXE error: port_dfa_mismatch (37) (was first error at 1705904239:768794936)", nic(ReturnCode::INVALID_DFA_FORMAT), None),
    ("cxi_core 0000:c3:00.0: cxi3[hsn3]: C_EC_UNCOR_NS: C1_PCT error: tct_cam_ucor (42) (was first error at 1689213438:290566940)", nic(ReturnCode::UNCOR), None),
    ("[ 1234.567890] cxi_ss1 0000:21:00.0: cxi0[hsn0]: SVC_ALLOC failed: -28", errno(Errno::ENOSPC), Some(A::CreateService)),
    ("kernel: cxi_core 0000:d1:00.0: probe failed with error -12", errno(Errno::ENOMEM), None),
    ("cxi_ss1 0000:21:00.0: Failed to allocate memory for the completion queue", errno(Errno::ENOMEM), None),
    // Numbers and names of other forms.
    ("cxil_map returned 0xffffffea", errno(Errno::EINVAL), Some(A::MapMemory)),
    ("fi_domain: ret = 4294967258", errno(Errno::ENOSYS), Some(A::ChooseService)),
    ("ret = 18446744073709551588", errno(Errno::ENOSPC), None),
    ("ret=0xffffffffffffffe4", errno(Errno::ENOSPC), None),
    ("cxil_svc_enable: Unknown error 524", errno(Errno::EOPNOTSUPP), Some(A::ChangeService)),
    ("CXI_OP_ATU_MAP failed: EFAULT", errno(Errno::EFAULT), Some(A::MapMemory)),
    // A terminal's colors, as it, rsyslog and cat -v show them, and what editors of Windows add.
    ("\u{1b}[1;31merror:\u{1b}[0m cxip_alloc_lni(): ret: \u{1b}[1m-28\u{1b}[0m\u{1b}[K", errno(Errno::ENOSPC), Some(A::AllocateLni)),
    ("cxil_alloc_svc: No space \u{1b}[33mleft on\u{1b}[m device", errno(Errno::ENOSPC), Some(A::CreateService)),
    ("\u{1b}]0;a title -28\u{7}cxil_map: -12", errno(Errno::ENOMEM), Some(A::MapMemory)),
    ("slurmd[22]: #033[31merror: cxip_alloc_lni: ret:#033[0m -28", errno(Errno::ENOSPC), Some(A::AllocateLni)),
    ("^[[31mcxip_alloc_lni: ret:^[[0m -28", errno(Errno::ENOSPC), Some(A::AllocateLni)),
    ("\u{feff}c\0x\0i\0l\0_\0m\0a\0p\0:\0 \0-\x001\x002\0\r\0\n\0", errno(Errno::ENOMEM), Some(A::MapMemory)),
    // This project.
    ("error: cxi0: SVC_ALLOC: not enough TXQs: 512 requested, 96 available", errno(Errno::ENOSPC), Some(A::CreateService)),
    ("error: cxi0: SVC_DESTROY: there is no service 77", errno(Errno::EINVAL), Some(A::ChangeService)),
    ("cxi0-1: LNI_ALLOC: service 1 is disabled: the default service is, unless the administrator enables it; use your own service", errno(Errno::EKEYREVOKED), Some(A::AllocateLni)),
    ("error: invalid VNI 65536: expected 1 to 65535", errno(Errno::EINVAL), None),
    ("cxi_service: failed to enable service: Device or resource busy", errno(Errno::EBUSY), Some(A::ChangeService)),
    ("service 5 is disabled", errno(Errno::EKEYREVOKED), Some(A::AllocateLni)),
    ("cxi0: SVC_DESTROY: service 3 is still in use after 5s and 30 attempts", errno(Errno::EBUSY), Some(A::ChangeService)),
    ("cxi0: the device has been removed", errno(Errno::EIO), None),
    ("cannot open /dev/cxi0: permission denied: read and write access to the device node is needed", errno(Errno::EACCES), Some(A::OpenDevice)),
    ("cannot open /dev/cxi7: there is no such device", errno(Errno::ENODEV), Some(A::OpenDevice)),
    ("cxi1: CP_ALLOC: no enabled service has this VNI (ENOENT)", errno(Errno::ENOENT), Some(A::UseVni)),
    ("VNI 1024 is taken by service 2", errno(Errno::EEXIST), Some(A::CreateService)),
    ("cxi0: LNI_ALLOC: all 255 RGIDs of the NIC are in use", errno(Errno::ENOSPC), Some(A::AllocateLni)),
];

#[test]
fn each_message_has_its_meaning() {
    let mut wrong = Vec::new();
    for (text, code, attempted) in MESSAGES {
        let found: Vec<_> =
            mentions(text).iter().map(|found| (found.code, found.attempted)).collect();
        if found != [(*code, *attempted)] {
            wrong.push(format!("{text}\n  expected {:?}\n  found {found:?}", (code, attempted)));
        }
        if causes_of(*code, *attempted, None).is_empty() {
            wrong.push(format!("{text}: no cause"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(MESSAGES.len() >= 70);
}

#[test]
fn what_is_no_error_names_none() {
    for text in [
        "",
        "hello",
        "srun: error: nid001: task 0: Exited with exit code 1",
        "libfabric:507357:1741146011::cxi:fabric:cxip_nic_alloc():253<info> Generated (5:1036) for cxi0",
        "slurm-4711.out written in 28 seconds, 5 files",
        "2026-11-27 21:05:28 all OK",
        "MPI_Init(111)",
        "use -d 2 --limit=txqs=16:64",
        "Success",
        "everything",
        "\u{2028}é-28x",
        "uid 4294967295",
        "RXC (0x6:0)",
        "ret: 0x1c",
        "\u{1b}[28m\u{1b}[0m",
    ] {
        assert_eq!(mentions(text), [], "{text}");
    }
}

#[test]
fn several_in_one_text_come_in_their_order() {
    let text = "cxip_alloc_lni(): Failed to allocate LNI, ret: -128\n\
                cxip_domain_enable(): cxip_alloc_lni returned: -28\n\
                OFI EP enable failed (ofi_init.c:1:x:No such device)\n\
                OFI EP enable failed (ofi_init.c:1:x:No such device)\n";
    let found: Vec<_> = mentions(text).iter().map(|found| found.code).collect();
    let expected = [Errno::EKEYREVOKED, Errno::ENOSPC, Errno::ENODEV].map(errno);
    assert_eq!(found, expected);
}

#[test]
fn the_call_chooses_among_meanings() {
    let reason = |text: &str| {
        let found = mentions(text)[0];
        causes_of(found.code, found.attempted, found.command)[0].reason
    };
    let texts = [
        "SVC_ALLOC: ENOSPC",
        "LNI_ALLOC: ENOSPC",
        "cxip_alloc_lni: ENOSPC",
        "CP_ALLOC: ENOSPC",
        "DOMAIN_RESERVE: ENOSPC",
        "CQ_ALLOC: ENOSPC",
        "ATU_MAP: ENOSPC",
        "ENOSPC",
    ];
    // A command that the text does not name says nothing about a function that sends several.
    for text in [
        "nccl_net_ofi_domain_get_ep:969 Creating new endpoint for domain 0x7f failed: Invalid argument",
        "NCCL WARN NET/OFI Unable to register memory (type = 2) for device 1. RC: -22",
        "fi_endpoint for reqrep failed with code -17 (File exists)",
        "fi_ep_bind failed: Resource temporarily unavailable",
    ] {
        let found = mentions(text)[0];
        let first = causes_of(found.code, found.attempted, found.command)[0];
        assert!(first.commands.is_empty(), "{text}: {}", first.reason);
    }
    let reasons: BTreeSet<&str> = texts.iter().map(|text| reason(text)).collect();
    assert_eq!(reasons.len(), texts.len(), "{reasons:#?}");
}

/// The errnos of libfabric's provider and its own numbers, and those of libcxi's documentation.
/// Those of recorded scenarios are compared where the scenarios are.
#[test]
fn every_errno_that_a_user_can_see_has_a_cause() {
    let names = "EACCES EADDRINUSE EADDRNOTAVAIL EAGAIN EALREADY EBUSY ECANCELED ECONNREFUSED EFAULT \
         EHOSTUNREACH EINPROGRESS EINVAL EIO EKEYREJECTED EMSGSIZE ENODATA ENODEV ENOENT ENOMEM ENOMSG \
         ENOPROTOOPT ENOSPC ENOSYS ENOTCONN EOPNOTSUPP EPERM ETIMEDOUT FI_EOTHER FI_ETOOSMALL \
         FI_EOPBADSTATE FI_EAVAIL FI_EBADFLAGS FI_ENOEQ FI_EDOMAIN FI_ENOCQ FI_ECRC FI_ETRUNC \
         FI_ENOKEY FI_ENOAV FI_EOVERRUN FI_ENORX FI_ENOMR FI_EFIREWALLADDR \
         EBADF EBADR E2BIG ECONNABORTED EEXIST EINTR EKEYREVOKED EMFILE ENOTDIR ENXIO EOVERFLOW \
         EPROTONOSUPPORT";
    for name in names.split_whitespace() {
        let code = Code::from_name(name).unwrap_or_else(|| panic!("{name}"));
        assert!(code.name().ends_with(name.trim_start_matches("FI_")), "{name}");
        assert!(!causes_of(code, None, None).is_empty(), "{name}");
        assert!(
            causes().iter().any(|cause| cause.code == code && cause.attempted.is_none()),
            "{name}: a cause for any call"
        );
    }
    assert_eq!(Code::from_name("EXYZ"), None);
    for (name, number) in ReturnCode::NAMES {
        let code = nic(ReturnCode(*number));
        let succeeded = matches!(code, Code::Nic(ReturnCode::OK | ReturnCode::NO_EVENT));
        assert_eq!(Code::from_name(name), Some(code));
        assert_eq!(causes_of(code, None, None).is_empty(), succeeded, "{name}");
    }
}

#[test]
fn causes_are_sentences() {
    for cause in causes() {
        assert!(!cause.look.is_empty(), "{}: {}", cause.code, cause.reason);
        assert!(cause.mend.ends_with('.'), "{}: {}", cause.code, cause.mend);
        assert!(!cause.reason.ends_with('.') && cause.mend.len() > 10, "{}", cause.reason);
    }
}

/// Messages of this library lead back to the errno that they stand for.
#[test]
fn the_librarys_own_errors_have_their_errno() {
    let service = ServiceId::new(5).unwrap();
    let (resource, what) = (Resource::Txqs, "all 8 address contexts of the LNI's RGID are in use");
    let limit = |in_use, max| Shortage::Limit { service, resource, in_use, max };
    let shortages = [
        Shortage::Reservation { resource, requested: 9, available: 3 },
        Shortage::LePools,
        Shortage::TlePools,
        Shortage::VniTable { used: 3 },
        Shortage::Unclear { vni_slots: 4 },
        limit(Some(3), Some(0)),
        limit(Some(3), Some(3)),
        limit(Some(3), Some(4)),
        limit(None, None),
        Shortage::Allocation { what },
    ];
    let mut kinds: Vec<(ErrorKind, Errno)> =
        shortages.map(|shortage| (ErrorKind::NotEnough(shortage), Errno::ENOSPC)).into();
    let path = || PathBuf::from("/dev/cxi0");
    let open = |errno: Errno| ErrorKind::Open { path: path(), error: errno.into() };
    let needs = DriverRelease::Shs13_1;
    let has = DetectedRelease::Unknown;
    kinds.extend([
        (open(Errno::EACCES), Errno::EACCES),
        (open(Errno::EMFILE), Errno::EMFILE),
        (open(Errno::EIO), Errno::EIO),
        (ErrorKind::NotPermitted("the services that have it do not".into()), Errno::EPERM),
        (ErrorKind::NoSuchService { service }, Errno::EINVAL),
        (ErrorKind::ServiceDisabled { service }, Errno::EKEYREVOKED),
        (ErrorKind::ServiceDisabled { service: ServiceId::DEFAULT }, Errno::EKEYREVOKED),
        (ErrorKind::Busy { what: "service 5".into(), waited: None }, Errno::EBUSY),
        (ErrorKind::Unsupported { what: "a range".into(), needs, has }, Errno::EOPNOTSUPP),
        (ErrorKind::NotGuaranteed { what: "a range".into(), has }, Errno::EOPNOTSUPP),
        (ErrorKind::Removed, Errno::EIO),
        (ErrorKind::Other(Errno::EFAULT), Errno::EFAULT),
        (ErrorKind::InvalidValue(Vni::new(0).unwrap_err()), Errno::EINVAL),
    ]);
    for (kind, expected) in kinds {
        let error = Error::new(kind, expected).on(DeviceId::new(0));
        for error in [error.clone(), error.during(Opcode::SVC_UPDATE)] {
            let found: Vec<_> =
                mentions(&error.to_string()).iter().map(|found| found.code).collect();
            assert_eq!(found, [errno(expected)], "{error}");
        }
    }
}
