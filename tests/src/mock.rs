//! The mock in this process as a device to replay on.

use std::sync::Arc;

use cxi_ioctl::{DriverRelease, Errno};
use cxi_mock::{CallerMemory, Client, Credentials, ModuleParameters, Nic, NicConfig};
use serde_json::{Map, Value};

use crate::device::{Device, LoadFailure, Report};
use crate::encode::number;
use crate::scenario::Setup;

/// The mock in this process.
#[derive(Debug)]
pub struct InProcess(Arc<Nic>);

impl Device for InProcess {
    type File = Client;

    fn load(release: DriverRelease, setup: &Setup) -> Result<Self, LoadFailure> {
        let mut wrong = Ok(());
        let config = NicConfig::new()
            .release(release)
            .virtual_functions(setup.vf.into())
            .parameters(|params| wrong = parameters(params, &setup.params));
        wrong.map_err(LoadFailure::Scenario)?;
        match Nic::new(config) {
            Ok(nic) => Ok(Self(nic)),
            Err(error) => Err(LoadFailure::Refused(error.errno())),
        }
    }

    fn open(&self, _caller: &Credentials, virtual_function: bool) -> Result<Client, Errno> {
        if virtual_function { self.0.open_vf(0) } else { self.0.open() }
    }

    fn write(
        &self,
        file: &Client,
        caller: &Credentials,
        command: &[u8],
        memory: &mut dyn CallerMemory,
    ) -> Result<usize, Errno> {
        file.write(caller, command, memory)
    }

    fn tick(&self) -> bool {
        self.0.tick()
    }

    fn report(&self, report: Report) -> Result<(), String> {
        report_of(&self.0, report)
    }

    fn state(&self) -> Result<Value, String> {
        serde_json::to_value(self.0.state()).map_err(|error| error.to_string())
    }
}

/// Has the hardware of a NIC report something.
pub(crate) fn report_of(nic: &Nic, report: Report) -> Result<(), String> {
    let hardware = nic.hardware();
    match report {
        Report::TxqInFlight { index, value } => hardware.set_txq_in_flight(index, value),
        Report::TgqInFlight { index, value } => hardware.set_tgq_in_flight(index, value),
        Report::TlesInUse { pool, value } => hardware.set_tles_in_use(pool, value),
        Report::LesAllocated { element, pool, value } => {
            hardware.set_les_allocated(element, pool, value)
        }
    }
    .map_err(|error| error.to_string())
}

/// Sets the module parameters of a scenario.
fn parameters(params: &mut ModuleParameters, given: &Map<String, Value>) -> Result<(), String> {
    for (name, value) in given {
        let wrong = || format!("device.params.{name}: invalid value {value}");
        let word = || number(value).and_then(|number| u32::try_from(number).ok()).ok_or_else(wrong);
        match name.as_str() {
            "disable_default_svc" => params.disable_default_svc = word()? != 0,
            "default_svc_test_mode" => params.default_svc_test_mode = word()? != 0,
            "enable_rgid_sharing" => params.enable_rgid_sharing = word()? != 0,
            "default_svc_num_tles" => params.default_svc_num_tles = word()?,
            "default_lnis_per_rgid" => params.default_lnis_per_rgid = word()?,
            "pe_total_les" => params.pe_total_les = word()?,
            "pid_bits" => params.pid_bits = word()?,
            "active_qos_profile" => params.active_qos_profile = word()?,
            "default_vnis" => {
                let vnis: Vec<u32> = serde_json::from_value(value.clone()).map_err(|_| wrong())?;
                params.default_vnis = vnis.try_into().map_err(|_| wrong())?;
            }
            _ => return Err(format!("device.params.{name}: no such module parameter")),
        }
    }
    Ok(())
}
