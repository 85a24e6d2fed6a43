//! What an instruction stores.

use iced_x86::{Code, Decoder, DecoderOptions, Register};
use nix::libc::user_regs_struct;

/// The longest instruction.
pub(super) const MAX_BYTES: usize = 15;

/// An instruction that could not store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Store {
    /// Bytes of the instruction.
    pub(super) len: u64,
    /// The word, if the instruction is one that stores eight bytes.
    pub(super) word: Option<u64>,
}

impl Store {
    /// The instruction at the start of some code; `None` if it is none.
    pub(super) fn decode(code: &[u8], registers: &user_regs_struct) -> Option<Self> {
        let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return None;
        }
        let word = match instruction.code() {
            Code::Mov_rm64_r64 | Code::Movnti_m64_r64 | Code::Xchg_rm64_r64 => {
                word(instruction.op1_register(), registers)
            }
            Code::Mov_rm64_imm32 => Some(instruction.immediate32to64().cast_unsigned()),
            _ => None,
        };
        Some(Self {
            len: instruction.len() as u64,
            word,
        })
    }
}

fn word(register: Register, of: &user_regs_struct) -> Option<u64> {
    Some(match register {
        Register::RAX => of.rax,
        Register::RCX => of.rcx,
        Register::RDX => of.rdx,
        Register::RBX => of.rbx,
        Register::RSP => of.rsp,
        Register::RBP => of.rbp,
        Register::RSI => of.rsi,
        Register::RDI => of.rdi,
        Register::R8 => of.r8,
        Register::R9 => of.r9,
        Register::R10 => of.r10,
        Register::R11 => of.r11,
        Register::R12 => of.r12,
        Register::R13 => of.r13,
        Register::R14 => of.r14,
        Register::R15 => of.r15,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Registers of this process's ptrace interface, all zero but two.
    fn registers() -> user_regs_struct {
        zerocopy::transmute!([0_u64; size_of::<user_regs_struct>() / 8])
    }

    #[test]
    fn stores_of_eight_bytes_have_a_word() {
        let registers = user_regs_struct {
            rax: 7,
            r9: 9,
            ..registers()
        };
        for (code, len, word) in [
            // mov [rdx], rax
            (&[0x48, 0x89, 0x02][..], 3, Some(7)),
            // mov [rbx + 64], r9
            (&[0x4c, 0x89, 0x4b, 0x40], 4, Some(9)),
            // mov qword ptr [rax + 128], -1
            (
                &[0x48, 0xc7, 0x80, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
                11,
                Some(u64::MAX),
            ),
            // movnti [rcx], rax
            (&[0x48, 0x0f, 0xc3, 0x01], 4, Some(7)),
            // mov [rdx], eax
            (&[0x89, 0x02], 2, None),
            // movups [rdx + 16], xmm0
            (&[0x0f, 0x11, 0x42, 0x10], 4, None),
        ] {
            // What follows does not matter.
            let code = [code, &[0x90; 3]].concat();
            assert_eq!(Store::decode(&code, &registers), Some(Store { len, word }));
        }
        assert_eq!(Store::decode(&[0x48, 0x89], &registers), None);
        assert_eq!(Store::decode(&[], &registers), None);
    }
}
