//! Every typed command of the interface by itself, also those that the safe API does not send.

use std::collections::BTreeSet;

use cxi_ioctl::abi::{
    counter, device, domain, link, lni, memory, portal, profile, queue, service, wait,
};
use cxi_ioctl::layout::CommandLayout;
use cxi_ioctl::zerocopy::IntoBytes;
use cxi_ioctl::{
    Command, CommandError, Errno, Mapping, Request, Transport, abi, execute_unchecked,
};

/// Writes so many bytes of response, as far as there is room, and gives that answer.
#[derive(Debug)]
struct Writes(usize, Result<(), Errno>);

impl Transport for Writes {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        let len = self.0.min(request.response().len());
        request.response()[..len].fill(0);
        self.1
    }

    fn map(&self, _offset: u64, _len: usize) -> Result<Mapping, Errno> {
        Err(Errno::ENODEV)
    }
}

const ERRNOS: [Errno; 7] = [
    Errno::EINVAL,
    Errno::EOPNOTSUPP,
    Errno::ENOTTY,
    Errno::ENOSYS,
    Errno::EIO,
    Errno::EINTR,
    Errno::from_raw(4242),
];

/// Lengths up to what there is room for, and more than that. One byte too few is left out: no
/// number of the interface has such a length.
fn lengths(right: usize) -> impl Iterator<Item = usize> {
    (0..=right + 64)
        .chain([4096])
        .filter(move |len| len + 1 != right)
}

fn check<C: Command + Default>(layout: &CommandLayout) {
    let (opcode, right) = (C::OPCODE, size_of::<C::Response>());
    assert_eq!((opcode, right), (layout.opcode, layout.response_len));
    let command = C::default();
    for len in lengths(right) {
        // SAFETY: nobody follows an address.
        let result = unsafe { execute_unchecked(&Writes(len, Ok(())), &command) }
            .map_err(|refusal| refusal.error);
        match result {
            // Without a response there is no buffer that a driver could write to.
            Ok(response) if len == right || right == 0 => {
                assert!(response.as_bytes().iter().all(|byte| *byte == 0));
            }
            Err(CommandError::AbiMismatch {
                opcode: named,
                expected,
                written,
            }) if len != right => {
                assert_eq!((named, expected), (opcode, right));
                assert_eq!(written, len.min(right + 64), "{opcode}");
            }
            _ => panic!("{opcode}: {len} bytes are taken for {right}"),
        }
        for errno in ERRNOS {
            let transport = Writes(len, Err(errno));
            // SAFETY: nobody follows an address.
            let Err(refusal) = (unsafe { execute_unchecked(&transport, &command) }) else {
                panic!("{opcode}: {errno} is taken for success");
            };
            assert_eq!(refusal.error, CommandError::Refused { opcode, errno });
            let explained = refusal.response.is_some();
            assert_eq!(explained, right > 0 && len == right, "{opcode}: {len}");
        }
    }
}

/// Checks the commands of that list.
macro_rules! each {
    ($checked:ident: $($module:ident::$command:ident),* $(,)?) => { $(
        let name = stringify!($command);
        let layout = abi::commands().find(|layout| layout.request == name);
        check::<$module::$command>(layout.expect(name));
        assert!($checked.insert(name));
    )* };
}

#[test]
fn answers_of_any_length_and_any_error() {
    let mut checked = BTreeSet::new();
    each! { checked:
        counter::CtAllocCmd, counter::CtFreeCmd, counter::CtWbUpdateCmd,
        device::DevInfoGetCmd, device::GetDevPropertiesCmd, device::InboundWaitCmd,
        device::MapCsrsCmd,
        domain::DomainAllocCmd, domain::DomainFreeCmd, domain::DomainReserveCmd,
        link::SbusOpCmd, link::SbusOpResetCmd, link::SerdesOpCmd,
        lni::LniAllocCmd, lni::LniAllocCmdV1, lni::LniFreeCmd,
        memory::AtuMapCmd, memory::AtuUnmapCmd, memory::AtuUpdateMdCmd,
        portal::PteAllocCmd, portal::PteFreeCmd, portal::PteLeInvalidateCmd, portal::PteMapCmd,
        portal::PteStatusCmd, portal::PteTransitionSmCmd, portal::PteUnmapCmd,
        profile::CpAllocCmd, profile::CpFreeCmd, profile::CpModifyCmd, profile::TrigCpAllocCmd,
        queue::CqAckCounterCmd, queue::CqAllocBufCmd, queue::CqAllocCmd, queue::CqFreeCmd,
        queue::EqAdjustReservedFcCmd, queue::EqAdjustReservedFcCmdV1, queue::EqAllocCmd,
        queue::EqFreeCmd, queue::EqResizeCmd, queue::EqResizeCompleteCmd,
        service::SvcAllocCmd, service::SvcDestroyCmd, service::SvcEnableCmd, service::SvcGetCmd,
        service::SvcGetExclusiveCpCmd, service::SvcGetLprCmd, service::SvcGetNetnsCmd,
        service::SvcGetVniRangeCmd, service::SvcListGetCmd, service::SvcRsrcGetCmd,
        service::SvcRsrcListGetCmd, service::SvcSetExclusiveCpCmd, service::SvcSetLprCmd,
        service::SvcSetNetnsCmd, service::SvcSetVniRangeCmd, service::SvcUpdateCmd,
        wait::WaitAllocCmd, wait::WaitFreeCmd,
    }
    let known: BTreeSet<&str> = abi::commands().map(|layout| layout.request).collect();
    assert_eq!(checked, known);
}
