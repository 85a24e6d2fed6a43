#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cxi_fuzz::sysfs::run(data));
