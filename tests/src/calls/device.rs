//! Calls that query a NIC.

use cxi_ioctl::Opcode;

use super::Call;
use crate::stage::shown;

/// The commands that distinguish drivers. A refusal is also evidence.
const EVIDENCE: &[Opcode] = &[
    Opcode::from_number(0x7FFF_FF00),
    Opcode::GET_DEV_PROPERTIES,
    Opcode::SVC_GET,
    Opcode::SVC_RSRC_GET,
    Opcode::SVC_GET_EXCLUSIVE_CP,
    Opcode::SVC_SET_NETNS,
    Opcode::SVC_IS_PARENT_GET,
];

pub(super) const CALLS: &[Call] = &[
    Call::new("Device::info", |stage| stage.armed().info().map(shown))
        .like(&["cxil_devinfo", "cxil_rh_running"]),
    Call::new("Device::totals", |stage| stage.armed().totals().map(shown)),
    Call::new("Device::availability", |stage| {
        let _service = stage.listed();
        stage.armed().availability().map(shown)
    })
    // For an unknown driver, fewer LE pools are promised.
    .taking_for_an_answer(EVIDENCE),
    Call::new("Device::driver", |stage| {
        let driver = stage.armed().driver()?;
        Ok(shown((driver.detected_release(), driver.capabilities())))
    })
    .taking_for_an_answer(EVIDENCE),
    Call::new("Device::inbound_wait", |stage| stage.armed().inbound_wait().map(shown))
        .like(&["cxil_inbound_wait"]),
    Call::new("Device::alloc_lni", |stage| {
        let service = stage.listed();
        stage.armed().alloc_lni(service).map(|lni| shown(lni.id()))
    })
    .like(&["cxil_alloc_lni"]),
];
