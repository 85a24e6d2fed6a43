//! Any bytes as commands to the mock, of any release, by any caller.

use cxi_ioctl::abi::lni::LniAllocCmd;
use cxi_ioctl::abi::service::{SvcAllocCmd, SvcDestroyCmd, SvcListGetCmd};
use cxi_ioctl::{Errno, Opcode, Release};
use cxi_mock::{CallerMemory, Client, Credentials, Nic, NicConfig};

use crate::input::Input;

/// Memory that takes everything.
#[derive(Debug, Default)]
struct Memory {
    written: usize,
}

impl CallerMemory for Memory {
    fn respond(&mut self, response: &[u8]) -> Result<(), Errno> {
        self.written += response.len();
        Ok(())
    }

    fn read_response(&mut self, bytes: &mut [u8]) -> Result<(), Errno> {
        bytes.fill(0xFF);
        Ok(())
    }

    fn write_list(&mut self, list: &[u8]) -> Result<(), Errno> {
        self.written += list.len();
        Ok(())
    }
}

/// The longest command of any release.
const LONGEST: usize = 22_432;

/// First the release, then commands: caller, how the command begins, its length, its bytes.
///
/// # Panics
///
/// When the NIC's accounting is off afterwards.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let release = Release::ALL[usize::from(input.byte()) % Release::ALL.len()];
    let nic = Nic::new(NicConfig::new().release(release)).expect("a NIC with default parameters");
    let start = accounting(&nic);
    let mut files: Vec<Client> = Vec::new();
    while !input.is_empty() {
        let choice = input.byte();
        if choice & 0xF0 == 0xF0 {
            files.pop();
            continue;
        }
        if files.is_empty() || choice & 0x80 != 0 {
            files.push(nic.open().expect("a NIC that is there"));
        }
        let caller = match choice & 3 {
            0 => Credentials::user(1000, 100),
            _ => Credentials::root(),
        };
        let mut command = Vec::new();
        let opcode = input.byte();
        command.extend_from_slice(&u32::from(opcode).to_ne_bytes());
        let len = Opcode::from_number(opcode.into())
            .request_len(release)
            .map_or(16, |len| match len {
                cxi_ioctl::RequestLen::Exact(len) | cxi_ioctl::RequestLen::AtLeast(len) => len,
                _ => 16,
            });
        let len = if choice & 0x40 == 0 {
            len
        } else {
            usize::from(input.byte()) * 97 % LONGEST
        };
        command.extend_from_slice(input.take(len.saturating_sub(4)));
        command.resize(len, 0);
        if let Some(file) = files.last() {
            let mut memory = Memory::default();
            if let Ok(written) = file.write(&caller, &command, &mut memory) {
                assert_eq!(written, command.len(), "a command is taken whole");
            }
        }
        check(&nic);
    }
    drop(files);
    nic.tick();
    check(&nic);
    if nic.state().rgroups.len() == 1 && nic.events().is_empty() {
        assert_eq!(start, accounting(&nic), "everything was given back");
    }
}

fn accounting(nic: &Nic) -> Vec<(String, u32, u32)> {
    let state = nic.state();
    state
        .resources
        .iter()
        .map(|(name, resource)| (name.to_string(), resource.reserved, resource.shared_use))
        .collect()
}

fn check(nic: &Nic) {
    for (name, resource) in &nic.state().resources {
        assert_eq!(
            resource.reserved + resource.shared,
            resource.max,
            "{name}: reserved and shared are all there is"
        );
    }
}

/// Commands that succeed, one after the other.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    use cxi_ioctl::{Command, abi::service::SvcDesc};
    fn body<C: Command>(command: &C) -> Vec<u8> {
        let bytes: Vec<u8> = zerocopy_bytes(command);
        let mut seed = vec![1, u8::try_from(C::OPCODE.number()).unwrap_or(0)];
        seed.extend_from_slice(&bytes[4..]);
        seed
    }
    let mut alloc = SvcAllocCmd::new();
    alloc.svc_desc = SvcDesc {
        flags: 2,
        num_vld_vnis: 1,
        vnis: [50, 0, 0, 0],
        ..alloc.svc_desc
    };
    let mut lni = LniAllocCmd::new();
    lni.svc_id = 2;
    let mut destroy = SvcDestroyCmd::new();
    destroy.svc_id = 2;
    let mut list = SvcListGetCmd::new();
    list.count = 8;
    Release::ALL
        .into_iter()
        .enumerate()
        .map(|(index, _)| {
            let mut seed = vec![u8::try_from(index).unwrap_or(0)];
            seed.extend(body(&alloc));
            seed.extend(body(&list));
            seed.extend(body(&lni));
            seed.extend(body(&destroy));
            seed
        })
        .collect()
}

fn zerocopy_bytes<C: cxi_ioctl::Command>(command: &C) -> Vec<u8> {
    zerocopy::IntoBytes::as_bytes(command).to_vec()
}
