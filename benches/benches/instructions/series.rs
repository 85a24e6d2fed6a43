//! What is counted.

use std::hint::black_box;
use std::sync::Arc;

use cxi::{Device, DeviceId, DriverRelease, Limit, Limits, Resource, ServiceSpec, Vni};
use cxi_benches::mock::Result;
use cxi_ioctl::Errno;
use cxi_mock::{Credentials, InProcess, Nic, NicConfig};

use crate::canned::{Canned, Noting, Sent};
use crate::operations::{self, Operation};
use crate::pure;

/// What is done once a call.
pub(crate) type Act = Box<dyn FnMut()>;

/// One series.
pub(crate) struct Series {
    pub(crate) name: String,
    /// Whether it starts threads.
    pub(crate) threads: bool,
    prepare: Box<dyn Fn() -> Result<Act> + Sync>,
}

impl Series {
    pub(crate) fn new(
        name: impl Into<String>,
        prepare: impl Fn() -> Result<Act> + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            threads: false,
            prepare: Box::new(prepare),
        }
    }

    pub(crate) fn with_threads(mut self) -> Self {
        self.threads = true;
        self
    }

    /// Something to call again and again, each time at the same cost.
    pub(crate) fn prepare(&self) -> Result<Act> {
        (self.prepare)()
    }
}

/// Most services that the mock is filled with.
const MANY: u16 = 10_000;

/// All series.
pub(crate) fn all() -> Vec<Series> {
    let mut series = Vec::new();
    for operation in operations::ALL {
        let name = operation.name;
        series.push(Series::new(format!("library/{name}"), || {
            library(operation)
        }));
        series.push(Series::new(format!("write/{name}"), || write(operation)));
        if operation.cycle {
            series.push(Series::new(format!("mock/{name}"), || {
                mock(operation, &nic(DriverRelease::Shs14_0_1)?)
            }));
        }
    }
    let operation = &operations::SERVICE_CYCLE;
    for release in DriverRelease::ALL {
        let name = format!("mock/{}@{release}", operation.name);
        series.push(Series::new(name, move || mock(operation, &nic(release)?)));
        let name = format!("mock/{}, NIC full@{release}", operation.name);
        series.push(Series::new(name, move || {
            let nic = nic(release)?;
            fill(&nic)?;
            mock(operation, &nic)
        }));
    }
    series.extend(pure::all());
    series
}

fn nic(release: DriverRelease) -> Result<InProcess> {
    let nic = Nic::new(NicConfig::new().release(release))?;
    Ok(nic.open()?.transport(Credentials::root()))
}

fn device(transport: Arc<dyn cxi_ioctl::Transport>) -> Result<Device> {
    let device = Device::with_transport(DeviceId::new(0), transport);
    device.driver()?;
    Ok(device)
}

fn library(operation: &Operation) -> Result<Act> {
    let canned = Arc::new(Canned::new(nic(DriverRelease::Shs14_0_1)?)?);
    let device = device(Arc::<Canned>::clone(&canned))?;
    let mut act = (operation.prepare)(&device)?;
    act();
    canned.freeze();
    Ok(act)
}

fn write(operation: &Operation) -> Result<Act> {
    let sink = std::fs::File::options().write(true).open("/dev/null")?;
    let (_, sent) = commands(operation, &nic(DriverRelease::Shs14_0_1)?)?;
    Ok(Box::new(move || {
        for command in &sent {
            black_box(
                nix::unistd::write(&sink, black_box(command.bytes())).expect("a null device"),
            );
        }
    }))
}

fn mock(operation: &Operation, nic: &InProcess) -> Result<Act> {
    // What is held below an LNI stays, for as long as the commands are sent again.
    let (held, mut sent) = commands(operation, nic)?;
    let nic = nic.clone();
    Ok(Box::new(move || {
        black_box(&held);
        for command in &mut sent {
            command
                .submit(black_box(&nic))
                .expect("what was done before");
        }
    }))
}

/// Makes services until there is room for one more only, or there are enough.
fn fill(nic: &InProcess) -> Result<()> {
    let services = device(Arc::new(nic.clone()))?.services();
    let none = Limit::new(0, 0)?;
    let mut last = None;
    for number in 0..MANY {
        let spec = ServiceSpec::builder().vni(Vni::new(2000 + number)?);
        let spec = spec
            .limits(Limits::none().with(Resource::Tles, none))
            .enabled(false)
            .build()?;
        match (services.create(&spec), last) {
            (Ok(id), _) => last = Some(id),
            (Err(error), Some(last)) if error.errno() == Errno::ENOSPC => {
                return Ok(services.destroy(last)?);
            }
            (Err(error), _) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The commands that a call sends.
fn commands(operation: &Operation, nic: &InProcess) -> Result<(Act, Vec<Sent>)> {
    let noting = Arc::new(Noting::new(nic.clone()));
    let device = device(Arc::<Noting>::clone(&noting))?;
    let mut act = (operation.prepare)(&device)?;
    noting.sent();
    act();
    Ok((act, noting.sent()))
}
