//! The mock under test: every step is a command's bytes, every answer is checked, and after every
//! step the whole device is compared with the reference.

use std::collections::BTreeSet;
use std::sync::Arc;

use cxi_ioctl::abi::lni::{LniAllocCmd, LniFreeCmd};
use cxi_ioctl::abi::service::{
    Limits, RSRC_COUNT, RsrcUse, SvcAllocCmd, SvcAllocResp, SvcDesc, SvcDestroyCmd, SvcEnableCmd,
    SvcGetLprCmd, SvcListGetCmd, SvcMember, SvcRsrcListGetCmd, SvcSetLprCmd, SvcSetVniRangeCmd,
    SvcUpdateCmd,
};
use cxi_ioctl::{Errno, Release};
use cxi_mock::{Client, Credentials, Nic, NicConfig};
use cxi_tests::device::Buffers;
use proptest_state_machine::StateMachineTest;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use crate::model::{Answer, FILES, Model, Service};
use crate::operation::{Caller, Command, Descriptor, Member, Operation};
use crate::reservation::{FailInfo, TOTALS};

/// Not applicable, in a usage figure.
const NOT_APPLICABLE: u16 = 0xFFFF;

pub(crate) struct Machine {
    nic: Arc<Nic>,
    files: [Option<Client>; FILES],
    /// Asks what there is, after every step.
    observer: Client,
    before: Snapshot,
}

/// Everything that can be seen of the device.
#[derive(Clone, Debug, PartialEq)]
struct Snapshot {
    state: serde_json::Value,
    services: Vec<u8>,
}

impl StateMachineTest for Machine {
    type SystemUnderTest = Self;
    type Reference = Model;

    fn init_test(_reference: &Model) -> Self {
        let nic = Nic::new(NicConfig::new().release(Release::Main)).unwrap();
        let observer = nic.open().unwrap();
        let before = snapshot(&nic, &observer);
        Self {
            nic,
            files: [const { None }; FILES],
            observer,
            before,
        }
    }

    fn apply(mut machine: Self, reference: &Model, operation: Operation) -> Self {
        match &operation {
            Operation::Open { file } => machine.files[*file] = Some(machine.nic.open().unwrap()),
            Operation::Close { file } => machine.files[*file] = None,
            Operation::Command {
                file,
                caller,
                command,
            } => {
                let client = machine.files[*file].as_ref().unwrap();
                let answer = send(client, *caller, command);
                assert_eq!(answer, reference.answer, "{operation:?}");
            }
        }
        let after = snapshot(&machine.nic, &machine.observer);
        if failed(&reference.answer) && !reference.leaves_trace {
            assert_eq!(
                after, machine.before,
                "a refused command changed something: {operation:?}"
            );
        }
        machine.before = after;
        machine
    }

    fn check_invariants(machine: &Self, reference: &Model) {
        machine.conservation(reference);
        machine.lists(reference);
        machine.identifiers(reference);
    }
}

impl Machine {
    /// Reserved and shared make up the device, and the reservations are those of the services.
    fn conservation(&self, reference: &Model) {
        let state = self.nic.state();
        let names = [
            &["ptes"][..],
            &["txqs"],
            &["tgqs"],
            &["eqs"],
            &["cts"],
            &["le0", "le1", "le2", "le3"],
            &["tles"],
            &["acs"],
        ];
        for (kind, names) in names.iter().enumerate() {
            for name in *names {
                let resource = &state.resources[name];
                assert_eq!(resource.max, u32::from(TOTALS[kind]), "{name}");
                assert_eq!(resource.reserved + resource.shared, resource.max, "{name}");
                assert_eq!(
                    resource.reserved,
                    u32::from(reference.device.reserved[kind]),
                    "{name}"
                );
                let of_services: u16 = reference
                    .services
                    .values()
                    .map(|service| service.held.limits[kind].1)
                    .sum();
                assert_eq!(resource.reserved, u32::from(of_services), "{name}");
                assert_eq!((resource.in_use, resource.shared_use), (0, 0), "{name}");
            }
        }
        assert_eq!(
            state.tle_pools_used as usize,
            reference.device.tle_pools_used()
        );
        assert_eq!(state.svc_count as usize, reference.services.len());
        assert_eq!(state.stats.lni as usize, reference.lnis.len());
        assert_eq!(state.lni_cleanups_pending, 0);
        let enabled = state
            .rx_profiles
            .iter()
            .filter(|profile| profile.enabled)
            .count();
        assert_eq!(state.rmu_used as usize, enabled);
    }

    /// What the lists and single answers say is what the reference has.
    fn lists(&self, reference: &Model) {
        let services: Vec<SvcDesc> = list(&self.observer, reference.services.len(), |count| {
            let mut command = SvcListGetCmd::new();
            command.count = count;
            command
        });
        let expected: Vec<Descriptor> = reference.services.values().map(shown).collect();
        let got: Vec<Descriptor> = services.iter().map(from_abi).collect();
        assert_eq!(got, expected);
        let usage: Vec<RsrcUse> = list(&self.observer, reference.services.len(), |count| {
            let mut command = SvcRsrcListGetCmd::new();
            command.count = count;
            command
        });
        let expected: Vec<RsrcUse> = reference.services.values().map(usage_of).collect();
        assert_eq!(usage, expected);
        for (svc_id, service) in &reference.services {
            let mut command = SvcGetLprCmd::new();
            command.svc_id = *svc_id;
            let (result, response) = write(&self.observer, &Credentials::user(9, 9), &command);
            assert_eq!(
                (result, response.unwrap()),
                (Ok(()), service.lnis_per_rgid.as_bytes().to_vec())
            );
        }
    }

    /// Live identifiers are unique, and those of the reference.
    fn identifiers(&self, reference: &Model) {
        let state = self.nic.state();
        let rgids: Vec<u32> = state.rgids.iter().map(|rgid| rgid.rgid).collect();
        let unique: BTreeSet<u32> = rgids.iter().copied().collect();
        assert_eq!(unique.len(), rgids.len());
        assert_eq!(unique, reference.rgids());
        for rgid in &state.rgids {
            let sharing = reference.lnis.values().filter(|lni| lni.rgid == rgid.rgid);
            assert_eq!(
                rgid.refcount as usize,
                sharing.count(),
                "RGID {}",
                rgid.rgid
            );
        }
        for profiles in [
            state
                .rx_profiles
                .iter()
                .map(|profile| profile.id)
                .collect::<Vec<_>>(),
            state.tx_profiles.iter().map(|profile| profile.id).collect(),
            state.rgroups.iter().map(|group| group.id).collect(),
        ] {
            let unique: BTreeSet<u32> = profiles.iter().copied().collect();
            assert_eq!(unique.len(), profiles.len());
        }
    }
}

fn failed(answer: &Answer) -> bool {
    match answer {
        Answer::Failed(_) => true,
        Answer::Allocated { result, .. } | Answer::Updated(result) => result.is_err(),
        Answer::Ok | Answer::Lni(_) => false,
    }
}

fn snapshot(nic: &Nic, observer: &Client) -> Snapshot {
    let state = serde_json::to_value(nic.state()).unwrap();
    let mut command = SvcListGetCmd::new();
    command.count = 1000;
    let mut buffers = Buffers::default();
    observer
        .write(&Credentials::root(), command.as_bytes(), &mut buffers)
        .unwrap();
    Snapshot {
        state,
        services: buffers.list,
    }
}

type Written = (Result<(), Errno>, Option<Vec<u8>>);

fn write<C: IntoBytes + Immutable>(client: &Client, caller: &Credentials, command: &C) -> Written {
    let mut buffers = Buffers::default();
    let result = client.write(caller, command.as_bytes(), &mut buffers);
    if let Ok(length) = result {
        assert_eq!(length, size_of::<C>());
    }
    (result.map(|_| ()), buffers.response)
}

/// Asks for as many entries as there should be, and gets exactly those.
fn list<C, E>(client: &Client, count: usize, command: impl Fn(u32) -> C) -> Vec<E>
where
    C: IntoBytes + Immutable,
    E: FromBytes + Immutable + Copy,
{
    let count = u32::try_from(count).unwrap();
    let mut buffers = Buffers::default();
    let command = command(count);
    client
        .write(&Credentials::user(9, 9), command.as_bytes(), &mut buffers)
        .unwrap();
    assert_eq!(buffers.response.as_deref(), Some(count.as_bytes()));
    let entries = buffers.list.chunks(size_of::<E>());
    entries
        .map(|bytes| E::read_from_bytes(bytes).unwrap())
        .collect()
}

fn send(client: &Client, caller: Caller, command: &Command) -> Answer {
    let mut credentials = Credentials::user(caller.uid, caller.gid);
    credentials.sys_admin = caller.admin;
    credentials.net_raw = caller.admin;
    credentials.netns = caller.netns;
    let (result, response) = match command {
        Command::SvcAlloc(descriptor) => {
            let mut command = SvcAllocCmd::new();
            command.svc_desc = to_abi(descriptor);
            write(client, &credentials, &command)
        }
        Command::SvcUpdate(descriptor) => {
            let mut command = SvcUpdateCmd::new();
            command.svc_desc = to_abi(descriptor);
            write(client, &credentials, &command)
        }
        Command::SvcDestroy { svc_id } => {
            let mut command = SvcDestroyCmd::new();
            command.svc_id = *svc_id;
            write(client, &credentials, &command)
        }
        Command::SvcEnable { svc_id, enable } => {
            let mut command = SvcEnableCmd::new();
            command.svc_id = *svc_id;
            command.enable = (*enable).into();
            write(client, &credentials, &command)
        }
        Command::SvcSetLpr {
            svc_id,
            lnis_per_rgid,
        } => {
            let mut command = SvcSetLprCmd::new();
            command.svc_id = *svc_id;
            command.lnis_per_rgid = *lnis_per_rgid;
            write(client, &credentials, &command)
        }
        Command::SvcSetVniRange { svc_id, min, max } => {
            let mut command = SvcSetVniRangeCmd::new();
            command.svc_id = *svc_id;
            command.vni_min = *min;
            command.vni_max = *max;
            write(client, &credentials, &command)
        }
        Command::LniAlloc { svc_id } => {
            let mut command = LniAllocCmd::new();
            command.svc_id = *svc_id;
            write(client, &credentials, &command)
        }
        Command::LniFree { lni } => {
            let mut command = LniFreeCmd::new();
            command.lni = *lni;
            write(client, &credentials, &command)
        }
    };
    answer(command, result, response)
}

fn answer(command: &Command, result: Result<(), Errno>, response: Option<Vec<u8>>) -> Answer {
    match (command, response) {
        (Command::SvcAlloc(_), Some(bytes)) => {
            let response = SvcAllocResp::read_from_bytes(&bytes).unwrap();
            assert_eq!(response.fail_info.no_cntr_pools, 0);
            let info = FailInfo {
                rsrc_avail: response.fail_info.rsrc_avail,
                no_le_pools: response.fail_info.no_le_pools != 0,
                no_tle_pools: response.fail_info.no_tle_pools != 0,
            };
            Answer::Allocated {
                svc_id: response.svc_id,
                result,
                info,
            }
        }
        (Command::SvcUpdate(_), Some(bytes)) => {
            assert_eq!(bytes, [0; 20]);
            Answer::Updated(result)
        }
        (Command::LniAlloc { .. }, Some(bytes)) if result.is_ok() => {
            Answer::Lni(u32::read_from_bytes(&bytes).unwrap())
        }
        (_, Some(bytes)) => panic!("{command:?} wrote a response: {bytes:?} ({result:?})"),
        (_, None) => result.map_or_else(Answer::Failed, |()| Answer::Ok),
    }
}

fn shown(service: &Service) -> Descriptor {
    Descriptor {
        enable: service.enabled,
        ..service.descriptor.clone()
    }
}

fn usage_of(service: &Service) -> RsrcUse {
    let mut usage = RsrcUse::new_zeroed();
    usage.svc_id = service.descriptor.svc_id;
    usage.tle_pool_id = service.held.tle_pool.unwrap_or(0);
    if service.held.le_pool.is_none() {
        usage.in_use[5] = NOT_APPLICABLE;
    }
    if service.held.tle_pool.is_none() {
        usage.in_use[6] = NOT_APPLICABLE;
    }
    usage
}

fn to_abi(from: &Descriptor) -> SvcDesc {
    let mut to = SvcDesc::new_zeroed();
    let flags = [
        from.restricted_members,
        from.restricted_vnis,
        from.restricted_tcs,
        from.resource_limits,
        from.enable,
        from.is_system_svc,
    ];
    for (bit, flag) in flags.into_iter().enumerate() {
        to.flags |= u8::from(flag) << bit;
    }
    to.flags |= from.cntr_pool_id << 6;
    to.num_vld_vnis = from.num_vld_vnis;
    to.vnis = from.vnis;
    to.tcs = from.tcs.map(u8::from);
    to.members = from.members.map(|member| SvcMember {
        id: member.id,
        kind: member.kind,
    });
    to.limits.types = from.limits.map(|(max, res)| Limits { max, res });
    to.svc_id = from.svc_id;
    to
}

fn from_abi(from: &SvcDesc) -> Descriptor {
    const { assert!(RSRC_COUNT == TOTALS.len()) };
    let flag = |bit: u8| from.flags >> bit & 1 == 1;
    Descriptor {
        restricted_members: flag(0),
        restricted_vnis: flag(1),
        restricted_tcs: flag(2),
        resource_limits: flag(3),
        enable: flag(4),
        is_system_svc: flag(5),
        cntr_pool_id: from.flags >> 6,
        num_vld_vnis: from.num_vld_vnis,
        vnis: from.vnis,
        tcs: from.tcs.map(|class| class == 1),
        members: from.members.map(|member| Member {
            kind: member.kind,
            id: member.id,
        }),
        limits: from.limits.types.map(|limits| (limits.max, limits.res)),
        svc_id: from.svc_id,
    }
}
