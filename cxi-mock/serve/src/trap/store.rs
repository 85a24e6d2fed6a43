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
    /// The number of the register that gets what was there before, if the instruction exchanges.
    pub(super) exchanges: Option<usize>,
}

impl Store {
    /// The instruction at the start of some code; `None` if it is none.
    pub(super) fn decode(code: &[u8], registers: &[u64; 16]) -> Option<Self> {
        let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return None;
        }
        let register = || instruction.op1_register() as usize - Register::RAX as usize;
        let (word, exchanges) = match instruction.code() {
            Code::Mov_rm64_r64 | Code::Movnti_m64_r64 => (registers.get(register()).copied(), None),
            Code::Xchg_rm64_r64 => (registers.get(register()).copied(), Some(register())),
            Code::Mov_rm64_imm32 => (Some(instruction.immediate32to64().cast_unsigned()), None),
            _ => (None, None),
        };
        Some(Self {
            len: instruction.len() as u64,
            word,
            exchanges,
        })
    }
}

/// The registers that instructions number from 0 to 15.
pub(super) fn numbered(of: &mut user_regs_struct) -> [&mut u64; 16] {
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
    use super::*;

    #[test]
    fn stores_of_eight_bytes_have_a_word() {
        let mut registers = [0; 16];
        (registers[0], registers[9]) = (7, 9);
        for (code, len, word, exchanges) in [
            // mov [rdx], rax
            (&[0x48, 0x89, 0x02][..], 3, Some(7), None),
            // mov [rbx + 64], r9
            (&[0x4c, 0x89, 0x4b, 0x40], 4, Some(9), None),
            // mov qword ptr [rax + 128], -1
            (
                &[0x48, 0xc7, 0x80, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
                11,
                Some(u64::MAX),
                None,
            ),
            // xchg [rdx], r9
            (&[0x4c, 0x87, 0x0a], 3, Some(9), Some(9)),
            // movnti [rcx], rax
            (&[0x48, 0x0f, 0xc3, 0x01], 4, Some(7), None),
            // mov [rdx], eax
            (&[0x89, 0x02], 2, None, None),
            // movups [rdx + 16], xmm0
            (&[0x0f, 0x11, 0x42, 0x10], 4, None, None),
        ] {
            // What follows does not matter.
            let code = [code, &[0x90; 3]].concat();
            let store = Store {
                len,
                word,
                exchanges,
            };
            assert_eq!(Store::decode(&code, &registers), Some(store));
        }
        assert_eq!(Store::decode(&[0x48, 0x89], &registers), None);
        assert_eq!(Store::decode(&[], &registers), None);
    }
}
