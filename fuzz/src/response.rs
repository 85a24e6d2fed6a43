//! Any bytes as the answers of a kernel that lies: counts, sizes, enumerations, errors.

use std::sync::{Arc, Mutex, PoisonError};

use cxi::{Device, DeviceId, ServiceId, ServiceSpec, Vni};
use cxi_ioctl::{Errno, Mapping, Request, Transport};

use crate::input::Input;

/// A driver that answers what it is told to, and gives up when it has nothing more to say.
#[derive(Debug)]
struct Liar {
    script: Mutex<Vec<u8>>,
}

impl Transport for Liar {
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = std::mem::take(&mut *script);
        let mut input = Input(&bytes);
        if input.is_empty() {
            return Err(Errno::EIO);
        }
        let (errno, response, list) = (input.byte(), input.byte(), input.byte());
        fill(request.response, usize::from(response), &mut input);
        fill(request.list, usize::from(list) * 16, &mut input);
        *script = input.0.to_vec();
        match errno {
            0..=127 => Ok(()),
            number => Err(Errno::from_raw(i32::from(number) - 127)),
        }
    }

    fn map(&self, _offset: u64, _len: usize) -> Result<Mapping, Errno> {
        Err(Errno::ENODEV)
    }
}

fn fill(buffer: &mut [u8], len: usize, input: &mut Input<'_>) {
    let bytes = input.take(len.min(buffer.len()));
    buffer[..bytes.len()].copy_from_slice(bytes);
}

/// Everything that asks a device, answered with the input.
///
/// # Panics
///
/// Never, unless the library does.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let choice = input.byte();
    let liar = Liar {
        script: Mutex::new(input.0.to_vec()),
    };
    let device = Device::with_transport(DeviceId::new(0), Arc::new(liar));
    let services = device.services();
    let id = ServiceId::DEFAULT;
    let text = match choice % 10 {
        0 => format!("{:?}", device.info()),
        1 => format!("{:?}", services.list()),
        2 => format!("{:?}", services.usage_all()),
        3 => format!("{:?}", services.get(id)),
        4 => format!("{:?}", services.lnis_per_rgid(id)),
        5 => format!("{:?}", services.vni_range(id)),
        6 => format!("{:?}", services.netns(id)),
        7 => format!("{:?}", device.totals()),
        8 => {
            let spec = Vni::new(50).map(|vni| ServiceSpec::builder().vni(vni).build());
            match spec {
                Ok(Ok(spec)) => format!("{:?}", services.create(&spec)),
                _ => String::new(),
            }
        }
        _ => format!("{:?}", device.alloc_lni(id).map(|lni| lni.number())),
    };
    assert!(
        text.len() < 64 << 20,
        "an answer of a lying kernel stays bounded"
    );
}

/// A short truth for each call.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    (0..10)
        .map(|choice| {
            let mut seed = vec![choice];
            for _ in 0..4 {
                seed.extend([0, 84, 5]);
                seed.extend([1; 84]);
                seed.extend([0; 80]);
            }
            seed
        })
        .collect()
}
