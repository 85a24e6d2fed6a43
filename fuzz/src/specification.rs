//! Any specification as a descriptor and back, and any descriptor as a specification and back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cxi::driver::Quirks;
use cxi::{
    Device, ErrorKind, Limit, Limits, Member, Resource, Service, ServiceId, ServiceSpec,
    TrafficClasses, Vni, VniAccess, VniRange,
};
use cxi_ioctl::abi::service::{
    SvcAllocCmd, SvcAllocResp, SvcDesc, SvcEnableCmd, SvcFlags, SvcGetVniRangeResp, SvcSetNetnsCmd,
    SvcSetVniRangeCmd, SvcUpdateCmd, SvcUpdateResp,
};
use cxi_ioctl::{DriverRelease, Errno, Opcode, Request, Transport};
use cxi_mock::{InProcess, Nic, NicConfig};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::input::Input;
use crate::told;

/// The one service that is made.
const SERVICE: u32 = 2;

/// A mock NIC that keeps one service as it is told, however little sense it makes; all else is
/// answered by the mock.
#[derive(Debug)]
struct Notebook {
    truth: InProcess,
    before_13_1: bool,
    page: Mutex<Page>,
}

#[derive(Clone, Copy, Debug)]
struct Page {
    desc: SvcDesc,
    range: Option<(u32, u32)>,
}

impl Notebook {
    fn page(&self) -> MutexGuard<'_, Page> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read<T: FromBytes>(request: &Request<'_>) -> Result<T, Errno> {
    T::read_from_bytes(request.command()).map_err(|_| Errno::EINVAL)
}

fn answer(room: &mut [u8], response: &[u8]) -> Result<(), Errno> {
    let room = room.get_mut(..response.len());
    room.ok_or(Errno::EFAULT)?.copy_from_slice(response);
    Ok(())
}

impl Transport for Notebook {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        let mut page = self.page();
        let command = request.command();
        let about = |at: usize| command.get(at..at + 4) == Some(&SERVICE.to_ne_bytes());
        match request.opcode() {
            Opcode::SVC_ALLOC => {
                let mut desc = read::<SvcAllocCmd>(&request)?.svc_desc;
                desc.svc_id = SERVICE;
                // Without VNIs there is nothing to enable yet.
                if !self.before_13_1 && desc.flags & SvcFlags::RESTRICTED_VNIS.bits() == 0 {
                    desc.flags &= !SvcFlags::ENABLE.bits();
                }
                *page = Page { desc, range: None };
                let response = SvcAllocResp { svc_id: SERVICE, ..FromZeros::new_zeroed() };
                answer(request.response(), response.as_bytes())
            }
            Opcode::SVC_UPDATE => {
                page.desc = read::<SvcUpdateCmd>(&request)?.svc_desc;
                let response = [0; size_of::<SvcUpdateResp>()];
                answer(request.response(), &response)
            }
            Opcode::SVC_GET if about(16) => answer(request.response(), page.desc.as_bytes()),
            Opcode::SVC_ENABLE => {
                page.desc.flags &= !SvcFlags::ENABLE.bits();
                if read::<SvcEnableCmd>(&request)?.enable != 0 {
                    page.desc.flags |= SvcFlags::ENABLE.bits();
                }
                Ok(())
            }
            Opcode::SVC_SET_VNI_RANGE => {
                let command = read::<SvcSetVniRangeCmd>(&request)?;
                page.range = Some((command.vni_min, command.vni_max));
                Ok(())
            }
            Opcode::SVC_GET_VNI_RANGE if about(16) => match page.range {
                Some((vni_min, vni_max)) => {
                    let range = SvcGetVniRangeResp { vni_min, vni_max };
                    answer(request.response(), range.as_bytes())
                }
                None => Err(Errno::EINVAL),
            },
            // The other one is the question that tells drivers apart.
            Opcode::SVC_SET_NETNS if read::<SvcSetNetnsCmd>(&request)?.svc_id == SERVICE => Ok(()),
            _ => self.truth.submit(request),
        }
    }
}

/// The bytes of a descriptor, or the choices of a specification, on a release.
///
/// # Panics
///
/// When what was read back is not what was written.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let release = input.choose(&DriverRelease::ALL);
    let Ok(nic) = Nic::new(NicConfig::new().release(release)) else { return };
    let Ok(truth) = nic.root() else { return };
    let empty = Page { desc: SvcDesc::new_zeroed(), range: None };
    let notebook = Arc::new(Notebook {
        truth,
        before_13_1: release < DriverRelease::Shs13_1,
        page: Mutex::new(empty),
    });
    let transport: Arc<dyn Transport> = Arc::<Notebook>::clone(&notebook);
    let device = Device::cxi0(transport).allow_quirks(Quirks::all());
    if input.flag() {
        if let Some(spec) = specification(&mut input) {
            texts(&spec);
            written(&device, &spec);
        }
    } else {
        let bytes = filled(&mut input);
        let desc = SvcDesc::read_from_bytes(&bytes);
        let range = input.flag().then(|| (input.u32(), input.u32()));
        if let Ok(desc) = desc {
            *notebook.page() = Page { desc: SvcDesc { svc_id: SERVICE, ..desc }, range };
            descriptor(&device, &notebook);
        }
    }
}

fn filled(input: &mut Input<'_>) -> [u8; size_of::<SvcDesc>()] {
    let mut bytes = [0; size_of::<SvcDesc>()];
    let taken = input.take(bytes.len());
    bytes[..taken.len()].copy_from_slice(taken);
    bytes
}

fn specification(input: &mut Input<'_>) -> Option<ServiceSpec> {
    let mut builder = ServiceSpec::builder();
    let choice = input.byte();
    if choice & 1 != 0 {
        builder = builder.members([]);
        for _ in 0..input.byte() % 4 {
            let id = input.u32();
            builder = builder.member(match input.byte() % 4 {
                0 => Member::NetNs(id),
                1 => Member::Gid(id),
                2 => Member::Other { kind: id, id },
                _ => Member::Uid(id),
            });
        }
    }
    if choice & 2 != 0 {
        let count = usize::from(input.byte() % 6);
        let vnis: Vec<Vni> = (0..count).filter_map(|_| Vni::new(input.u16()).ok()).collect();
        builder = builder.vnis(vnis);
    }
    if choice & 4 != 0
        && let Ok(first) = Vni::new(input.u16())
        && let Ok(range) = VniRange::new(first, 1 << (input.byte() % 16))
    {
        builder = builder.vni_range(range);
    }
    if choice & 8 != 0 {
        builder = builder.unrestricted_vnis();
    }
    if choice & 16 != 0 {
        builder = builder.traffic_classes(TrafficClasses::from_bits_retain(input.byte()));
    }
    if choice & 32 != 0 {
        let mut limits = Limits::default();
        for resource in Resource::ALL {
            let (reserved, max) = (input.u16() & 0xFFF, input.u16() & 0xFFF);
            limits[resource] = Limit::new(reserved, max).unwrap_or(Limit::exactly(max));
        }
        builder = builder.limits(limits);
    }
    let switches = input.byte();
    let built = builder
        .enabled(choice & 64 == 0)
        .system(choice & 128 != 0)
        .exclusive_vnis(switches & 1 != 0)
        .counter_pool(switches >> 1 & 7)
        .build();
    told(built)
}

/// A specification is the same after it was a text.
fn texts(spec: &ServiceSpec) {
    let json = serde_json::to_string(spec).unwrap_or_default();
    let again = serde_json::from_str::<ServiceSpec>(&json);
    assert_eq!(again.ok().as_ref(), Some(spec), "{json}");
    assert_eq!(cxi_cli::read::specification(&json).as_ref(), Ok(spec));
    let yaml = cxi_cli::read::print_specification(spec).unwrap_or_default();
    assert_eq!(cxi_cli::read::specification(&yaml).as_ref(), Ok(spec), "{yaml}");
}

/// Makes a service of it, and says what it is then. `None` if the driver cannot do that.
fn written(device: &Device, spec: &ServiceSpec) -> Option<ServiceSpec> {
    let id = match device.services().create(spec) {
        Ok(id) => id,
        Err(error) => {
            let known = matches!(
                error.kind(),
                ErrorKind::InvalidSpec(_)
                    | ErrorKind::Unsupported { .. }
                    | ErrorKind::NotGuaranteed { .. }
                    | ErrorKind::NotEnough(_)
                    | ErrorKind::VniTaken(_)
            );
            assert!(known, "{spec:?}: {error}");
            return None;
        }
    };
    let service = device.services().get(id).expect("a service that was made");
    let read = ServiceSpec::try_from(&service).expect("a service that was asked for");
    assert_eq!(comparable(&read, *spec), comparable(spec, *spec), "{service:?}");
    Some(read)
}

/// Returns the part of a specification that a driver keeps: it is not told that VNIs are to be
/// exclusive, and does not enable a service without VNIs.
fn comparable(spec: &ServiceSpec, wanted: ServiceSpec) -> ServiceSpec {
    let mut builder = ServiceSpec::builder()
        .vni_access(spec.vnis())
        .system(spec.is_system())
        .counter_pool(spec.counter_pool())
        .enabled(spec.is_enabled() && wanted.vnis() != VniAccess::Unrestricted);
    if let Some(members) = spec.members() {
        builder = builder.members(members.iter());
    }
    if let Some(classes) = spec.traffic_classes() {
        builder = builder.traffic_classes(classes);
    }
    if let Some(limits) = spec.limits() {
        builder = builder.limits(*limits);
    }
    builder.build().expect("parts of a specification")
}

/// A service that a driver has, of whatever bytes.
fn descriptor(device: &Device, notebook: &Notebook) {
    let services = device.services();
    let id = ServiceId::new(SERVICE).expect("not zero");
    let service: Service = match services.get(id) {
        Ok(service) => service,
        Err(error) => {
            assert!(error.to_string().starts_with("cxi0: "), "{error}");
            return;
        }
    };
    assert!(!format!("{service:?}").is_empty());
    serde_json::to_string(&service).expect("a service as JSON");
    assert_eq!(service.descriptor(), &notebook.page().desc, "bytes are kept");
    let Some(spec) = told(ServiceSpec::try_from(&service)) else { return };
    texts(&spec);
    if let Some(again) = written(device, &spec) {
        let first = notebook.page().desc;
        // What a service became is what makes it so.
        if written(device, &again).is_some() {
            assert_eq!(first, notebook.page().desc, "{again:?}");
        }
    }
}

/// Descriptors that drivers have, and the choices of every kind of specification.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let releases = 0..u8::try_from(DriverRelease::ALL.len()).unwrap_or(0);
    let mut seeds = Vec::new();
    for release in releases {
        for choice in [0x33_u8, 0x22, 0x24, 0x34, 0x28, 0x77, 0xB2] {
            let mut seed = vec![release, 1, choice];
            seed.extend((0..64_u8).map(|byte| byte.wrapping_mul(37) % 251));
            seeds.push(seed);
        }
        for flags in [0x10, 0x3F, 0x1B, 0x17, 0xD2] {
            let mut desc = SvcDesc::new_zeroed();
            desc.flags = flags;
            desc.num_vld_vnis = 2;
            desc.vnis = [1024, 1025, 0, 0];
            desc.tcs = [1, 0, 1, 0, 0];
            desc.members[0].kind = 1;
            desc.members[0].id = 1000;
            for limit in &mut desc.limits.types {
                limit.max = 16;
                limit.res = 8;
            }
            let mut seed = vec![release, 0];
            seed.extend(desc.as_bytes());
            seed.extend([1, 64, 0, 0, 0, 127, 0, 0, 0]);
            seeds.push(seed);
        }
    }
    seeds
}
