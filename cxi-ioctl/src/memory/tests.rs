use std::sync::{Mutex, MutexGuard};
use std::thread;

use super::*;

/// Keeps a test that uses an address after a drop from meeting another test's memory there.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn memory_is_zeroed_whole_pages() {
    let _alone = alone();
    let memory = DeviceMemory::new(1).unwrap();
    assert_eq!(memory.len(), page_size());
    assert!(memory.address().is_multiple_of(page_size() as u64));
    let mut bytes = vec![1; memory.len()];
    memory.copy_out(0, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 0));
    assert_eq!(DeviceMemory::new(0).unwrap_err(), Errno::EINVAL);
    assert_eq!(DeviceMemory::new(usize::MAX).unwrap_err(), Errno::ENOMEM);
}

#[test]
fn any_range_is_copied_and_its_neighbors_stay() {
    let _alone = alone();
    let memory = DeviceMemory::new(64).unwrap();
    for offset in 0..17 {
        for len in 0..20 {
            memory.copy_in(0, &[0xEE; 48]).unwrap();
            let bytes: Vec<u8> = (1..=len).collect();
            memory.copy_in(offset, &bytes).unwrap();
            let mut expected = [0xEE; 48];
            expected[offset..offset + bytes.len()].copy_from_slice(&bytes);
            let mut all = [0; 48];
            memory.copy_out(0, &mut all).unwrap();
            assert_eq!(all, expected, "{len} bytes at {offset}");
            let mut back = vec![0; bytes.len()];
            memory.copy_out(offset, &mut back).unwrap();
            assert_eq!(back, bytes);
        }
    }
}

#[test]
fn words_are_checked() {
    let _alone = alone();
    let memory = DeviceMemory::new(8).unwrap();
    let end = memory.len();
    memory.write_u64(8, 0x1122_3344_5566_7788).unwrap();
    assert_eq!(memory.read_u64(8), Ok(0x1122_3344_5566_7788));
    assert_eq!(memory.read_u64(16), Ok(0));
    assert_eq!(memory.read_u64(4), Err(Errno::EINVAL));
    assert_eq!(memory.read_u64(end), Err(Errno::ERANGE));
    assert_eq!(memory.copy_in(end - 1, &[1, 2]), Err(Errno::ERANGE));
    assert_eq!(memory.read_u64(end - 8), Ok(0), "a refused copy writes nothing");
    assert_eq!(memory.copy_out(usize::MAX, &mut [0; 2]), Err(Errno::ERANGE));
    assert_eq!(memory.copy_in(end, &[]), Ok(()));
}

#[test]
fn only_live_memory_is_reached_by_address() {
    let _alone = alone();
    let memory = DeviceMemory::new(8).unwrap();
    let (start, end) = (memory.address(), memory.address() + memory.len() as u64);
    write_at(start + 3, &[1, 2, 3]).unwrap();
    let mut bytes = [0; 8];
    read_at(start, &mut bytes).unwrap();
    assert_eq!(bytes, [0, 0, 0, 1, 2, 3, 0, 0]);
    assert_eq!(read_at(0, &mut bytes), Err(Errno::EFAULT));
    assert_eq!(write_at(u64::MAX, &[1]), Err(Errno::EFAULT));
    assert_eq!(write_at(end - 1, &[5, 5]), Err(Errno::EFAULT));
    assert_eq!(memory.read_u64(memory.len() - 8), Ok(0));
    drop(memory);
    assert_eq!(find(start).map(|found| found.1), Err(Errno::EFAULT));
}

#[test]
fn an_access_and_a_drop_may_meet() {
    let _alone = alone();
    for _ in 0..200 {
        let memory = DeviceMemory::new(8).unwrap();
        let address = memory.address();
        let device = thread::spawn(move || {
            let mut hits = 0;
            while write_at(address, &[1; 64]).is_ok() && hits < 1_000 {
                hits += 1;
            }
        });
        drop(memory);
        device.join().unwrap();
    }
}

#[test]
fn bytes_written_by_two_threads_do_not_disturb_each_other() {
    let _alone = alone();
    let memory = DeviceMemory::new(8).unwrap();
    thread::scope(|scope| {
        for lane in 0..8 {
            let memory = &memory;
            scope.spawn(move || {
                for value in 0..=255 {
                    let mut back = [0];
                    memory.copy_in(lane, &[value]).unwrap();
                    memory.copy_out(lane, &mut back).unwrap();
                    assert_eq!(back, [value]);
                }
            });
        }
    });
    assert_eq!(memory.read_u64(0), Ok(u64::MAX));
}
