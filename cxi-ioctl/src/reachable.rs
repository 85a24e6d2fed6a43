//! Keeping memory that a NIC may still reach.

use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{DeviceMemory, Effect, Errno, Family, Object, Request};

/// The object through which the NIC reaches memory.
type Key = (Object, u32);

type Held = BTreeMap<Key, Vec<Arc<DeviceMemory>>>;

/// The memory that the NIC may reach through an open file.
///
/// Wrapper whose content stays allocated forever when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Reachable {
    held: ManuallyDrop<Mutex<Held>>,
    /// `true` if anything was ever held. Files of programs that answer for their memory themselves
    /// hold nothing, and their commands need no lock.
    in_use: AtomicBool,
}

impl Reachable {
    /// Returns whether a command gives memory to the NIC, or may take away what is held.
    #[inline]
    pub(crate) fn concerns(&self, request: &Request<'_>) -> bool {
        // The opcode first: where the compiler knows it, nothing else is left of this.
        request.memory().is_some()
            || matches!(
                request.opcode().effect(),
                Some(Effect::Frees(Object::Memory | Object::Counter))
            ) && self.in_use.load(Ordering::Acquire)
    }

    /// Writes a command, and holds what it gave to the NIC or lets go of what it took away.
    ///
    /// An object's number can be reused as soon as the object is freed. What is held under a number
    /// is therefore taken out before the command that frees it is written: whatever is held under
    /// it afterward belongs to a later object.
    pub(crate) fn follow(
        &self,
        mut request: Request<'_>,
        write: impl FnOnce(&mut Request<'_>) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let (opcode, command, memory) = (request.opcode(), request.command(), request.memory());
        let effect = opcode.effect();
        if let Some(Effect::Frees(object)) = effect {
            let key = (object, number(command.get(4..)));
            let taken = self.held(|held| held.remove(&key));
            let result = write(&mut request);
            if result != Ok(command.len()) {
                self.hold(key, taken.unwrap_or_default());
            }
            return result;
        }
        let result = write(&mut request);
        // A partially written command may have been carried out.
        if let (Ok(_), Some(memory)) = (result, memory) {
            let key = match (effect, opcode.handler().map(|handler| handler.family)) {
                (Some(Effect::Makes(object)), _) => (object, number(Some(request.response()))),
                (_, Some(Family::Counter)) => (Object::Counter, number(command.get(4..))),
                _ => (Object::Memory, number(command.get(4..))),
            };
            self.hold(key, [Arc::clone(memory)]);
        }
        result
    }

    fn hold(&self, key: Key, memory: impl IntoIterator<Item = Arc<DeviceMemory>>) {
        self.in_use.store(true, Ordering::Release);
        self.held(|held| {
            let place = held.entry(key).or_default();
            for memory in memory {
                if !place.iter().any(|known| Arc::ptr_eq(known, &memory)) {
                    place.push(memory);
                }
            }
        });
    }

    fn held<T>(&self, act: impl FnOnce(&mut Held) -> T) -> T {
        act(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The number that these bytes start with.
fn number(bytes: Option<&[u8]>) -> u32 {
    let number = bytes.and_then(<[u8]>::first_chunk).copied();
    u32::from_ne_bytes(number.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(unsafe_code, reason = "raw requests are unsafe to make")]

    use super::*;
    use crate::memory::read_at;
    use crate::{Opcode, Pointers};

    fn memory() -> (Arc<DeviceMemory>, u64) {
        let memory = Arc::new(DeviceMemory::new(1).unwrap());
        let address = memory.address();
        (memory, address)
    }

    fn is_kept(address: u64) -> bool {
        read_at(address, &mut [0]).is_ok()
    }

    /// A command about object 7, which an allocation answers too.
    fn follow(
        reachable: &Reachable,
        opcode: Opcode,
        memory: Option<&Arc<DeviceMemory>>,
        write: impl FnOnce() -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let mut command = [0; 8];
        command[4] = 7;
        let mut response = 7_u64.to_le_bytes();
        let pointers = Pointers::NONE;
        // SAFETY: there is no driver.
        let request =
            unsafe { Request::from_raw(opcode, &command, pointers, &mut response, &mut []) };
        reachable.follow(request.with_memory(memory), |_| write())
    }

    const DONE: fn() -> Result<usize, Errno> = || Ok(8);

    #[test]
    fn memory_is_kept_until_it_is_taken_away() {
        for (give, take) in [
            (Opcode::ATU_MAP, Opcode::ATU_UNMAP),
            (Opcode::ATU_UPDATE_MD, Opcode::ATU_UNMAP),
            (Opcode::CT_ALLOC, Opcode::CT_FREE),
            (Opcode::CT_WB_UPDATE, Opcode::CT_FREE),
        ] {
            let reachable = Reachable::default();
            let (first, address) = memory();
            follow(&reachable, give, Some(&first), DONE).unwrap();
            assert_eq!(Arc::strong_count(&first), 2, "it is held once");
            follow(&reachable, give, Some(&first), DONE).unwrap();
            assert_eq!(Arc::strong_count(&first), 2, "it is held once");
            drop(first);
            assert!(is_kept(address), "{give}");
            for failure in [Err(Errno::EBUSY), Ok(4)] {
                assert_eq!(follow(&reachable, take, None, || failure), failure);
                assert!(is_kept(address), "{take} {failure:?}");
            }
            // Object 7 of the other kind.
            let other = if take == Opcode::CT_FREE { Opcode::ATU_UNMAP } else { Opcode::CT_FREE };
            follow(&reachable, other, None, DONE).unwrap();
            assert!(is_kept(address), "{other}");
            follow(&reachable, take, None, DONE).unwrap();
            assert!(!is_kept(address), "{take}");
        }
    }

    #[test]
    fn a_number_that_is_used_again_at_once_is_another_object() {
        let reachable = Reachable::default();
        let (first, first_address) = memory();
        let (second, second_address) = memory();
        follow(&reachable, Opcode::ATU_MAP, Some(&first), DONE).unwrap();
        drop(first);
        let between = || {
            follow(&reachable, Opcode::ATU_MAP, Some(&second), DONE).unwrap();
            DONE()
        };
        follow(&reachable, Opcode::ATU_UNMAP, None, between).unwrap();
        drop(second);
        assert!(!is_kept(first_address));
        assert!(is_kept(second_address));
    }

    #[test]
    fn what_the_nic_may_still_reach_outlives_the_file() {
        let reachable = Reachable::default();
        let (first, address) = memory();
        follow(&reachable, Opcode::CT_ALLOC, Some(&first), DONE).unwrap();
        drop((reachable, first));
        assert!(is_kept(address));
    }

    #[test]
    fn memory_of_a_refused_command_is_given_back() {
        let reachable = Reachable::default();
        let (first, address) = memory();
        let refused = || Err(Errno::EINVAL);
        follow(&reachable, Opcode::ATU_MAP, Some(&first), refused).unwrap_err();
        drop(first);
        assert!(!is_kept(address));
    }
}
