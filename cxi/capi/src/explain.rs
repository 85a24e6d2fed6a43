//! Says why a call failed, in one line.
//!
//! The crate `cxi` knows the reasons. A refused call is rehearsed there: the same call once more,
//! on the same NIC, where this library repeats the refusal and the NIC gets only
//! queries. This costs commands, so it happens only when a program asks.

use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::sync::Arc;

use cxi::driver::Quirks;
use cxi::lni::{EventQueueOptions, PtOptions, TgqOptions, TxqOptions};
use cxi::{Device, DeviceId, Lni, ServiceId, ServiceSpec, TrafficClass, Vni};
use cxi_ioctl::Opcode;
use zerocopy::IntoBytes;

use crate::failure::{Cause, Failure};
use crate::rehearsal::{PRETENDED, Rehearsal};

/// Room for a line, with its NUL.
const ROOM: usize = 512;

/// Length of queues that are only rehearsed.
const SLOTS: u32 = 64;
const PAGE: usize = 4096;

thread_local! {
    /// What failed last in this thread, until a program asks why. Nothing here needs a destructor,
    /// which would keep the library from being unloaded.
    static LAST: Cell<Option<Failure>> = const { Cell::new(None) };
    static TEXT: Cell<[u8; ROOM]> = const { Cell::new([0; ROOM]) };
}

/// Remembers a failure; prints its cause if the environment asks for that.
pub(crate) fn failed(failure: &Failure) {
    LAST.set(Some(*failure));
    if std::env::var_os("CXI_EXPLAIN").is_some_and(|value| value == "1") {
        last();
        print(&TEXT.get());
    }
}

#[allow(clippy::print_stderr, reason = "CXI_EXPLAIN asks for it")]
fn print(text: &[u8]) {
    if let Ok(text) = CStr::from_bytes_until_nul(text) {
        eprintln!("libcxi: {}", text.to_string_lossy());
    }
}

/// Why the last call of this thread that failed did so; empty if none has. It is valid until the
/// next one is asked for.
pub(crate) fn last() -> *const c_char {
    if let Some(failure) = LAST.take() {
        let mut text = [0; ROOM];
        let line = line(&failure);
        for (byte, from) in text.iter_mut().zip(line.bytes().take(ROOM - 1)) {
            *byte = from;
        }
        TEXT.set(text);
    }
    TEXT.with(|text| text.as_ptr().cast())
}

fn line(failure: &Failure) -> String {
    match failure.cause {
        Cause::Argument => {
            "invalid argument: NULL, 0, or something that is not, or no longer, a handle".to_owned()
        }
        Cause::System => std::io::Error::from(failure.errno).to_string(),
        Cause::Command { device, error }
        | Cause::Service { device, error, .. }
        | Cause::OfService { device, error, .. }
        | Cause::Below { device, error, .. }
        | Cause::OnVni { device, error, .. } => rehearse(&failure.cause)
            .unwrap_or_else(|| format!("{}: {error}", DeviceId::new(device))),
    }
}

/// The message of `cxi` when the same call is refused in the same way.
fn rehearse(cause: &Cause) -> Option<String> {
    let said = match *cause {
        Cause::Argument | Cause::System | Cause::Command { .. } => return None,
        Cause::Service {
            device,
            error,
            desc,
            response,
        } => {
            let response = response
                .as_ref()
                .map_or(&[][..], |response| response.as_bytes());
            let stage = Rehearsal::of(device, error, response)?.with_service(desc);
            let services = on_stage(device, stage).services();
            let pretended = services.get(ServiceId::new(PRETENDED).ok()?).ok()?;
            match ServiceSpec::try_from(&pretended) {
                Ok(spec) => services.create(&spec).err()?.to_string(),
                Err(wrong) => format!("{}: {error}: {wrong}", DeviceId::new(device)),
            }
        }
        Cause::OfService {
            device,
            error,
            service,
        } => {
            let nic = on_stage(device, Rehearsal::of(device, error, &[])?);
            let service = ServiceId::new(service).ok()?;
            if error.opcode() == Opcode::SVC_DESTROY {
                nic.services().destroy(service).err()?.to_string()
            } else {
                nic.alloc_lni(service).err()?.to_string()
            }
        }
        Cause::Below {
            device,
            error,
            service,
            transmit,
        } => {
            let nic = on_stage(device, Rehearsal::of(device, error, &[])?);
            let lni = nic.alloc_lni(ServiceId::new(service).ok()?).ok()?;
            below(&lni, error.opcode(), transmit)?.to_string()
        }
        Cause::OnVni {
            device,
            error,
            service,
            vni,
            class,
        } => {
            let nic = on_stage(device, Rehearsal::of(device, error, &[])?);
            let lni = nic.alloc_lni(ServiceId::new(service).ok()?).ok()?;
            let vni = match Vni::try_from(vni) {
                Ok(vni) => vni,
                Err(wrong) => return Some(format!("{}: {error}: {wrong}", DeviceId::new(device))),
            };
            if error.opcode() == Opcode::DOMAIN_ALLOC {
                lni.alloc_domain(vni, None).err()?.to_string()
            } else {
                let class = *TrafficClass::ALL.get(class as usize)?;
                lni.alloc_cp(vni, class).err()?.to_string()
            }
        }
    };
    Some(said)
}

/// Allocates an object of the kind that a command allocates; returns the refusal.
fn below(lni: &Lni, opcode: Opcode, transmit: bool) -> Option<cxi::Error> {
    match opcode {
        Opcode::CT_ALLOC => lni.alloc_ct().err(),
        Opcode::PTE_ALLOC => lni.alloc_pte(PtOptions::empty(), None).err(),
        Opcode::EQ_ALLOC => lni.alloc_eq(&EventQueueOptions::new(PAGE)).err(),
        _ if transmit => {
            let any = lni
                .alloc_cp(Vni::new(1).ok()?, TrafficClass::BestEffort)
                .ok()?;
            lni.alloc_txq(&any, &TxqOptions::new(SLOTS)).err()
        }
        _ => lni.alloc_tgq(&TgqOptions::new(SLOTS)).err(),
    }
}

fn on_stage(device: u32, stage: Rehearsal) -> Device {
    Device::with_sysfs(DeviceId::new(device), Arc::new(stage), "/sys").allow_quirks(Quirks::all())
}
