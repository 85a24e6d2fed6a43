//! Store of an instruction: the bytes, and the address.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Register};
use nix::libc::user_regs_struct;

/// The longest instruction.
pub(super) const MAX_BYTES: usize = 15;

/// An instruction that may store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store(Instruction);

impl Store {
    /// Decodes the instruction at the start of some code, which is at an address; `None` if that
    /// is not a valid instruction.
    pub(super) fn decode(code: &[u8], address: u64) -> Option<Self> {
        let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        (!instruction.is_invalid()).then_some(Self(instruction))
    }

    /// The address of the next instruction.
    pub(super) fn end(&self) -> u64 {
        self.0.next_ip()
    }

    /// The addresses of its operands in memory.
    pub(super) fn addresses(&self, registers: &user_regs_struct) -> impl Iterator<Item = u64> {
        let read = |register, _, _| value(register, registers);
        let addresses = (0..self.0.op_count()).map(move |at| self.0.virtual_address(at, 0, read));
        // Operands that are not in memory have address 0.
        addresses.flatten().filter(|address| *address != 0)
    }

    /// The word that it stores, if it stores eight bytes.
    pub(super) fn word(&self, registers: &user_regs_struct) -> Option<u64> {
        match self.0.code() {
            Code::Mov_rm64_r64 | Code::Movnti_m64_r64 | Code::Xchg_rm64_r64 => {
                value(self.0.op1_register(), registers)
            }
            Code::Mov_rm64_imm32 => Some(self.0.immediate32to64().cast_unsigned()),
            _ => None,
        }
    }

    /// If the instruction is an exchange, the register that gets the previous word.
    pub(super) fn exchanged<'a>(&self, registers: &'a mut user_regs_struct) -> Option<&'a mut u64> {
        let exchanges = self.0.code() == Code::Xchg_rm64_r64;
        let number = (self.0.op1_register() as usize).checked_sub(Register::RAX as usize);
        let registers = numbered(registers).into_iter();
        registers
            .zip(0..)
            .find_map(|(register, at)| (exchanges && number == Some(at)).then_some(register))
    }
}

/// The value of a register, as part of an address or a word.
fn value(register: Register, of: &user_regs_struct) -> Option<u64> {
    let mut of = *of;
    let (fs, gs) = (of.fs_base, of.gs_base);
    let general = numbered(&mut of);
    let number = |first: Register| (register as usize).checked_sub(first as usize);
    let get = |number: Option<usize>| Some(**general.get(number?)?);
    match register {
        Register::FS => Some(fs),
        Register::GS => Some(gs),
        // The base of all other segments is 0.
        Register::ES | Register::CS | Register::SS | Register::DS => Some(0),
        // Registers of 64 bits are numbered after those of 32 bits, so they are tried first. A
        // register of 32 bits leaves the upper half out of an address.
        _ => get(number(Register::RAX))
            .or_else(|| get(number(Register::EAX)).map(|value| value & u64::from(u32::MAX))),
    }
}

/// The registers that instructions number from 0 to 15.
fn numbered(of: &mut user_regs_struct) -> [&mut u64; 16] {
    [
        &mut of.rax,
        &mut of.rcx,
        &mut of.rdx,
        &mut of.rbx,
        &mut of.rsp,
        &mut of.rbp,
        &mut of.rsi,
        &mut of.rdi,
        &mut of.r8,
        &mut of.r9,
        &mut of.r10,
        &mut of.r11,
        &mut of.r12,
        &mut of.r13,
        &mut of.r14,
        &mut of.r15,
    ]
}

#[cfg(test)]
mod tests {
    use nix::sys::ptrace;
    use nix::unistd::Pid;

    use super::*;

    /// Registers of a thread, which all have values of their own.
    fn registers() -> user_regs_struct {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        ptrace::seize(pid, ptrace::Options::empty()).unwrap();
        ptrace::interrupt(pid).unwrap();
        nix::sys::wait::waitpid(pid, None).unwrap();
        let mut registers = ptrace::getregs(pid).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        for (value, register) in (1..).zip(numbered(&mut registers)) {
            *register = value << 32 | value;
        }
        (registers.fs_base, registers.gs_base) = (0x5000, 0x6000);
        registers
    }

    #[test]
    fn stores_of_eight_bytes_have_a_word_and_an_address() {
        let mut registers = registers();
        let of = registers;
        let (rax, rcx, rdx, rbx, rdi, r9) = (of.rax, of.rcx, of.rdx, of.rbx, of.rdi, of.r9);
        for (code, word, address, exchanges) in [
            // mov [rdx], rax
            (&[0x48, 0x89, 0x02][..], Some(rax), rdx, false),
            // mov [rbx + 64], r9
            (&[0x4c, 0x89, 0x4b, 0x40], Some(r9), rbx + 64, false),
            // mov [rdx + rax * 8 + 1], rcx
            (&[0x48, 0x89, 0x4c, 0xc2, 0x01], Some(rcx), rdx + rax * 8 + 1, false),
            // mov [rip + 0x100], rcx
            (&[0x48, 0x89, 0x0d, 0, 1, 0, 0], Some(rcx), 0x40_0107, false),
            // mov [edx], rax
            (&[0x67, 0x48, 0x89, 0x02], Some(rax), 3, false),
            // mov fs:[rdx], rax
            (&[0x64, 0x48, 0x89, 0x02], Some(rax), 0x5000 + rdx, false),
            // mov qword ptr [rax + 128], -1
            (
                &[0x48, 0xc7, 0x80, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
                Some(u64::MAX),
                rax + 128,
                false,
            ),
            // xchg [rdx], r9
            (&[0x4c, 0x87, 0x0a], Some(r9), rdx, true),
            // movnti [rcx], rax
            (&[0x48, 0x0f, 0xc3, 0x01], Some(rax), rcx, false),
            // mov [rdx], eax
            (&[0x89, 0x02], None, rdx, false),
            // movups [rdx], xmm0
            (&[0x0f, 0x11, 0x02], None, rdx, false),
            // stosq
            (&[0x48, 0xab], None, rdi, false),
        ] {
            let store = Store::decode(code, 0x40_0000).unwrap();
            assert_eq!(store.end(), 0x40_0000 + code.len() as u64, "{code:x?}");
            assert_eq!(store.word(&registers), word, "{code:x?}");
            let addresses: Vec<_> = store.addresses(&registers).collect();
            assert_eq!(addresses, [address], "{code:x?}");
            let exchanged = store.exchanged(&mut registers).copied();
            assert_eq!(exchanged, exchanges.then_some(r9), "{code:x?}");
        }
        assert!(Store::decode(&[0x48, 0x89], 0).is_none());
        assert!(Store::decode(&[], 0).is_none());
    }
}
